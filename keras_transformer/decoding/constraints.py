"""Constraints of outputs: prefixes, terms, banned tokens and phrases, no repeated n-grams."""

import typing

from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


class Constraints(typing.NamedTuple):
    """Constraints of the outputs of a search; a field that is `None` costs no time.

    A forced token is emitted even if another constraint forbids it. If all tokens are forbidden,
    `eos_id` included, the sentence ends with `eos_id`. `pad_id` and `bos_id` are never emitted
    unless they are forced. Scores remain the model's own: probabilities are not renormalised over
    the allowed tokens.

    Args:
        prefix: Token ids `[B, P]`, integer, without `bos_id`: the beginning of each output. At
            positions with `pad_id`, after a shorter prefix or within it, the search is free. An
            `eos_id` ends the output there. A ragged tensor, such as the result of
            `Tokenizer.encode`, is padded, and an `eos_id` at the end of its rows, which `encode`
            appends, is left out.
        banned: Boolean `[V]` or `[B, V]`: tokens that are not emitted.
        no_repeat_ngram: Integer or scalar tensor n: no n-gram occurs twice in an output; forced
            tokens count. 0: off.
        banned_phrases: Token ids `[P, Q]`, or `[B, P, Q]` for each sentence, integer: sequences of
            tokens that do not occur in an output. `pad_id` follows the last token of a shorter
            phrase; a row of padding alone is no phrase. The prompt of an output does not count.
        terms: Token ids `[B, C, A, Q]`, integer, padded like `banned_phrases`: C terms for each
            sentence, each in A spellings, of which an output must contain one. C may be 0. Only a
            `Beam` takes terms: it keeps hypotheses with few and with many of their tokens at each
            step, and an output ends only when it contains all terms. If they do not fit into the
            maximum length, or another constraint forbids them, the output lacks terms; such an
            output comes after all others.
        word_starts: Boolean `[V]`: tokens that begin a word, or that separate words. With it, a
            term counts only if such a token or the end follows: "cat" is not met by "cats".

    Reference: Post and Vilar (2018), "Fast Lexically Constrained Decoding with Dynamic Beam
        Allocation for Neural Machine Translation", for `terms`.

    Differs from the paper: the slots of the beam go to the banks in turns, the best candidate of
    each bank first, instead of in blocks of equal size; a term may have several spellings.
    """

    prefix: typing.Any = None
    banned: typing.Any = None
    no_repeat_ngram: typing.Any = None
    banned_phrases: typing.Any = None
    terms: typing.Any = None
    word_starts: typing.Any = None


def with_rules_of(vocabulary, constraints) -> Constraints | None:
    """Returns `Constraints` with the n-grams that a model never repeats, or `None` without any.

    They are empty if the vocabulary has other rules that depend on the position in an output.

    Args:
        vocabulary: The `Vocabulary` of the predictor.
        constraints: The `Constraints` of a search, or `None`. Its own `no_repeat_ngram` is kept.
    """
    # The tokens of a prompt may be suppressed.
    rules = vocabulary.rules
    if rules.first_suppressed_ids or rules.timestamp_id is not None or rules.prompt_ids:
        constraints = Constraints() if constraints is None else constraints
    if not rules.no_repeat_ngram:
        return constraints
    constraints = Constraints() if constraints is None else constraints
    if constraints.no_repeat_ngram is not None:
        return constraints
    return constraints._replace(no_repeat_ngram=rules.no_repeat_ngram)


def checked_prefix(prefix, vocabulary) -> Tensor:
    """Returns the token ids `[B, P]` as int32, without the end tokens of ragged rows.

    Args:
        prefix: See `Constraints`.
        vocabulary: The `Vocabulary` of the predictor.

    Raises:
        ValueError: If the shape or dtype is wrong.
    """
    if isinstance(prefix, tf.RaggedTensor) and prefix.shape.rank == 2:
        ends = tf.equal(prefix[:, -1:], tf.cast(vocabulary.eos_id, prefix.dtype))  # [B, (0 or 1)]
        has_end = tf.reduce_any(ends, axis=1)  # [B]
        kept = tf.cast(prefix.row_lengths(), tf.int32) - tf.cast(has_end, tf.int32)
        prefix = prefix.to_tensor(vocabulary.pad_id)
        is_kept = tf.sequence_mask(kept, tf.shape(prefix)[1])
        prefix = tf.where(is_kept, prefix, tf.cast(vocabulary.pad_id, prefix.dtype))
    prefix = prefix if isinstance(prefix, tf.RaggedTensor) else tf.convert_to_tensor(prefix)
    if prefix.shape.rank != 2 or not prefix.dtype.is_integer:
        raise ValueError(
            "`prefix` must be token ids, integers [B, P]. "
            f"Received: shape {prefix.shape}, {prefix.dtype.name}."
        )
    return tf.cast(prefix, tf.int32)


def checked_banned(banned, vocab_size) -> Tensor:
    """Returns the mask as a tensor; raises `ValueError` unless it is boolean, `[V]` or `[B, V]`."""
    banned = tf.convert_to_tensor(banned)
    shape = banned.shape
    if banned.dtype != tf.bool or shape.rank not in (1, 2) or shape[-1] not in (None, vocab_size):
        raise ValueError(
            f"`banned` must be booleans, [V] or [B, V], with V = {vocab_size}. "
            f"Received: shape {shape}, {banned.dtype.name}."
        )
    return banned


def checked_phrases(phrases) -> Tensor:
    """Returns `banned_phrases` as int32; raises `ValueError` if the shape or dtype is wrong."""
    phrases = tf.convert_to_tensor(phrases)
    if phrases.shape.rank not in (2, 3) or not phrases.dtype.is_integer:
        raise ValueError(
            "`banned_phrases` must be token ids, integers [P, Q] or [B, P, Q]. "
            f"Received: shape {phrases.shape}, {phrases.dtype.name}."
        )
    return tf.cast(phrases, tf.int32)


def checked_terms(terms) -> Tensor:
    """Returns `terms` as int32; raises `ValueError` if the shape or dtype is wrong."""
    terms = tf.convert_to_tensor(terms)
    if terms.shape.rank != 4 or not terms.dtype.is_integer or 0 in terms.shape[2:]:
        raise ValueError(
            "`terms` must be token ids, integers [B, C, A, Q], with at least one spelling and one "
            f"token. Received: shape {terms.shape}, {terms.dtype.name}."
        )
    return tf.cast(terms, tf.int32)


def checked_starts(word_starts, vocab_size) -> Tensor:
    """Returns `word_starts` as a tensor; raises `ValueError` unless it is boolean `[V]`."""
    word_starts = tf.convert_to_tensor(word_starts)
    if word_starts.dtype != tf.bool or word_starts.shape.as_list() not in ([vocab_size], [None]):
        raise ValueError(
            f"`word_starts` must be booleans, [V], with V = {vocab_size}. "
            f"Received: shape {word_starts.shape}, {word_starts.dtype.name}."
        )
    return word_starts
