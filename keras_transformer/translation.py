"""What goes into a translation and what comes out, however it is decoded."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count

COLUMNS = ("translation", "score", "truncated")
BYTES_PER_TOKEN = 64  # SentencePiece's pieces have 16 characters at most, UTF-8's 4 bytes


@dataclasses.dataclass(frozen=True)
class Translation:
    """What became of one sentence.

    Args:
        text: The translation.
        score: Sum of the log-probabilities of its tokens, the end of the sentence included; from a
            beam divided by its penalty for the length.
        truncated: Whether the source was longer than the model's limit and was cut.
    """

    text: str
    score: float
    truncated: bool


@dataclasses.dataclass(frozen=True)
class Score:
    """How probable a model finds a given translation.

    Args:
        score: Sum of the log-probabilities of its tokens, the end of the sentence included.
        tokens: Their number.
        truncated: Whether source or translation was longer than the model's limit and was cut.
    """

    score: float
    tokens: int
    truncated: bool


@dataclasses.dataclass(frozen=True)
class Alignment:
    """What each piece of a translation attended to.

    Args:
        source: The pieces of the source, S strings, the end of the sentence included.
        target: Those of the translation, T strings.
        weights: Array `[T, S]`, float32, whose rows sum to 1.
    """

    source: list
    target: list
    weights: np.ndarray


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
    empty = tf.equal(ids.row_lengths(), 1) & ~truncated
    words = ids[:, :-1][:, : max_length - 1]
    ends = tf.fill([tf.shape(sentences)[0], 1], tokenizer.eos_id)
    return tf.concat([words, tf.RaggedTensor.from_tensor(ends)], axis=1), truncated, empty


def to_translations(outputs):
    """Returns a list of `Translation` from the tensors that `Translator.translate` returns."""
    columns = (outputs[name].numpy() for name in COLUMNS)
    return [
        Translation(text.decode("utf-8", "replace"), float(score), bool(truncated))
        for text, score, truncated in zip(*columns, strict=True)
    ]


def translate_sorted(translator, sentences, batch_size=64):
    """Translates with short sentences together, so that little is spent on padding.

    Args:
        translator: Anything with `translate_batch`: a `Translator` or an exported model.
        sentences: List of strings.
        batch_size: Sentences at a time.

    Returns:
        List of `Translation`, in the order of `sentences`.
    """
    return map_sorted(translator.translate_batch, sentences, batch_size)


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
