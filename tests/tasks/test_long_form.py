"""Long recordings by timestamps, and further attempts at poor windows, without a model."""

import dataclasses
import zlib

import numpy as np
import pytest
from pipelines import speech_recognizer

from keras_transformer.tasks.speech_recognition import features
from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel
from keras_transformer.tasks.speech_recognition.by_timestamps import split
from keras_transformer.tasks.speech_recognition.config import SpeechInput
from keras_transformer.tasks.speech_recognition.fallback import (
    Fallback,
    check_temperatures,
    seed_of,
)
from keras_transformer.tasks.speech_recognition.long_recordings import joined
from keras_transformer.tasks.speech_recognition.silence import Silence
from keras_transformer.tasks.speech_recognition.transcript import Transcript

FIRST, STRIDE = 100, 2


def segments_in_python(tokens, count):
    """The segments that timestamps enclose, token by token, and where the next window begins."""
    pairs = [n for n in range(len(tokens) - 1) if min(tokens[n], tokens[n + 1]) >= FIRST]
    if not pairs:
        times = [token for token in tokens if token >= FIRST]
        end = count if not times or times[-1] == FIRST else STRIDE * (times[-1] - FIRST)
        return [(0, end, tokens)], count
    found, current = [], []
    for place, token in enumerate(tokens):
        current.append(token)
        if place in pairs:
            found.append(current)
            current = []
    times = [(STRIDE * (part[0] - FIRST), STRIDE * (part[-1] - FIRST)) for part in found]
    ends_alone = tokens[-1] >= FIRST > tokens[-2]
    if ends_alone:
        found.append(current)
        times.append((STRIDE * (current[0] - FIRST), STRIDE * (current[-1] - FIRST)))
        step = count
    else:
        found[-1] = [*found[-1], tokens[pairs[-1] + 1]]
        step = times[-1][1]
    return [(*time, part) for time, part in zip(times, found, strict=True)], step


def test_a_window_is_split_at_pairs_of_timestamps():
    rng = np.random.default_rng(0)
    for number in range(300):
        tokens, time = [FIRST], 0
        for _ in range(rng.integers(0, 4)):
            tokens += rng.integers(0, 50, rng.integers(1, 4)).tolist()
            time += int(rng.integers(1, 6))
            tokens += [FIRST + time] * 2
        ending = number % 4
        if ending == 0 and len(tokens) > 1:
            tokens = tokens[:-1]  # a single timestamp at the end
        elif ending == 1:
            tokens += [3, 5]  # a text that the window may have cut
        elif ending == 2:
            tokens += [3, FIRST + time + 1]
        if len(tokens) < 2:
            continue
        assert split(tokens, FIRST, 60, STRIDE) == segments_in_python(tokens, 60)
    assert split([], FIRST, 60, STRIDE) == ([(0, 60, [])], 60)
    assert split([7, 8], FIRST, 60, STRIDE) == ([(0, 60, [7, 8])], 60)


@pytest.mark.parametrize("count", [3, 23, 24, 25, 70])
def test_frames_of_a_recording_do_not_depend_on_chunks(count, monkeypatch):
    monkeypatch.setattr(features, "CHUNK", 8)
    speech = SpeechInput(num_mel_filters=5, sample_rate=8000, window_length=24, hop_length=7)
    samples = np.random.default_rng(count).normal(0, 0.2, count * 7 + 3).astype("float32")
    samples[: len(samples) // 2] *= 1e-6  # below the range of the loudest frame
    whole = LogMel(**speech.features)(samples[None])[0]
    frames = features.frames_of_recording(speech, samples)
    assert frames.shape == (count, 5)
    np.testing.assert_allclose(frames, whole, rtol=0, atol=1e-5)


@dataclasses.dataclass
class Attempt:
    """The numbers of a window that a `Fallback` looks at."""

    mean_log_probability: float
    compression_ratio: float = 1.0
    no_speech: float = 0.0
    temperature: float = 0.0


def test_poor_windows_are_repeated_until_they_are_not():
    good, improbable = Attempt(-0.5), Attempt(-2.0)
    silent = Attempt(-2.0, no_speech=0.9)
    table = {
        0: [good],
        1: [improbable, Attempt(-1.5), good],
        2: [silent],
        3: [Attempt(-0.1, compression_ratio=3.0), Attempt(-3.0), Attempt(-4.0)],
        4: [Attempt(-1.2, 3.0), Attempt(-1.4, 3.0), Attempt(-1.3, 3.0)],
    }
    asked = []

    def attempt(temperature, numbers):
        asked.append((temperature, [*numbers]))
        return [table[number][len(asked) - 1] for number in numbers]

    chosen = Fallback(Silence(), (0.4, 0.8))(attempt, 5)
    assert asked == [(0.0, [0, 1, 2, 3, 4]), (0.4, [1, 3, 4]), (0.8, [1, 3, 4])]
    assert chosen == [good, good, silent, table[3][1], table[4][0]]
    asked.clear()
    assert Fallback(Silence(), ())(attempt, 5)[1] is improbable
    asked.clear()
    assert Fallback(None, ())(attempt, 1) == [good]


def test_temperatures_and_windows_that_are_refused():
    assert check_temperatures([0.2, 1]) == (0.2, 1.0)
    for wrong in ([0.0, 0.5], [0.5, 0.2], [-1.0], [0.5, 0.5]):
        with pytest.raises(ValueError, match="`temperatures` must be positive and increase"):
            check_temperatures(wrong)
    with pytest.raises(TypeError, match="`temperatures` must be a list of numbers"):
        check_temperatures("0.2")
    plain = speech_recognizer()
    assert plain.windows == "overlap"
    for name, value, message in (
        ("windows", "timestamps", "`windows` must be 'overlap' for a model without timestamps"),
        ("windows", "all", "`windows` must be one of 'overlap', 'timestamps', 'context'. Rec"),
        ("temperatures", [0.5], "`temperatures` must be empty for a model that does not compute"),
    ):
        with pytest.raises(ValueError, match=message):
            type(plain)(plain.model, plain.tokenizers, **{name: value})
        with pytest.raises(ValueError, match=f"`{name}` is not a choice of the model"):
            plain.with_settings(**{name: value})


def test_the_seed_of_a_window_depends_on_its_sound():
    sound = np.arange(9, dtype=np.float32)
    assert seed_of(sound) == seed_of(sound[::1].copy()) == zlib.crc32(sound.tobytes()) & (2**31 - 1)
    assert seed_of(sound) != seed_of(sound[1:])


def test_windows_that_overlap_keep_their_temperatures():
    results = [Transcript(text, -1.0, 2, temperature=t) for text, t in (("a b", 0.0), ("b c", 0.4))]
    whole = joined(results, [(0.0, 2.0), (1.0, 3.0)])
    assert whole.temperature == 0.4
    assert [window.temperature for window in whole.windows] == [0.0, 0.4]
