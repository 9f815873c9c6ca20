"""WAV files as samples, in Python and in a graph."""

import math
import os
import struct

import numpy as np
import tensorflow as tf

from keras_transformer.files import read_bytes
from keras_transformer.tasks.speech_recognition.audio.resampling import resample
from keras_transformer.tensors import Tensor

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
NAMES = {2: "ADPCM", 6: "A-law", 7: "mu-law", 0x55: "MP3"}
UNTIL_THE_END = 0xFFFFFFFF  # the size that programs write which cannot go back in their output
RATES = 1_000, 768_000  # slower ones would grow without limit when they are resampled
MOST_CHANNELS = 64
LOUDEST = 32.0  # louder than any clipped recording, softer than integers of 16 bits


def read_wav(
    source: str | os.PathLike | bytes, sample_rate: int = 16_000, name: str | None = None
) -> np.ndarray:
    """Reads a WAV file.

    Integers of 8, 16, 24 and 32 bits and floats of 32 and 64 bits are read. Channels are averaged,
    and other sample rates are converted: see `resample`.

    Args:
        source: Path of the file, or its bytes.
        sample_rate: Samples per second of the result.
        name: Name of the recording in errors. `None`: its path.

    Returns:
        Samples from -1 to 1, `[N]`, float32.

    Raises:
        ValueError: If the file cannot be read, is not such a WAV file or is damaged, or has no
            samples or others than `check_range` accepts. One line that begins with the name.
    """
    if isinstance(source, bytes):
        content, name = source, name or "the WAV bytes"
    else:
        content, name = read_bytes(source), name or os.fspath(source)
    try:
        samples, rate = _decoded(content)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return at_rate(samples, rate, sample_rate, name)


def at_rate(samples: np.ndarray, rate: int, sample_rate: int, name: str) -> np.ndarray:
    """Returns the mean of the channels of a recording at another sample rate.

    Args:
        samples: Samples `[N, channels]`, floats.
        rate: Their number per second.
        sample_rate: Number per second of the result.
        name: Name of the recording, for errors.

    Returns:
        Samples `[N']`, float32.

    Raises:
        ValueError: If there are no samples, or others than `check_range` accepts. One line.
    """
    if not len(samples):
        raise ValueError(f"{name}: has no samples.")
    check_range(samples, name)
    if not RATES[0] <= rate <= RATES[1]:
        raise ValueError(
            f"{name}: must have {RATES[0]:,} to {RATES[1]:,} samples per second. "
            f"Received: {rate:,}."
        )
    if samples.shape[1] == 1 and rate == sample_rate:  # an hour then needs no float64
        return samples[:, 0].astype(np.float32, copy=False)
    mono = samples.mean(axis=1, dtype=np.float64)
    return resample(mono, sample_rate, rate).astype(np.float32)


def check_range(samples: np.ndarray, name: str) -> None:
    """Requires samples from -1 to 1, but accepts what is only clipped.

    Features depend on the loudness, so that integers of 16 bits as floats would have a transcript,
    but a wrong one.

    Args:
        samples: Floats of any shape.
        name: Name of the recording, for errors.

    Raises:
        ValueError: If a number is not finite or far outside of -1 to 1. One line.
    """
    loudest = float(max(samples.max(initial=0), -samples.min(initial=0)))
    if not math.isfinite(loudest):
        raise ValueError(f"{name}: samples must be finite numbers. Received: NaN or infinity.")
    if loudest > LOUDEST:
        raise ValueError(
            f"{name}: samples must be from -1 to 1; divide integers of 16 bits by 32768. "
            f"Received: {loudest:g}."
        )


def encode_wav(samples: np.ndarray, sample_rate: int = 16_000) -> bytes:
    """Returns samples as a WAV file with integers of 16 bits and one channel.

    Args:
        samples: Samples from -1 to 1, `[N]`; others are clipped.
        sample_rate: Samples per second.
    """
    values = np.clip(np.rint(np.asarray(samples, np.float64) * 32768), -32768, 32767)
    data = values.astype("<i2").tobytes()
    layout = struct.pack("<HHIIHH", PCM, 1, sample_rate, 2 * sample_rate, 2, 16)
    chunks = b"fmt " + struct.pack("<I", len(layout)) + layout
    chunks += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def _decoded(content):
    """Returns the samples in a WAV file, `[N, channels]`, and their number per second."""
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise ValueError(
            "is not a WAV file, which begins with RIFF and WAVE; ffmpeg -i INPUT -ac 1 OUTPUT.wav "
            "converts other formats."
        )
    layout = data = None
    begin = 12
    while begin + 8 <= len(content) and data is None:
        kind, size = struct.unpack_from("<4sI", content, begin)
        begin += 8
        if kind == b"data":
            size = len(content) - begin if size == UNTIL_THE_END else size
            data = memoryview(content)[begin : begin + size]
        if begin + size > len(content):
            name = kind.decode("ascii", "backslashreplace").strip()
            raise ValueError(
                f"is truncated: its chunk {name!r} should have {size:,} bytes, but only "
                f"{len(content) - begin:,} follow."
            )
        if kind == b"fmt ":
            layout = content[begin : begin + size]
        begin += size + size % 2
    for name, chunk in (("fmt", layout), ("data", data)):
        if chunk is None:
            raise ValueError(f"has no chunk {name!r}, or has it after the samples.")
    return _samples(layout, data)


def _samples(layout, data):
    """Returns the samples in a chunk `data` whose format is `layout`, and their rate."""
    if len(layout) < 16:
        raise ValueError(f"has a chunk 'fmt' of {len(layout)} bytes; it must have at least 16.")
    code, channels, rate, _, frame, bits = struct.unpack_from("<HHIIHH", layout)
    if code == EXTENSIBLE and len(layout) >= 26:
        code = struct.unpack_from("<H", layout, 24)[0]
    if (code, bits) not in _READERS:
        kind = NAMES.get(code, f"format {code}" if code not in (PCM, FLOAT) else "PCM")
        raise ValueError(
            f"has {bits} bits of {kind}; integers of 8, 16, 24 or 32 bits and floats of 32 or 64 "
            "bits are read. Convert it with: ffmpeg -i INPUT -c:a pcm_s16le OUTPUT.wav."
        )
    if not 1 <= channels <= MOST_CHANNELS or frame != channels * bits // 8:
        raise ValueError(
            f"has a wrong chunk 'fmt': {channels} channels of {bits} bits in {frame} bytes."
        )
    if len(data) % frame:
        raise ValueError(
            f"is truncated: {len(data):,} bytes of samples are not a multiple of {frame}."
        )
    return _READERS[code, bits](data).reshape(-1, channels), rate


def _integers(bits):
    """Returns the function that reads integers; 8 bits have no sign, others have one."""

    def read(data):
        if bits == 8:
            return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
        if bits == 24:  # as the upper bytes of 32 bits
            whole = np.zeros((len(data) // 3, 4), np.uint8)
            whole[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
            values = whole.view("<i4")[:, 0]
        else:
            values = np.frombuffer(data, f"<i{bits // 8}")
        return np.divide(values, 2.0 ** (15 if bits == 16 else 31), dtype=np.float32)

    return read


def _floats(bits):
    def read(data):
        return np.frombuffer(data, f"<f{bits // 8}")

    return read


_READERS = {
    **{(PCM, bits): _integers(bits) for bits in (8, 16, 24, 32)},
    **{(FLOAT, bits): _floats(bits) for bits in (32, 64)},
}


def decode_wav(contents: Tensor, sample_rate: int = 16_000) -> Tensor:
    """Decodes WAV files in a graph: integers of 16 bits, at one sample rate.

    Channels are averaged.

    Args:
        contents: Bytes of the files, `[B]`, strings.
        sample_rate: Required number of samples per second.

    Returns:
        Samples from -1 to 1, a `tf.RaggedTensor` `[B, (N)]`, float32.

    Raises:
        tf.errors.InvalidArgumentError: If a file has another format or sample rate, is damaged or
            has no samples.
    """
    return tf.map_fn(
        lambda content: _decode_one(content, sample_rate),
        contents,
        fn_output_signature=tf.RaggedTensorSpec([None], tf.float32, 0),
    )


def _decode_one(content, sample_rate):
    """Returns the samples `[N]` of a file."""
    samples, rate = tf.audio.decode_wav(content)  # [N, channels]
    found = tf.strings.format(
        f"a WAV file must have {sample_rate} samples per second. Received: {{}}. Convert it with: "
        f"ffmpeg -i INPUT -ar {sample_rate} -c:a pcm_s16le OUTPUT.wav",
        rate,
    )
    checks = [
        tf.debugging.Assert(tf.equal(rate, sample_rate), [found]),
        tf.debugging.Assert(tf.shape(samples)[0] > 0, ["a WAV file must have samples."]),
    ]
    with tf.control_dependencies(checks):
        return tf.reduce_mean(samples, axis=1)
