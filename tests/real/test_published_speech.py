"""Transcripts by Whisper tiny.en, in every form, against NumPy in float64."""

import ctranslate2_file
import numpy as np
import pytest
from forms import FORMS, Forms
from packages import RECORDINGS, WHISPER
from whisper_oracle import RATE, Whisper

import keras_transformer
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.tasks.speech_recognition.audio.files import read_audio
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav

pytestmark = [pytest.mark.real, pytest.mark.long]

FORMS = [form for form in FORMS if form != "ctranslate2"]  # to which Whisper is not exported


@pytest.fixture(scope="module")
def recordings():
    """Four of the ten: NumPy takes seconds for each."""
    paths = sorted(RECORDINGS.folder().glob("*/*.wav"))
    assert len(paths) == 10
    return paths[::3]


@pytest.fixture(scope="module")
def silent(tmp_path_factory):
    """A recording without speech, for which the model invents a text."""
    folder, times = tmp_path_factory.mktemp("silent"), np.arange(5 * RATE) / RATE
    chord = sum(0.1 * np.sin(2 * np.pi * hertz * times) for hertz in (262, 330, 392))
    (folder / "chord.wav").write_bytes(encode_wav(chord.astype(np.float32), RATE))
    return [folder / "chord.wav"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whisper")
    ctranslate2_file.write_hugging_face(WHISPER.folder(), folder)
    return folder


@pytest.fixture(scope="module")
def whisper(checkpoint):
    return Whisper(checkpoint)


@pytest.fixture(scope="module")
def forms(checkpoint, recordings, silent, tmp_path_factory):
    sounds = [recordings[0], *silent]
    return Forms(checkpoint, tmp_path_factory.mktemp("forms"), sounds, ("--greedy",))


@pytest.mark.parametrize("form", FORMS)
def test_transcripts_are_those_of_the_checkpoint(form, whisper, forms, recordings):
    """Every token is the most probable one; in int8 one of them may differ."""
    answers = forms.answers(form, recordings)
    assert all(answers)
    equal = [whisper.read(*pair)[0] for pair in zip(recordings, answers, strict=True)]
    assert sum(equal) >= len(recordings) - (form == "litert_int8")


@pytest.mark.parametrize("form", FORMS)
def test_silence_has_the_numbers_of_the_checkpoint(form, whisper, forms, recordings, silent):
    """They are compared where the text is the one that the numbers are about."""
    tolerance = 0.05 if form == "litert_int8" else 1e-4
    opened = keras_transformer.open(forms.path(form))
    keeping = SpeechRecognizer.from_run(forms.run).with_settings(no_speech_threshold=1.0)
    paths = [*map(str, [*recordings[:2], *silent])]
    answer = opened.answer_batch
    for path, result, kept in zip(paths, answer(paths), keeping.transcribe(paths), strict=True):
        assert (result.text == "") == (path in map(str, silent)) and kept.text
        _, no_speech, mean = whisper.read(path, kept.text)
        assert result.no_speech == pytest.approx(no_speech, abs=tolerance)
        if result.text in ("", kept.text):
            assert result.mean_log_probability == pytest.approx(mean, abs=tolerance)


@pytest.fixture(scope="module")
def long_recording(tmp_path_factory):
    """All ten recordings twice, with pauses of zeros or noise of half a second to five seconds."""
    rng, parts = np.random.default_rng(0), []
    for number, path in enumerate(2 * sorted(RECORDINGS.folder().glob("*/*.wav"))):
        count = round(RATE * (0.5 + 1.5 * (number % 4)))
        noise = 0.003 * rng.standard_normal(count) * (number % 2)
        parts += [read_audio(path, RATE), noise.astype(np.float32)]
    path = tmp_path_factory.mktemp("long") / "long.wav"
    path.write_bytes(encode_wav(np.concatenate(parts), RATE))
    return path


@pytest.mark.parametrize("windows", ["timestamps", "context", "overlap"])
@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("run", "litert_int8")])
def test_a_long_recording_has_the_segments_of_the_run(form, windows, forms, long_recording):
    settings = {"windows": windows, "timestamps": True}
    (ours,), (theirs,) = (
        keras_transformer.open(path).with_settings(**settings).answer_batch([str(long_recording)])
        for path in (forms.path(form), forms.run)
    )
    assert len(theirs.segments) > 15 and len(theirs.windows) >= 5 and theirs.windows[-1].end > 100
    assert (ours.text, ours.segments) == (theirs.text, theirs.segments)
    for own, its in zip(ours.windows, theirs.windows, strict=True):
        assert (own.start, own.end, own.text) == (its.start, its.end, its.text)
        assert own.no_speech == pytest.approx(its.no_speech, abs=1e-4)
        assert own.mean_log_probability == pytest.approx(its.mean_log_probability, abs=1e-4)
