"""Input strings that are not UTF-8."""

import random

import numpy as np
import pytest
import tensorflow as tf
from pipelines import generator, translator

from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.tasks.results import to_n_best
from keras_transformer.tasks.strings import generate_strings, is_utf8

EDGES = [
    b"", b"\xef\xbb\xbfabc", b"a\0b", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xff",
    b"abc\xc3", b"\xf8\x88\x80\x80\x80",
    *(text.encode() for text in ("\ufffd", "\uffff", "\ufdd0", "\x80", "\U0010ffff", "Köln 👋")),
]  # fmt: skip
BYTES = [*range(256), *([0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0x80, 0x90, 0xA0, 0xBD, 0xBF] * 30)]


def decodes(content):
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def test_valid_utf8_is_what_python_decodes():
    draw = random.Random(0)
    strings = [bytes(draw.choices(BYTES, k=draw.randint(1, 6))) for _ in range(5000)] + EDGES
    expected = [decodes(string) for string in strings]
    assert 100 < sum(expected) < len(strings) - 100
    assert is_utf8(tf.constant(strings)).numpy().tolist() == expected


@pytest.mark.parametrize("make", [translator, generator])
def test_invalid_utf8_has_no_output_and_does_not_affect_others(make):
    pipeline, seen = make(), []

    def decode(ids):
        seen.append(ids.to_list())
        tokens = tf.tile(tf.reshape(ids.to_tensor()[:, 0], [-1, 1, 1]), [1, 2, 1])  # [B, M, L=1]
        return tokens, tf.fill([len(seen[-1]), 2], -1.5)

    def run(strings):
        return generate_strings(
            pipeline.tokenizers, 11, decode, tf.constant(strings), pipeline.blank
        )

    outputs = run([b"a cat", b"a \xff cat" * 99, b"", b"the dog"])
    alone = run([b"a cat", b"", b"the dog"])
    assert seen[0][1] == seen[0][2], "the model reads it as empty"
    for name in ("text", "score", "truncated", "empty"):
        values = outputs[name].numpy()
        np.testing.assert_array_equal(np.delete(values, 1, axis=0), alone[name].numpy())
    assert outputs["text"].numpy()[1].tolist() == [b"", b""]
    assert outputs["score"].numpy()[1].tolist() == [NONE, NONE]
    assert not outputs["truncated"].numpy()[1] and outputs["empty"].numpy()[1]
    (best,) = to_n_best(outputs, 2)[1]
    assert (best.text, best.truncated) == ("", False)
