"""Log-mel frames against a Fourier transform in float64, and against transformers."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from marks import slow

from keras_transformer.tasks.speech_recognition.audio.log_mel import LogMel

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
RATE = 16_000


def signals(seconds):
    """Noise, tones on and between the frequencies of the transform, silence and clipped sound."""
    times = np.arange(int(seconds * RATE)) / RATE
    noise = np.random.default_rng(3).normal(size=len(times))

    def tone(hertz):
        return np.sin(2 * np.pi * hertz * times)

    sounds = {
        "noise": 0.1 * noise,
        "tone of 1000 Hz": 0.7 * tone(1000),
        "tone of 1013.7 Hz": 0.7 * tone(1013.7),
        "tone of 123.4 Hz": tone(123.4),
        "two tones": 0.5 * tone(440) + 1e-3 * tone(3001),
        "silence": 0 * times,
        "silence after a tone": np.where(times < seconds / 2, tone(500), 0),
        "clipped": np.clip(3 * tone(300.3) + 0.01 * noise, -1, 1),
        "very quiet": 1e-5 * tone(777),
    }
    return {name: sound.astype(np.float32) for name, sound in sounds.items()}


SIGNALS = signals(0.3)


def mel(hertz):
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * np.log(hertz / 1000) / np.log(6.4)


def reference(samples, rate=RATE, window=400, hop=160, num_filters=80):
    """Whisper's features in float64, frame by frame and filter by filter."""
    padded = np.pad(samples.astype(np.float64), window // 2, mode="reflect")
    hann = np.hanning(window + 1)[:-1]
    fine = np.linspace(0, rate / 2, 200_001)
    mels = np.array([mel(hertz) for hertz in fine])
    edges = np.interp(np.linspace(0, mel(rate / 2), num_filters + 2), mels, fine)
    bins = np.fft.rfftfreq(window, 1 / rate)
    frames = []
    for number in range(len(samples) // hop):
        frame = padded[number * hop :][:window]
        power = np.abs(np.fft.rfft(frame * hann)) ** 2
        values = []
        for low, middle, high in zip(edges, edges[1:], edges[2:], strict=False):
            triangle = np.interp(bins, [low, middle, high], [0, 1, 0], left=0, right=0)
            values.append(power @ triangle * 2 / (high - low))
        frames.append(np.log10(np.maximum(values, 1e-10)))
    frames = np.array(frames)
    return (np.maximum(frames, frames.max() - 8) + 4) / 4


def check_amplitudes(frames, expected):
    """Compares frames of one recording by their amplitudes relative to the loudest one.

    Kernels of other processors add in another order. The error of a sum is relative to the largest
    term, so that its logarithm changes the more, the quieter the value is: by 4e-5 at most.
    """
    frames, expected = np.asarray(frames, np.float64), np.asarray(expected, np.float64)
    amplitudes, wanted = (10 ** (2 * (values - expected.max())) for values in (frames, expected))
    np.testing.assert_allclose(amplitudes, wanted, rtol=0, atol=2e-6)
    np.testing.assert_allclose(frames, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", SIGNALS)
def test_frames_equal_a_fourier_transform_in_float64(name):
    ours = LogMel()(SIGNALS[name][None])
    assert ours.shape == (1, 30, 80)
    np.testing.assert_allclose(ours[0], reference(SIGNALS[name]), atol=1e-4)


@pytest.mark.parametrize(
    ("rate", "window", "hop", "num_filters"),
    [(8000, 128, 50, 11), (22_050, 400, 400, 7), (1000, 600, 80, 301)],
)
def test_other_sizes(rate, window, hop, num_filters):
    samples = SIGNALS["clipped"][:4321]
    ours = LogMel(rate, window, hop, num_filters)(samples[None])
    expected = reference(samples, rate, window, hop, num_filters)
    np.testing.assert_allclose(ours[0], expected, atol=1e-4)


def test_a_row_has_the_same_frames_in_every_batch():
    """Other rows, what follows after the end, and the length of the batch have no influence."""
    features, lengths = LogMel(), np.array([4800, 3217, 170, 90, 0], np.int32)
    batch = np.full((5, 5000), 0.9, np.float32)  # also after the end
    for row, length, sound in zip(batch, lengths, SIGNALS.values(), strict=False):
        row[:length] = sound[:length]
    frames = tf.function(features)(batch, lengths).numpy()
    assert np.isfinite(frames).all() and frames.shape == (5, 31, 80)
    counts = features.frame_counts(lengths)
    assert counts.tolist() == [30, 20, 1, 0, 0]
    for row, samples, length, count in zip(frames, batch, lengths, counts, strict=True):
        if count:
            alone = features(samples[None, :length])[0]
            check_amplitudes(row[:count], alone)
        assert not row[count:].any()


@pytest.mark.parametrize("size", [0, 1, 159])
def test_a_recording_shorter_than_a_hop_has_no_frames(size):
    samples, dynamic = np.zeros([2, size], np.float32), tf.TensorSpec([None, None])
    for function in (LogMel(), tf.function(LogMel(), input_signature=[dynamic])):
        assert function(samples).shape == (2, 0, 80)
    assert LogMel()(samples, np.array([size, 0])).shape == (2, 0, 80)


def test_sound_after_the_last_frame_does_not_set_the_limit_of_a_row():
    """A click in the samples that no frame of the row reaches, but one of a longer row would."""
    sound = 1e-4 * SIGNALS["two tones"][:4000]
    sound[3900] = 1
    batch = np.pad(sound, (0, 1000))[None]
    frames, alone = LogMel()(batch, np.array([3999])), LogMel()(sound[None, :3999])
    check_amplitudes(frames[0, :24], alone[0])
    assert alone.shape == (1, 24, 80) and alone[0].numpy().max() < 0.5


def test_a_config_round_trip():
    features = LogMel(8000, 256, 100, 9)
    assert LogMel.from_config(features.config()).config() == features.config()
    assert features.config() == {"sample_rate": 8000, "window": 256, "hop": 100, "num_filters": 9}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"window": 401}, ValueError, "`window` must be even. Received: window=401"),
        ({"hop": 401}, ValueError, "`hop` must be at most `window`.*hop=401, window=400"),
        ({"num_filters": 202}, ValueError, "`num_filters` must be at most .*=202, window=400"),
        ({"sample_rate": 16}, ValueError, "`sample_rate` must be at least 1000"),
        ({"num_filters": 0}, ValueError, "`num_filters` must be at least 1"),
        ({"sample_rate": 16e3}, TypeError, "`sample_rate` must be an integer"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        LogMel(**options)


def test_samples_that_are_not_floats_of_rank_2_are_refused():
    for samples in (np.zeros([1, 900], np.int16), np.zeros(900, np.float32)):
        with pytest.raises(
            TypeError, match="`samples` must be floats from -1 to 1, of shape .B, N"
        ):
            LogMel()(samples)


def test_lengths_beyond_the_samples_are_the_whole_row():
    sound = SIGNALS["two tones"][None, :1000]
    frames = LogMel()(np.repeat(sound, 2, axis=0), np.array([5000, -3]))
    np.testing.assert_array_equal(frames[0], LogMel()(sound)[0])
    assert not frames[1].numpy().any()


@pytest.mark.parametrize("quantize", ["none", slow("float16"), slow("int8")])
def test_a_tflite_file_has_the_same_frames(quantize):
    """Without Flex operators; the matrices are not rounded, even in a file in int8."""
    engine = pytest.importorskip("ai_edge_litert.interpreter")
    names = "two tones", "clipped", "silence", "tone of 1013.7 Hz"
    features, samples = LogMel(), np.stack([SIGNALS[name] for name in names])
    lengths = np.array([4800, 2000, 4800, 4800], np.int32)
    function = tf.function(
        features, input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None], tf.int32)]
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    if quantize != "none":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    interpreter = engine.Interpreter(model_content=converter.convert(), num_threads=1)
    values = {np.float32: samples, np.int32: lengths}
    inputs = interpreter.get_input_details()
    for detail in inputs:
        interpreter.resize_tensor_input(detail["index"], values[detail["dtype"]].shape)
    interpreter.allocate_tensors()
    for detail in inputs:
        interpreter.set_tensor(detail["index"], values[detail["dtype"]])
    interpreter.invoke()
    frames = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    for row, expected, count in zip(
        frames, features(samples, lengths), lengths // 160, strict=True
    ):
        check_amplitudes(row[:count], expected[:count])
        assert not row[count:].any()


THEIRS = """
import sys
import numpy as np
from transformers import WhisperFeatureExtractor
sounds = np.load(sys.argv[1])
features = {
    f"{name} {size}": WhisperFeatureExtractor(feature_size=size)(
        sounds[name], sampling_rate=16000, return_tensors="np"
    )["input_features"][0]
    for size in (80, 128)
    for name in sounds
}
np.savez(sys.argv[2], **features)
"""


@pytest.mark.slow
def test_frames_equal_those_of_transformers(tmp_path):
    sounds = signals(3)
    np.savez(tmp_path / "sounds.npz", **sounds)
    paths = [str(tmp_path / name) for name in ("sounds.npz", "features.npz")]
    done = subprocess.run([PYTHON, "-c", THEIRS, *paths], capture_output=True, text=True)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(
            "torch and transformers are missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python "
            "that has them"
        )
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = np.load(paths[1])
    for size in (80, 128):
        for name, sound in sounds.items():
            ours = LogMel(num_filters=size)(np.pad(sound, (0, 30 * RATE - len(sound)))[None])
            np.testing.assert_allclose(ours[0].numpy().T, theirs[f"{name} {size}"], atol=1e-4)
