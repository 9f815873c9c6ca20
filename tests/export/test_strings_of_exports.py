"""Texts of loaded exports: read and written in graphs, with the results of eager mode."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines import tokenizer

from keras_transformer.export.runtime import Decoded, OpenGenerator
from keras_transformer.tasks.strings import generate_strings
from keras_transformer.text.tokenizers import Tokenizers

TEXTS = ["a cat", "", "the big dog and the cat and a dog and the big cat runs", " ", "der Hund"]


class Watched:
    """A tokenizer that records whether it runs eagerly, without a plain form."""

    plain = None

    def __init__(self, tokenizer, modes):
        self._tokenizer, self._modes = tokenizer, modes

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def encode(self, texts):
        self._modes.append(tf.executing_eagerly())
        return self._tokenizer.encode(texts)

    def decode(self, ids):
        self._modes.append(tf.executing_eagerly())
        return self._tokenizer.decode(ids)


class Reversing(OpenGenerator):
    """Returns every source, and then its reverse with a lower score."""

    max_length = 11

    def __init__(self, tokenizers, blank):
        self.tokenizers, self.blank = tokenizers, blank

    def find(self, sources, n=1):
        longest = max(map(len, sources), default=1)
        tokens = np.zeros([len(sources), 2, longest], np.int32)
        for rows, source in zip(tokens, sources, strict=True):
            rows[0, : len(source)] = source
            rows[1, : len(source)] = [*source[-2::-1], source[-1]]
        scores = -np.cumsum(np.ones(tokens.shape[:2], np.float32), axis=1)
        return Decoded(tokens, scores, np.tile([False, True], [len(sources), 1]))


@pytest.mark.parametrize("in_python", [False, True])
@pytest.mark.parametrize("blank", [True, False])
def test_texts_are_read_and_written_in_graphs_or_in_python(blank, in_python):
    plain, modes = tokenizer(), []
    watched = plain if in_python else Watched(plain, modes)
    export = Reversing(Tokenizers(watched, watched), blank)
    for texts in (TEXTS, ["one"], [], TEXTS[::-1]):
        ours = export._generate(texts, n=2)
        strings = tf.constant(texts, tf.string, [len(texts)])
        pair = Tokenizers(plain, plain)
        theirs = generate_strings(
            pair, 11, lambda ids: export.decode(ids.to_list()), strings, blank
        )
        assert ours.keys() == theirs.keys() | {"complete"}
        np.testing.assert_array_equal(ours["complete"][:, 0], ours["empty"])
        assert np.all(ours["complete"][:, 1])
        assert ours["source"] == theirs["source"].to_list()
        for name in ("text", "score", "truncated", "empty"):
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    assert modes == ([] if in_python else [False, False]), "one graph to read, one to write"


def test_other_tokenizers_get_graphs_of_their_own():
    export = Reversing(Tokenizers.of(tokenizer()), blank=True)
    assert export.answer_batch(["a cat"])[0].text == "a cat"
    export.tokenizers = Tokenizers.of(tokenizer(25))
    plain = tokenizer(25).encode(["a cat"]).to_list()
    assert export._generate(["a cat"])["source"] == plain
