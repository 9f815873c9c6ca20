"""Small corpora, and functions to compare their batches."""

from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining

WORDS = [
    "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf",
]  # fmt: skip


EMPTY, LONG = 3, 5


def text_pairs(count=400):
    """Returns pairs of many lengths; `EMPTY` have an empty side, `LONG` a far too long one."""
    rng = np.random.default_rng(1)

    def sentence(words):
        return " ".join(rng.choice(WORDS, size=words))

    pairs = [(sentence(rng.integers(1, 13)), sentence(rng.integers(1, 13))) for _ in range(count)]
    pairs[5:5] = [("", "ein"), ("zwei", "  "), ("\u200b", "drei")]
    pairs[50:50] = [(sentence(60), "ein")] * 2 + [("ein", sentence(60))] * (LONG - 2)
    return pairs


def dataset(pairs):
    return tf.data.Dataset.from_tensor_slices(tuple(map(list, zip(*pairs, strict=True))))


def corpus_of(pairs, tokenizer, max_length=40, weights=None, texts=()):
    rows = dataset(pairs)
    training = SourceToTargetTraining(tokenizer)
    return Corpus.from_rows(rows, training, max_length, weights=weights, texts=texts)


def arrays(batches):
    return [
        (inputs["source"].numpy(), inputs["target"].numpy(), labels.numpy())
        for inputs, labels in batches
    ]


def rows(batches):
    """Returns (source, labels) of every row, without padding."""
    for source, _, labels in arrays(batches):
        yield from (
            (tuple(s[s != 0].tolist()), tuple(t[t != 0].tolist()))
            for s, t in zip(source, labels, strict=True)
        )


def same(first, second):
    return len(first) == len(second) and all(
        all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
        for one, two in zip(first, second, strict=True)
    )


class OfNumbers(SourceToTargetTraining):
    """A codec of numbers separated by spaces, such as `"5 6 3"`, on both sides."""

    pad_id, bos_id, eos_id = 0, 2, 3
    fields = dict.fromkeys(
        ("source", "target"),
        Tokens(SimpleNamespace(pad_id=0, vocab_size=100, num_marks=1, identity=lambda: "numbers")),
    )

    def __init__(self):
        pass  # no tokenizers: the rows are already numbers

    def encode(self, columns):
        return {
            name: tf.strings.to_number(tf.strings.split(column), tf.int32)
            for name, column in columns.items()
        }


def corpus_of_numbers(rows):
    """Returns a `Corpus` of pairs of ids whose two sides are equal."""
    side = [" ".join(map(str, row)) for row in rows]
    return Corpus.from_rows(dataset(list(zip(side, side, strict=True))), OfNumbers(), 100)
