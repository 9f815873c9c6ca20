"""Transcripts by Whisper tiny.en, in every form, against NumPy in float64."""

import ctranslate2_file
import numpy as np
import pytest
from forms import FORMS, Forms
from packages import RECORDINGS, WHISPER
from whisper_oracle import RATE, Whisper

import keras_transformer
from keras_transformer.pipelines import SpeechRecognizer
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
