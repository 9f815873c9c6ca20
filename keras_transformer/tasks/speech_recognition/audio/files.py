"""Files of sound: WAV, and FLAC if `soundfile` is installed, which only this module imports."""

import io
import os

import numpy as np

from keras_transformer.files import read_bytes
from keras_transformer.installation import install_hint
from keras_transformer.tasks.speech_recognition.audio.wav import at_rate, read_wav

SUFFIXES = (".wav", ".flac")
FLAC = b"fLaC"  # the first bytes of a file


def read_audio(
    source: str | os.PathLike | bytes, sample_rate: int = 16_000, name: str | None = None
) -> np.ndarray:
    """Reads a WAV or FLAC file, whatever its name is.

    Channels are averaged, and other sample rates are converted: see `resample`.

    Args:
        source: Path of the file, or its bytes.
        sample_rate: Samples per second of the result.
        name: Name of the recording in errors. `None`: its path.

    Returns:
        Samples from -1 to 1, `[N]`, float32.

    Raises:
        ValueError: If the file cannot be read: see `read_wav`; or for FLAC, if soundfile is not
            installed. One line that begins with the name.
    """
    if not isinstance(source, bytes):
        name = name or os.fspath(source)
        source = read_bytes(source)
    name = name or "the bytes of the recording"
    if not source.startswith(FLAC):
        return read_wav(source, sample_rate, name)
    try:
        import soundfile
    except (ImportError, OSError):  # `OSError`: its library is missing
        raise ValueError(
            f"{name}: FLAC files need the package soundfile. Install it with: "
            + install_hint("speech")
        ) from None
    try:
        samples, rate = soundfile.read(io.BytesIO(source), dtype="float32", always_2d=True)
    except (RuntimeError, MemoryError):  # soundfile's errors of the file
        raise ValueError(f"{name}: is not a readable FLAC file.") from None
    return at_rate(samples, rate, sample_rate, name)
