"""Random masks that hide tokens of texts, which a model learns to predict.

The masks of a text depend only on its tokens and a seed: padding and the other texts of a batch
change nothing.
"""

import typing

import tensorflow as tf

from keras_transformer.decoding.threefry import threefry
from keras_transformer.tensors import Tensor

RANKS, KINDS = range(2)  # purposes of the random numbers
BITS = 24  # of a random number


class HiddenTokens(typing.NamedTuple):
    """Texts with masks.

    Attributes:
        tokens: Token ids `[B, S]`, int32, some of them hidden.
        labels: The original ids of the hidden tokens, `[B, S]`; `pad_id` where nothing is hidden.
    """

    tokens: Tensor
    labels: Tensor


def hide_tokens(tokens, tokenizer, config, seeds=None) -> HiddenTokens:
    """Hides some tokens of each text, as BERT's training does.

    A share of `masking_rate` of the tokens that are not special is drawn (rounded, at least one).
    Each drawn token becomes the mask with the probability `mask_share`. With the probability
    `random_share`, it becomes a random token that is not special. Otherwise it stays as it is.

    With `whole_word_masking`, words are drawn until that number of tokens is reached, and all
    tokens of a drawn word are hidden. A word that would exceed the number is hidden with the
    probability that keeps the expected number.

    Args:
        tokens: Token ids of texts, padded, int32 `[B, S]`.
        tokenizer: The `Tokenizer`, with a mask token.
        config: A `MaskedLanguageModelConfig`.
        seeds: Seed of each text, int32 `[B, 2]`. `None`: they follow from the tokens, so that a
            text has the same masks in every batch and every epoch.

    Returns:
        A `HiddenTokens`.

    Raises:
        ValueError: If words are to be hidden, but the tokenizer does not show where they begin.

    Reference: Devlin et al. (2019), BERT, section 3.1 and appendix A.1; Cui et al. (2021),
        "Pre-Training with Whole Word Masking for Chinese BERT", section 3.1.

    Differs from the papers: masks are not the same in every epoch, because other seeds give other
    masks, as in Liu et al. (2019), RoBERTa, section 4.1. BERT's code never hides a word that would
    exceed the number of tokens, and so hides fewer tokens, and fewer long words.
    """
    special = special_ids(tokenizer)
    seeds = seeds_of(tokens, tokenizer.pad_id) if seeds is None else seeds
    ordinary = tf.reduce_all(tf.not_equal(tokens[..., tf.newaxis], special), axis=2)  # [B, S]
    words = _words(tokens, tokenizer) if config.head.whole_word_masking else _places(tokens)
    draws, kinds = (_uniforms(seeds, tokens, purpose) for purpose in (RANKS, KINDS))
    chosen = ordinary & _draw(words, ordinary, config.head.masking_rate, draws)  # [B, S]
    others = [number for number in range(tokenizer.vocab_size) if number not in special]
    drawn = tf.gather(
        others, tf.minimum(tf.cast(kinds[1] * len(others), tf.int32), len(others) - 1)
    )
    is_mask = kinds[0] < config.head.mask_share
    is_drawn = kinds[0] < config.head.mask_share + config.head.random_share
    replaced = tf.where(is_mask, tokenizer.mask_id, tf.where(is_drawn, drawn, tokens))
    return HiddenTokens(
        tf.where(chosen, replaced, tokens), tf.where(chosen, tokens, tokenizer.pad_id)
    )


def _words(tokens, tokenizer):
    """Returns the number of the word of each token, counted from 0 in each text, int32 `[B, S]`.

    Marks are words by themselves; unknown tokens are parts of words.
    """
    marks = [number for number in special_ids(tokenizer) if number != tokenizer.unk_id]
    is_mark = tf.reduce_any(tf.equal(tokens[..., tf.newaxis], marks), axis=2)  # [B, S]
    after_mark = tf.concat([tf.ones_like(is_mark[:, :1]), is_mark[:, :-1]], axis=1)
    begins = tf.gather(require_words(tokenizer), tokens) | is_mark | after_mark
    return tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1


def _draw(words, ordinary, rate, draws):
    """Draws words, and returns whether the word of each token is one of them, boolean `[B, S]`.

    Args:
        words: Number of the word of each token, from 0 to below S, `[B, S]`.
        ordinary: Whether a token may be hidden, boolean `[B, S]`.
        rate: Share of these tokens to hide.
        draws: Two random numbers for each word, from 0 to below 1, `[B, S]` each.
    """
    shape, counts = tf.shape(words), tf.cast(ordinary, tf.float32)
    total = tf.reduce_sum(counts, axis=1, keepdims=True)  # [B, 1]
    hidden = tf.minimum(tf.maximum(tf.floor(rate * total + 0.5), 1), total)
    segments = words + shape[1] * tf.expand_dims(tf.range(shape[0]), 1)
    sizes = tf.math.unsorted_segment_sum(counts, segments, shape[0] * shape[1])
    sizes = tf.reshape(sizes, shape)  # of each word in ordinary tokens, [B, S]
    order = tf.argsort(tf.where(sizes > 0, draws[0], 1.0), axis=1, stable=True)
    sizes, chances = (tf.gather(x, order, batch_dims=1) for x in (sizes, draws[1]))
    missing = hidden - tf.cumsum(sizes, axis=1, exclusive=True)
    drawn = chances < tf.math.divide_no_nan(missing, sizes)  # [B, S], in this order
    drawn = tf.gather(drawn, tf.argsort(order, axis=1), batch_dims=1)  # of each word
    return tf.gather(drawn, words, batch_dims=1)


def require_words(tokenizer) -> list[bool]:
    """Returns which tokens begin a word, and refuses a tokenizer that does not show it.

    Raises:
        ValueError: If no token begins a word; the error is one line.
    """
    begins, special = tokenizer.begins_words(), special_ids(tokenizer)
    if begins is None or not any(x for n, x in enumerate(begins) if n not in special):
        raise ValueError(
            "`whole_word_masking` needs a vocabulary whose tokens show where words begin. "
            f"Received: {tokenizer.title} without such tokens."
        )
    return begins


def require_mask(tokenizer) -> None:
    """Refuses a tokenizer without a mask token.

    Raises:
        ValueError: If the vocabulary has none; the error is one line.
    """
    if tokenizer.mask_id is None:
        raise ValueError(
            "the vocabulary must have a mask token: learn a new one for "
            "`masked_language_modelling`, or start from a checkpoint that has one. "
            f"Received: {tokenizer.vocab_size} tokens without a mask."
        )


def special_ids(tokenizer) -> list[int]:
    """Returns the ids of a tokenizer that are never hidden, in order."""
    names = ("pad_id", "unk_id", "bos_id", "eos_id", "mask_id")
    return sorted({getattr(tokenizer, name) for name in names})


def seeds_of(tokens, pad_id) -> Tensor:
    """Returns a seed for each text, int32 `[B, 2]`, that depends on its tokens and their order.

    Args:
        tokens: Token ids of texts, padded, int32 `[B, S]`.
        pad_id: Id of padding, which is ignored.
    """
    places = _places(tokens)
    words = threefry(*(tf.bitcast(x, tf.uint32) for x in (tokens, places, places, tokens)))
    real = tf.not_equal(tokens, pad_id)
    sums = [tf.reduce_sum(tf.where(real, tf.bitcast(word, tf.int32), 0), axis=1) for word in words]
    return tf.stack(sums, axis=1)


def seeds_from(draws) -> Tensor:
    """Returns seeds, int32 `[B, 2]`, made from random numbers `[B, 2]` from 0 to below 1."""
    return tf.cast(draws * 2.0**BITS, tf.int32)


def _places(tokens):
    """Returns the position of each token, counted from 0, int32 `[B, S]`."""
    return tf.range(tf.shape(tokens)[1]) + tf.zeros_like(tokens)


def _uniforms(seeds, tokens, purpose):
    """Returns two random numbers from 0 to below 1 for each position, float32 `[B, S]` each."""
    places = _places(tokens)
    keys = tf.bitcast(seeds, tf.uint32)
    counters = (tf.bitcast(x, tf.uint32) for x in (places, tf.zeros_like(places) + purpose))
    words = threefry(keys[:, :1], keys[:, 1:], *counters)
    shift = tf.constant(32 - BITS, tf.uint32)
    bits = (tf.bitcast(tf.bitwise.right_shift(word, shift), tf.int32) for word in words)
    return [tf.cast(x, tf.float32) * 2.0**-BITS for x in bits]
