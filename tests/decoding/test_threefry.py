"""Threefry: known answers of its authors, and the random numbers derived from it."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.threefry import threefry, uniforms

# Key, counter and result of `threefry2x32 20` in the authors' file kat_vectors (Random123).
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_known_answers(jit_compile):
    function = tf.function(threefry, jit_compile=jit_compile)
    for key, counter, expected in KNOWN:
        words = [tf.constant([word], tf.uint32) for word in (*key, *counter)]
        assert tuple(int(word[0]) for word in function(*words)) == expected


def test_uniforms_come_from_the_word_at_their_place():
    """Each takes the upper 24 bits of the first word, with its place as the counter."""
    seed = np.array([[0, 0], [-1, -1], [5, -7]], "int32")
    numbers = uniforms(tf.constant(seed), 3)
    assert numbers.dtype == tf.float32
    for b, place in np.ndindex(3, 3):
        words = [tf.constant([int(key) % 2**32], tf.uint32) for key in (*seed[b], place, 0)]
        assert numbers[b, place] == (int(threefry(*words)[0][0]) >> 8) / 2**24


def test_compiled_is_eager_and_longer_sequences_have_the_same_beginning():
    seed = tf.constant([[1, 2], [-3, 4]])
    expected = uniforms(seed, 9).numpy()
    np.testing.assert_array_equal(uniforms(seed, 5), expected[:, :5])
    for jit_compile in (False, True):
        compiled = tf.function(lambda seed: uniforms(seed, 9), jit_compile=jit_compile)
        np.testing.assert_array_equal(compiled(seed), expected)


def test_uniforms_are_uniform_along_places_and_along_seeds():
    """Means, spreads and correlations of neighbours, within four standard errors."""
    numbers = np.arange(300, dtype="int32")
    seed = tf.constant(np.stack([numbers * 0 + 3, numbers], 1))
    draws = uniforms(seed, 211).numpy()
    assert draws.min() >= 0 and draws.max() < 1
    error = (1 / 12 / draws.size) ** 0.5
    assert abs(draws.mean() - 0.5) < 4 * error
    assert abs((draws**2).mean() - 1 / 3) < 4 * (4 / 45 / draws.size) ** 0.5
    for first, second in [(draws[1:], draws[:-1]), (draws[:, 1:], draws[:, :-1])]:
        product = (first - 0.5) * (second - 0.5)
        assert abs(product.mean()) < 4 / 12 / product.size**0.5
