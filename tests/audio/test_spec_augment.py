"""Masks of SpecAugment against loops."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.tasks.speech_recognition.audio.spec_augment import num_draws, spec_augment

LENGTHS = np.array([30, 17, 4, 0])
OPTIONS = {"time_masks": 2, "max_time_mask": 5, "frequency_masks": 1, "max_frequency_mask": 3}


@pytest.fixture(scope="module")
def example():
    rng = np.random.default_rng(1)
    frames = rng.normal(size=(4, 31, 7)).astype(np.float32)
    for row, length in zip(frames, LENGTHS, strict=True):
        row[length:] = 0
    return frames, rng.random((4, 6), np.float32)


def reference(draws, frames, lengths):
    result = frames.copy()
    for row, numbers, length in zip(result, draws, lengths, strict=True):
        mean = row[:length].mean() if length else 0
        masks = [
            (numbers[0:2], length, min(5, int(0.2 * length)), 0),
            (numbers[2:4], length, min(5, int(0.2 * length)), 0),
            (numbers[4:6], 7, 3, 1),
        ]
        for (wide, place), size, widest, axis in masks:
            width = int(wide * (widest + 1))
            begin = int(place * (size - width + 1))
            view = row[:length] if axis == 0 else row[:length].T
            view[begin : begin + width] = mean
    return result


def test_masks_equal_loops(example):
    frames, draws = example
    masked = tf.function(lambda *args: spec_augment(*args, **OPTIONS))(draws, frames, LENGTHS)
    np.testing.assert_allclose(masked, reference(draws, frames, LENGTHS), atol=1e-6)
    assert (masked.numpy() != frames).any(axis=(1, 2)).tolist() == [True, True, True, False]
    half = spec_augment(draws, frames.astype(np.float16), LENGTHS, **OPTIONS)
    assert half.dtype == "float16"


@pytest.mark.parametrize("value", [0.0, np.nextafter(np.float32(1), np.float32(0))])
def test_extreme_draws_stay_within_a_recording(example, value):
    frames, draws = example
    draws = np.full_like(draws, value)
    masked = spec_augment(draws, frames, LENGTHS, **OPTIONS)
    np.testing.assert_allclose(masked, reference(draws, frames, LENGTHS), atol=1e-6)
    assert not masked[1, 17:].numpy().any()


def test_without_masks_nothing_changes(example):
    frames, draws = example
    assert num_draws(2, 1) == 6 and num_draws(0, 0) == 0
    assert spec_augment(draws[:, :0], frames, LENGTHS) is frames
    with pytest.raises(ValueError, match="`draws` must have 6 numbers.* Received: 4"):
        spec_augment(draws[:, :4], frames, LENGTHS, **OPTIONS)
