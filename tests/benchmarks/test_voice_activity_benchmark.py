"""Checks of `benchmarks/voice_activity.py` that must pass before its results can be trusted."""

import wave

import numpy as np
import pytest


@pytest.mark.parametrize("kind", ["silence", "noise", "hum", "chord"])
def test_pauses_are_around_the_sentences(kind):
    from voice_activity_sound import LONGEST, PAUSES, RATE, SHORTEST, recording

    assert kind in PAUSES
    spoken = [(np.full(count, 0.9, "float32"), text) for count, text in ((5, "a b"), (7, "c"))]
    samples, words = recording(kind, spoken)
    assert words == "a b c" and samples.dtype == np.float32
    (places,) = np.nonzero(samples == np.float32(0.9))
    assert len(places) == 12
    edges = np.flatnonzero(np.diff(places) > 1)
    assert len(edges) == 1
    pauses = places[0], np.diff(places)[edges[0]] - 1, len(samples) - 1 - places[-1]
    assert all(SHORTEST * RATE <= pause <= LONGEST * RATE for pause in pauses)


def test_sentences_and_words(tmp_path):
    from voice_activity import judged
    from voice_activity_sound import sentences, words_of

    for folder, name, line in (
        ("librivox", "transcription", "<s> mister x </s> (1-a)\n"),
        ("cards", "cards.transcription", "<s> ten of clubs  </s> (2)\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(line)
        with wave.open(str(tmp_path / folder / f"{line.split('(')[1][:-2]}.wav"), "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes(np.array([0, 16_384], "<i2").tobytes())
    found = sentences(tmp_path)
    assert [text for _, text in found] == ["mister x", "ten of clubs"]
    np.testing.assert_array_equal(found[1][0], [0, 0.5])
    assert words_of(" Mr. Ill-disposed, 10! ") == "mister ill disposed ten"
    runs = [{"text": "Mr. X. Thank you.", "processor_seconds": t} for t in (2.0, 1.0)]
    result = judged(runs, "mister x y")
    assert (result["inserted"], result["seconds"]) == (1, 1.0)
    assert result["wer"] == pytest.approx(2 / 3)
