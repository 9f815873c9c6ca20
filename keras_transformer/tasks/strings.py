"""Strings on their way into a model and out of it."""

import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding.hypotheses import NONE

BYTES_PER_TOKEN = 64  # SentencePiece's pieces have 16 characters at most, UTF-8's 4 bytes


def check_sentences(sentences, name="sentences"):
    """Returns a list of strings as such.

    Raises:
        TypeError: If it is something else.
    """
    if isinstance(sentences, str | bytes) or not hasattr(sentences, "__iter__"):
        raise TypeError(f"`{name}` must be a list of strings. Received: {sentences!r}.")
    sentences = list(sentences)
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str | bytes):
            raise TypeError(
                f"`{name}` must be a list of strings. Received: {sentence!r} at place {number}."
            )
    return sentences


def check_sentence(sentence):
    """Returns a string in which there is something to read.

    Raises:
        TypeError: If it is something else.
        ValueError: If it is empty.
    """
    if not isinstance(sentence, str):
        raise TypeError(f"`sentence` must be a string. Received: {sentence!r}.")
    if not sentence.strip():
        raise ValueError(f"`sentence` must not be empty. Received: {sentence!r}.")
    return sentence


def check_samples(sentences):
    """Returns the sentences to check an export with, as a list.

    Raises:
        TypeError: If they are not strings.
        ValueError: If all of them are empty.
    """
    if isinstance(sentences, str) or not all(isinstance(sentence, str) for sentence in sentences):
        raise TypeError(f"`sentences` must be a list of strings. Received: {sentences!r}.")
    if not any(sentence.strip() for sentence in sentences):
        raise ValueError(
            "`sentences` must hold at least one sentence that is not empty: every export is "
            f"checked by translating. Received: {len(sentences)} sentences."
        )
    return list(sentences)


def encode(tokenizer, sentences, max_length):
    """Tokenises sentences for a model.

    Args:
        tokenizer: A `Tokenizer`.
        sentences: `[B]`, string.
        max_length: Most tokens, the end of the sentence included.

    Returns:
        Ragged token ids `[B, (S)]`, cut at `max_length`; whether each was cut, `[B]`; and whether
        each holds nothing to translate, `[B]`, such as spaces of any script.
    """
    # A megabyte in an unknown script takes SentencePiece minutes: what no token can reach is cut.
    limit = BYTES_PER_TOKEN * max_length
    ids = tokenizer.encode(tf.strings.substr(sentences, 0, limit))
    truncated = (ids.row_lengths() > max_length) | (tf.strings.length(sentences) > limit)
    empty = tf.equal(ids.row_lengths(), tokenizer.num_marks) & ~truncated
    words = ids[:, :-1][:, : max_length - 1]
    ends = tf.fill([tf.shape(sentences)[0], 1], tokenizer.eos_id)
    return tf.concat([words, tf.RaggedTensor.from_tensor(ends)], axis=1), truncated, empty


def is_utf8(strings):
    """Returns which of `[B]` strings are UTF-8, `[B]`, as Python's decoder sees it."""
    return tf.equal(tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", "ignore"), strings)


def generate_strings(tokenizers, max_length, decode, sentences, blank=True):
    """Encodes strings, searches, and writes what was found as strings.

    A string that is not UTF-8 has empty outputs with the score `NONE`, as one has that does not
    exist: a file of lines treats such a line in the same way.

    Args:
        tokenizers: The `Tokenizers` of inputs and outputs.
        max_length: Most tokens of an input.
        decode: Function of ragged token ids `[B, (S)]` to a `Found`, or to token ids `[B, M, L]`
            and scores `[B, M]`.
        sentences: `[B]`, string.
        blank: Whether an empty input has an empty output, with a score of 0.

    Returns:
        Dictionary of `text`, string `[B, M]`, and `score`, float32 `[B, M]`; `truncated` and
        `empty`, boolean `[B]`, and `source`, ragged, as `encode` gives them; and `found`, which is
        what `decode` returned.
    """
    valid = is_utf8(sentences)  # [B]
    sentences = tf.where(valid, sentences, "")
    source, truncated, empty = encode(tokenizers.source, sentences, max_length)
    empty = empty & blank | ~valid
    result = decode(source)
    tokens, scores = result[:2]
    texts = tokenizers.target.decode(tf.reshape(tokens, [-1, tokens.shape[-1]]))
    nothing = tf.expand_dims(empty, 1)  # [B, 1]
    return {
        "text": tf.where(nothing, "", tf.reshape(texts, tf.shape(scores))),
        "score": tf.where(nothing, tf.expand_dims(tf.where(valid, 0.0, NONE), 1), scores),
        "truncated": truncated,
        "empty": empty,
        "source": source,
        "found": result,
    }


def map_sorted(function, sentences, batch_size, key=len):
    """Calls a function with short sentences together; returns its results in their order."""
    check_count("batch_size", batch_size)
    order = sorted(range(len(sentences)), key=lambda number: key(sentences[number]))
    results = [None] * len(sentences)
    for begin in range(0, len(order), batch_size):
        numbers = order[begin : begin + batch_size]
        batch = [sentences[number] for number in numbers]
        for number, result in zip(numbers, function(batch), strict=True):
            results[number] = result
    return results
