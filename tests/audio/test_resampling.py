"""Sample rates and speeds against SciPy, and against tones of known frequency."""

import numpy as np
import pytest

from keras_transformer.tasks.speech_recognition.audio.resampling import change_speed, resample

NOISE = np.random.default_rng(2).normal(size=3001)


@pytest.mark.parametrize(
    ("up", "down"), [(160, 441), (441, 160), (1, 3), (2, 1), (10, 9), (320, 160), (7, 7)]
)
def test_it_equals_scipy(up, down):
    signal = pytest.importorskip("scipy.signal")
    ours, theirs = resample(NOISE, up, down), signal.resample_poly(NOISE, up, down)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("count", [0, 1, 2, 40_000])
def test_recordings_of_any_length(count):
    samples = np.ones(count)
    result = resample(samples, 10, 9)
    assert len(result) == -(-count * 10 // 9)
    # A constant keeps its value up to the ripple of the filter, away from the ends.
    np.testing.assert_allclose(result[25:-25], 1, atol=1e-3)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_another_speed_changes_length_and_pitch(factor):
    tone = np.sin(2 * np.pi * 0.05 * np.arange(4000))
    changed = change_speed(tone, factor)
    assert len(changed) == int(np.ceil(round(4000 / factor, 9)))
    expected = np.sin(2 * np.pi * 0.05 * factor * np.arange(len(changed)))
    np.testing.assert_allclose(changed[50:-50], expected[50:-50], atol=2e-3)
    np.testing.assert_array_equal(change_speed(tone, 1.0), tone)


def test_wrong_rates_are_refused():
    with pytest.raises(ValueError, match="`to_rate` and `from_rate` must be positive.*from_rate=0"):
        resample(NOISE, 1, 0)
    with pytest.raises(ValueError, match="`factor` must be from 0.5 to 2. Received: factor=nan"):
        change_speed(NOISE, float("nan"))
