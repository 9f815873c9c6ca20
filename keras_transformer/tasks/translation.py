"""What goes into a translation and what comes out, however it is decoded."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.decoding.hypotheses import exists

COLUMNS = ("translation", "score", "truncated")
SPACE, END = "\u2581", "</s>"  # as SentencePiece writes them
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
        translation: The `Translation`.
    """

    source: list
    target: list
    weights: np.ndarray
    translation: Translation

    def words(self):
        """Returns which word of the source each word of the translation attended to most.

        Words are what white space separates; a word's pieces are added up, and the end of a
        sentence is none. A translation of another script than the vocabulary's has words as well:
        those of its pieces.

        Returns:
            Pairs of integers from 0, word of the source and word of the translation, in the order
            of the translation. None if either is empty.
        """
        source, target = _words(self.source), _words(self.target)
        weights = np.zeros((target.max(initial=-1) + 1, source.max(initial=-1) + 1))  # [T', S']
        if not weights.size:
            return []
        inside = np.ix_(target >= 0, source >= 0)
        rows, columns = np.meshgrid(target[target >= 0], source[source >= 0], indexing="ij")
        np.add.at(weights, (rows, columns), self.weights[inside])
        return [(int(word), number) for number, word in enumerate(weights.argmax(axis=1))]


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


def translate_strings(tokenizer, max_length, decode, sentences):
    """Encodes sentences, searches, and writes what was found as strings.

    Args:
        tokenizer: A `Tokenizer`.
        max_length: Most tokens of a source.
        decode: Function of ragged token ids `[B, (S)]` to a `Found`, or to token ids `[B, M, L]`
            and scores `[B, M]`.
        sentences: `[B]`, string.

    Returns:
        Dictionary of `translation`, string `[B, M]`, and `score`, float32 `[B, M]`: an empty
        sentence stays empty, with a score of 0; `truncated` and `empty`, boolean `[B]`, and
        `source`, ragged, as `encode` gives them; and `found`, which is what `decode` returned.
    """
    source, truncated, empty = encode(tokenizer, sentences, max_length)
    found = decode(source)
    tokens, scores = found[:2]
    texts = tokenizer.decode(tf.reshape(tokens, [-1, tokens.shape[-1]]))
    nothing = tf.expand_dims(empty, 1)  # [B, 1]
    return {
        "translation": tf.where(nothing, "", tf.reshape(texts, tf.shape(scores))),
        "score": tf.where(nothing, 0.0, scores),
        "truncated": truncated,
        "empty": empty,
        "source": source,
        "found": found,
    }


def to_n_best(outputs, n):
    """Returns for each sentence a list of at most `n` `Translation`s, no text twice.

    Args:
        outputs: Dictionary of `translation` and `score`, `[B, M]`, the best first, and `truncated`,
            `[B]`; tensors.
        n: Most translations of each; there is at least one.
    """
    results = []
    for texts, scores, truncated in zip(*(outputs[name].numpy() for name in COLUMNS), strict=True):
        distinct = {}
        for text, score in zip(texts, scores, strict=True):
            if exists(score) or not distinct:  # otherwise there are fewer
                text = text.decode("utf-8", "replace")
                distinct.setdefault(text, Translation(text, float(score), bool(truncated)))
        results.append(list(distinct.values())[:n])
    return results


def to_best(outputs):
    """Returns for each sentence the first `Translation` that `to_n_best` returns."""
    return [best for best, *_ in to_n_best(outputs, 1)]


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


def _words(pieces):
    """The number of the word that each piece belongs to, -1 for none, as an array."""
    numbers, number, begins = [], -1, True
    for piece in pieces:
        if piece == END:
            numbers.append(-1)
            continue
        begins = begins or piece.startswith(SPACE)
        is_word = bool(piece.strip(SPACE))
        if is_word and begins:
            number, begins = number + 1, False
        numbers.append(number if is_word else -1)
    return np.array(numbers, int)
