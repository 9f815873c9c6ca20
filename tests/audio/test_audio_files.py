"""WAV and FLAC files by their content, not by their name."""

import sys

import numpy as np
import pytest

from keras_transformer.installation import install_hint
from keras_transformer.tasks.speech_recognition.audio.files import read_audio
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav, read_wav

TONE = (np.sin(np.arange(800) / 9) * 0.5).astype(np.float32)


def test_wav_files_are_read_whatever_their_name_is(tmp_path):
    path = tmp_path / "tone.flac"
    path.write_bytes(encode_wav(TONE))
    np.testing.assert_array_equal(read_audio(path), read_wav(path))
    with pytest.raises(ValueError, match="^recording 3: is not a WAV file"):
        read_audio(b"nothing", name="recording 3")
    with pytest.raises(ValueError, match="^the bytes of the recording: is not a WAV file"):
        read_audio(b"nothing")


def test_flac_files_are_read(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "tone.flac"
    soundfile.write(path, np.stack([TONE, TONE / 2], axis=1), 16_000)
    np.testing.assert_allclose(read_audio(path), TONE * 0.75, atol=1e-4)
    assert len(read_audio(path.read_bytes(), 8000)) == 400
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match="tone.flac: (is not a readable FLAC file|has no samples)"):
        read_audio(path)


def test_without_soundfile_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(ValueError, match="a.flac: FLAC files need the package soundfile") as error:
        read_audio(b"fLaC", name="a.flac")
    assert install_hint("speech") in str(error.value)
