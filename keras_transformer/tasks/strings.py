"""Conversion of strings to inputs of a model, and of its outputs to strings."""

from typing import Any

import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.tensors import Tensor


def check_sentences(sentences, name="sentences") -> list[str]:
    """Returns strings as a list.

    Args:
        sentences: List, or another iterable, of strings.
        name: Name of the argument in errors.

    Raises:
        TypeError: If `sentences` is something else.
    """
    if isinstance(sentences, str | bytes) or not hasattr(sentences, "__iter__"):
        raise TypeError(f"`{name}` must be a list of strings. Received: {sentences!r}.")
    sentences = list(sentences)
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str | bytes):
            raise TypeError(
                f"`{name}` must be a list of strings. Received: {sentence!r} at index {number}."
            )
    return sentences


def check_sentence(sentence) -> str:
    """Returns a string after checking that it is not empty.

    Raises:
        TypeError: If `sentence` is not a string.
        ValueError: If it is empty or white space.
    """
    if not isinstance(sentence, str):
        raise TypeError(f"`sentence` must be a string. Received: {sentence!r}.")
    if not sentence.strip():
        raise ValueError(f"`sentence` must not be empty. Received: {sentence!r}.")
    return sentence


def check_samples(sentences) -> list[str]:
    """Returns the sentences to check an export with as a list.

    Raises:
        TypeError: If `sentences` is not a list of strings.
        ValueError: If all of them are empty.
    """
    if isinstance(sentences, str) or not all(isinstance(sentence, str) for sentence in sentences):
        raise TypeError(f"`sentences` must be a list of strings. Received: {sentences!r}.")
    if not any(sentence.strip() for sentence in sentences):
        raise ValueError(
            "`sentences` must contain at least one sentence that is not empty, to check the "
            f"export with. Received: {len(sentences)} sentences."
        )
    return list(sentences)


def encode(tokenizer, sentences, max_length, masked=False) -> tuple[Tensor, Tensor, Tensor]:
    """Tokenises sentences for a model.

    Args:
        tokenizer: A `Tokenizer`.
        sentences: `[B]`, string.
        max_length: Maximum number of tokens, including the end token.
        masked: Whether mask tokens in sentences are recognised; see `Tokenizer.encode_masked`.

    Returns:
        Ragged token ids `[B, (S)]`, cut at `max_length`; whether each was truncated, `[B]`; and
        whether each is empty, `[B]`, for example white space of any script.
    """
    # SentencePiece needs minutes for a megabyte in an unknown script. Therefore, bytes that are
    # certainly beyond the limit are truncated first.
    limit = tokenizer.bytes_per_token * max_length
    read = tokenizer.encode_masked if masked else tokenizer.encode
    ids = read(tf.strings.substr(sentences, 0, limit))
    truncated = (ids.row_lengths() > max_length) | (tf.strings.length(sentences) > limit)
    empty = tf.equal(ids.row_lengths(), tokenizer.num_marks) & ~truncated
    words = ids[:, :-1][:, : max_length - 1]
    ends = tf.fill([tf.shape(sentences)[0], 1], tokenizer.eos_id)
    return tf.concat([words, tf.RaggedTensor.from_tensor(ends)], axis=1), truncated, empty


def is_utf8(strings) -> Tensor:
    """Returns which of `[B]` strings are valid UTF-8 by the rules of Python's decoder, `[B]`."""
    return tf.equal(tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", "ignore"), strings)


def generate_strings(tokenizers, max_length, decode, sentences, blank=True) -> dict[str, Any]:
    """Encodes strings, searches, and decodes the outputs.

    A string that is not UTF-8 has empty outputs with the score `NONE`, the score of an output that
    does not exist. Lines of a file that are not UTF-8 are treated in the same way.

    Args:
        tokenizers: The `Tokenizers` of inputs and outputs.
        max_length: Maximum number of tokens of an input.
        decode: Function from ragged token ids `[B, (S)]` to a `Found`, or to token ids `[B, M, L]`
            and scores `[B, M]`.
        sentences: `[B]`, string.
        blank: Whether an empty input has an empty output, with a score of 0.

    Returns:
        Dictionary of `text`, string `[B, M]`, and `score`, float32 `[B, M]`; `truncated` and
        `empty`, boolean `[B]`, and `source`, ragged, the results of `encode`; and `found`, the
        result of `decode`.
    """
    read = read_strings(tokenizers.source, max_length, sentences, blank)
    result = decode(read["source"])
    written = write_strings(tokenizers.target, *result[:2], read["empty"], read.pop("valid"))
    return {**written, **read, "found": result}


def read_strings(tokenizer, max_length, sentences, blank=True) -> dict[str, Any]:
    """Encodes strings for a search: the first half of `generate_strings`.

    Args:
        tokenizer: The `Tokenizer` of inputs.
        max_length, sentences, blank: See `generate_strings`.

    Returns:
        Dictionary of `source`, `truncated` and `empty`, see `generate_strings`; and `valid`,
        boolean `[B]`: whether a string is UTF-8.
    """
    valid = is_utf8(sentences)  # [B]
    sentences = tf.where(valid, sentences, "")
    source, truncated, empty = encode(tokenizer, sentences, max_length)
    empty = empty & blank | ~valid
    return {"source": source, "truncated": truncated, "empty": empty, "valid": valid}


def write_strings(tokenizer, tokens, scores, empty, valid) -> dict[str, Tensor]:
    """Decodes the outputs of a search: the second half of `generate_strings`.

    Args:
        tokenizer: The `Tokenizer` of outputs.
        tokens: Token ids, int32 `[B, M, L]`.
        scores: Scores, float32 `[B, M]`.
        empty, valid: Results of `read_strings`.

    Returns:
        Dictionary of `text` and `score`; see `generate_strings`.
    """
    texts = tokenizer.decode(tf.reshape(tokens, [-1, tokens.shape[-1] or tf.shape(tokens)[-1]]))
    nothing = tf.expand_dims(empty, 1)  # [B, 1]
    return {
        "text": tf.where(nothing, "", tf.reshape(texts, tf.shape(scores))),
        "score": tf.where(nothing, tf.expand_dims(tf.where(valid, 0.0, NONE), 1), scores),
    }


def map_sorted(function, sentences, batch_size, key=len, progress=None) -> list:
    """Calls a function with batches of sentences of similar length.

    Args:
        function: Function from a list of sentences to a list of as many results.
        sentences: List of sentences.
        batch_size: Maximum number of sentences in a batch.
        key: Function that returns the length of a sentence.
        progress: Function that is called after each batch with the number of sentences so far, or
            `None`.

    Returns:
        List of the results in the order of `sentences`.
    """
    check_count("batch_size", batch_size)
    order = sorted(range(len(sentences)), key=lambda number: key(sentences[number]))
    results = [None] * len(sentences)
    for begin in range(0, len(order), batch_size):
        numbers = order[begin : begin + batch_size]
        batch = [sentences[number] for number in numbers]
        for number, result in zip(numbers, function(batch), strict=True):
            results[number] = result
        if progress is not None:
            progress(begin + len(batch))
    return results
