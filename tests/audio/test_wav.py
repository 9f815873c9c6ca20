"""WAV files of every format, and one line for everything that is wrong with a file."""

import io
import random
import struct
import wave

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.tasks.speech_recognition.audio.wav import decode_wav, encode_wav, read_wav

TONE = np.sin(np.arange(999) / 7).astype(np.float32) * 0.9
PCM, FLOAT = 1, 3


def riff(*chunks):
    body = b"".join(
        kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
        for kind, data in chunks
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def layout(code=PCM, channels=1, rate=16_000, bits=16, frame=None):
    frame = channels * bits // 8 if frame is None else frame
    return b"fmt ", struct.pack("<HHIIHH", code, channels, rate, rate * frame % 2**32, frame, bits)


def integers(samples, bits):
    """Little-endian integers of `bits` bits; 8 have no sign."""
    whole = np.rint(samples * 2 ** (bits - 1)).astype(int) + 128 * (bits == 8)
    return b"".join(int(v).to_bytes(bits // 8, "little", signed=bits > 8) for v in whole)


def wav(samples=TONE, bits=16, **options):
    return riff(layout(bits=bits, **options), (b"data", integers(samples, bits)))


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_integers_are_read(bits):
    samples = read_wav(wav(bits=bits))
    assert samples.dtype == np.float32
    np.testing.assert_allclose(samples, TONE, atol=max(0.51 * 2.0 ** (1 - bits), 1e-7))


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_floats_are_read(dtype):
    content = riff(layout(FLOAT, bits=8 * int(dtype[-1])), (b"data", TONE.astype(dtype).tobytes()))
    np.testing.assert_array_equal(read_wav(content), TONE)


def test_other_chunks_an_extended_format_and_the_size_of_a_stream_are_accepted():
    kind, short = layout()
    extended = struct.pack("<H", 0xFFFE) + short[2:] + struct.pack("<HHIH", 22, 16, 4, PCM)
    extended += bytes(14)
    data = integers(TONE, 16)
    expected = read_wav(wav())
    content = riff((b"LIST", b"odd"), (kind, extended), (b"data", data), (b"cue ", b"1234"))
    np.testing.assert_array_equal(read_wav(content), expected)
    stream = wav().replace(b"data" + struct.pack("<I", len(data)), b"data\xff\xff\xff\xff")
    np.testing.assert_array_equal(read_wav(stream), expected)


def test_channels_are_averaged_and_rates_are_converted():
    both = np.stack([TONE, -TONE / 2], axis=1).reshape(-1)
    mixed = read_wav(wav(both, channels=2))
    np.testing.assert_allclose(mixed, TONE / 4, atol=1e-4)
    times = np.arange(44_100) / 44_100
    faster = read_wav(wav(0.5 * np.sin(2 * np.pi * 440 * times), rate=44_100))
    expected = 0.5 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    assert len(faster) == 16_000
    np.testing.assert_allclose(faster[100:-100], expected[100:-100], atol=2e-3)


def test_a_written_file_is_read_by_python_and_by_us(tmp_path):
    path = tmp_path / "tone.wav"
    path.write_bytes(encode_wav(np.append(TONE, [1.5, -1.5]), 8000))
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (1, 8000, 2)
        theirs = np.frombuffer(file.readframes(-1), "<i2")
    assert theirs[-2:].tolist() == [32767, -32768]
    np.testing.assert_array_equal(read_wav(path, 8000), theirs / np.float32(32768))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a WAV file"),
        (b"ID3" + bytes(50), "is not a WAV file.* ffmpeg -i INPUT -ac 1 OUTPUT.wav converts"),
        (riff(layout()), "has no chunk 'data'"),
        (riff((b"data", b"12")), "has no chunk 'fmt', or has it after the samples"),
        (riff(layout(), (b"data", b"")), "has no samples"),
        (wav()[:-100], "is truncated: its chunk 'data' should have 1,998 bytes, but only 1,898 f"),
        (riff(layout(), (b"data", b"123")), "3 bytes of samples are not a multiple of 2"),
        (riff((b"fmt ", bytes(9)), (b"data", b"12")), "chunk 'fmt' of 9 bytes; it must have at l"),
        (wav(channels=0), "wrong chunk 'fmt': 0 channels of 16 bits in 0 bytes"),
        (wav(frame=4), "wrong chunk 'fmt': 1 channels of 16 bits in 4 bytes"),
        (wav(rate=0), "must have 1,000 to 768,000 samples per second. Received: 0"),
        (wav(rate=2**32 - 1), "Received: 4,294,967,295"),
        (riff(layout(7, bits=8), (b"data", b"12")), "has 8 bits of mu-law; .*-c:a pcm_s16le"),
        (riff(layout(2, bits=4), (b"data", b"12")), "has 4 bits of ADPCM"),
        (riff(layout(bits=12, frame=2), (b"data", b"12")), "has 12 bits of PCM"),
        (
            riff(layout(FLOAT, bits=32), (b"data", np.float32([0, np.nan]).tobytes())),
            "samples must be finite numbers. Received: NaN or infinity",
        ),
        (
            riff(layout(FLOAT, bits=32), (b"data", np.float32([0, -3e4]).tobytes())),
            "samples must be from -1 to 1; divide integers of 16 bits by 32768. Received: 30000",
        ),
        (
            riff(layout(FLOAT, bits=64), (b"data", np.float64([1e300, 0]).tobytes())),
            "Received: 1e.300",
        ),
    ],
)
def test_a_wrong_file_is_reported_in_one_line(content, message, tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_wav(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(ValueError, match="no.wav: cannot be read: No such file or directory."):
        read_wav(tmp_path / "no.wav")


def test_a_damaged_file_is_read_or_refused():
    """Never another exception, and never memory that the file does not have."""
    rng, whole = random.Random(5), wav(TONE[:60])
    for _ in range(2000):
        content = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            content[rng.randrange(48)] = rng.choice((0, 1, 2, 255, rng.randrange(256)))
        try:
            samples = read_wav(bytes(content[: rng.choice((len(content), rng.randrange(60)))]))
        except ValueError as error:
            assert "\n" not in str(error)
        else:
            assert np.isfinite(samples).all() and 0 < len(samples) <= 16 * len(whole)


def test_files_are_decoded_in_a_graph():
    both = np.stack([TONE, TONE / 3], axis=1).reshape(-1)
    files = [wav(), wav(both[:400], channels=2)]
    samples = tf.function(decode_wav)(tf.constant(files))
    assert samples.row_lengths().numpy().tolist() == [999, 200]
    for row, content in zip(samples, files, strict=True):
        np.testing.assert_allclose(row, read_wav(content), atol=1e-7)
    assert tf.function(decode_wav)(tf.constant([], tf.string)).shape[0] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (wav(rate=8000), "must have 16000 samples per second. Received: 8000. Convert it with: ff"),
        (wav(bits=24), "Can only read 16-bit WAV files, but received 24"),
        (wav()[:-100], "Data too short when trying to read string"),
        (b"", "Data too short when trying to read string"),
        (riff(layout(), (b"data", b"")), "a WAV file must have samples"),
    ],
    ids=["rate", "24 bits", "truncated", "no file", "no samples"],
)
def test_a_wrong_file_is_an_error_in_a_graph(content, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.function(decode_wav)(tf.constant([content]))


def test_a_file_object_of_python_is_not_a_path():
    with pytest.raises(TypeError):
        read_wav(io.BytesIO(wav()))
