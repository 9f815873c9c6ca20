"""Exports of a Whisper checkpoint transcribe like the pipeline, with and without timestamps."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
import whisper_folders
from exporting import asked
from marks import long

import keras_transformer
from keras_transformer.export import (
    LiteRTOptions,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_transformer.export.litert import stand_ins
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass
from keras_transformer.pipelines import SpeechRecognizer
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav
from keras_transformer.tasks.speech_recognition.silence import NUMBERS

pytestmark = pytest.mark.slow
CHOICES = [
    *itertools.product(whisper_folders.LANGUAGES, whisper_folders.TASKS, [False, True]),
    ("auto", "transcribe", True),
]
RATE, LENGTHS = 16_000, (2240, 1000, 1700, 2000, 300)


def recordings():
    rng = np.random.default_rng(0)
    for length in LENGTHS:
        tone = np.sin(np.arange(length) * rng.uniform(0.02, 1.0))
        yield encode_wav((0.4 * tone + 0.05 * rng.normal(size=length)).astype("float32"), RATE)


def check_same(ours, theirs):
    """Texts, languages, segments and scores of an export and the pipeline."""
    for one, other in zip(ours, theirs, strict=True):
        assert one == dataclasses.replace(other, log_probability=one.score)
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.no_speech == pytest.approx(other.no_speech, abs=1e-5)
        assert one.mean_log_probability == pytest.approx(other.mean_log_probability, abs=1e-4)


@pytest.fixture(scope="module", params=["text", "timestamps", "beam"])
def pipeline(request, tmp_path_factory):
    """A recognizer whose transcripts differ."""
    folder = tmp_path_factory.mktemp("hf")
    rules = {"return_timestamps": request.param == "timestamps"}
    rules |= {"num_beams": 3 if request.param == "beam" else 1}
    whisper_folders.write_folder(folder, rules)
    pipeline = SpeechRecognizer.of_checkpoint(read_checkpoint(folder, source_language="de"))
    factors = {"query/kernel": 3, "cross_attention/output/kernel": 8, "table": 0.5}
    for weight in pipeline.model.weights:
        for path, factor in factors.items():
            if weight.path.endswith(path):
                weight.assign(factor * weight)
    assert len({*pipeline([*recordings()])}) > 1
    return pipeline


@pytest.mark.long
@pytest.mark.parametrize("pipeline", [long("timestamps"), "beam"], indirect=["pipeline"])
def test_a_saved_model(pipeline, tmp_path):
    files = [*recordings()]
    report = export_saved_model(pipeline, tmp_path / "m", files)
    assert report["agreement"] == 1
    model = tf.saved_model.load(str(tmp_path / "m" / "1"))
    answers = model.signatures["serving_default"](recordings=tf.constant(files))
    expected = pipeline.transcribe(files)
    assert [text.decode() for text in answers["transcript"].numpy()] == [x.text for x in expected]
    inputs, _ = pipeline.codec.tensors([pipeline.codec.read(file, "x") for file in files])
    outputs = model.signatures["samples"](**inputs)
    np.testing.assert_array_equal(outputs["tokens"], pipeline.predict(**inputs)["tokens"])
    every = SavedModelSinglePass(tmp_path / "m")
    for language, task, timestamps in CHOICES:
        chosen = {"language": language, "task": task, "timestamps": timestamps}
        every = every.with_settings(**chosen)
        check_same(every.answer_batch(files), pipeline.transcribe(files, **chosen))
    named = {"language": ["fr", "", "auto"], "task": ["translate", "", "transcribe"]}
    some = files[:3]
    named = {name: tf.constant(values) for name, values in named.items()}
    answers = model.signatures["options"](
        recordings=tf.constant(some), timestamps=tf.constant([True, False, True]), **named
    )
    expected = pipeline.transcribe(
        some,
        language=["fr", None, "auto"],
        task=["translate", None, "transcribe"],
        timestamps=[True, False, True],
    )
    check_same(pipeline.codec.results({k: v.numpy() for k, v in answers.items()}), expected)
    for wrong, message in (
        ({"language": ["fr", "x", ""]}, "`language` must be known to the model, such as en, de"),
        ({"task": ["sing", "", ""]}, "`task` must be known to the model"),
    ):
        wrong = {name: tf.constant(values) for name, values in wrong.items()}
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            model.signatures["options"](
                recordings=tf.constant(some), timestamps=tf.fill([3], False), **{**named, **wrong}
            )


@pytest.mark.long
@pytest.mark.parametrize(
    ("pipeline", "quantize"), [long("timestamps", "none"), ("beam", "int8")], indirect=["pipeline"]
)
def test_a_tflite_file(pipeline, quantize, tmp_path):
    pytest.importorskip("ai_edge_litert")
    files, path = [*recordings()], tmp_path / "m.tflite"
    limits = {"max_loss": 100.0, "max_score_loss": 10.0} if quantize == "int8" else {}
    report = export_litert(
        pipeline, path, files, **asked(LiteRTOptions, quantize, batch_sizes=[1, 3], **limits)
    )
    results = LiteRTSinglePass(path).answer_batch(files), pipeline.transcribe(files)
    if quantize == "none":
        assert report["agreement"] == 1
        for ours, theirs in zip(*results, strict=True):
            assert (ours.text, ours.length) == (theirs.text, theirs.length)
            assert ours.score == pytest.approx(theirs.score, abs=1e-4)
    assert len(results[0]) == len(files)
    loaded = LiteRTSinglePass(path)
    for language, task, timestamps in CHOICES:
        chosen = {"language": language, "task": task, "timestamps": timestamps}
        loaded = loaded.with_settings(**chosen)
        ours, theirs = loaded.answer_batch(files), pipeline.transcribe(files, **chosen)
        if quantize == "none":
            check_same(ours, theirs)
        else:
            assert [one.language for one in ours] == [
                one.language if language == "auto" else language for one in ours
            ]
            assert [bool(one.segments) for one in ours] == [timestamps] * len(files)


@pytest.mark.long
@pytest.mark.parametrize("pipeline", ["timestamps", "beam"], indirect=["pipeline"])
def test_an_onnx_file(pipeline, tmp_path):
    pytest.importorskip("onnxruntime")
    files, path = [*recordings()], tmp_path / "m.onnx"
    report = export_onnx(pipeline, path, files)
    assert report["agreement"] == 1
    loaded = keras_transformer.open(path)
    for language, task, timestamps in CHOICES:
        chosen = {"language": language, "task": task, "timestamps": timestamps}
        loaded = loaded.with_settings(**chosen)
        check_same(loaded.answer_batch(files), pipeline.transcribe(files, **chosen))


@pytest.fixture
def partly_silent(tmp_path):
    """A recognizer with thresholds by which some of the recordings are silent."""
    whisper_folders.write_folder(tmp_path / "hf", {"return_timestamps": True})
    pipeline = SpeechRecognizer.of_checkpoint(read_checkpoint(tmp_path / "hf"))
    means = sorted(one.mean_log_probability for one in pipeline.transcribe([*recordings()]))
    middle = (means[1] + means[2]) / 2
    return pipeline.with_settings(no_speech_threshold=0.0, log_probability_threshold=middle)


def check_silence(results, expected):
    """The numbers are those of the run, and so are the transcripts without a text."""
    assert all(one.no_speech is not None for one in results)
    check_same(results, expected)
    assert len({bool(one.text) for one in expected}) == 2


@pytest.mark.long
def test_silence_has_no_text_in_a_saved_model(partly_silent, tmp_path):
    files = [*recordings()]
    report = export_saved_model(partly_silent, tmp_path / "m", files)
    assert 0 <= report["no_speech_difference"] < 1e-5
    results = SavedModelSinglePass(tmp_path / "m").answer_batch(files)
    check_silence(results, partly_silent.transcribe(files))


@pytest.mark.long
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_silence_has_no_text_in_a_tflite_file(partly_silent, quantize, tmp_path, monkeypatch):
    """The converter computes nothing with the constants in place of the weights."""
    pytest.importorskip("ai_edge_litert")
    monkeypatch.setattr(stand_ins, "SMALLEST", 64)
    files, path = [*recordings()], tmp_path / "m.tflite"
    limits = {"max_loss": 100.0, "max_score_loss": 10.0} if quantize == "int8" else {}
    report = export_litert(partly_silent, path, files, **asked(LiteRTOptions, quantize, **limits))
    loaded = LiteRTSinglePass(path)
    results = loaded.answer_batch(files)
    if quantize == "none":
        assert max(report[f"{name}_difference"] for name in NUMBERS) < 1e-4
        check_silence(results, partly_silent.transcribe(files))
    thresholds = loaded.codec.silence
    for one in results:
        is_silent = one.mean_log_probability < thresholds.log_probability_threshold
        assert 0 < one.no_speech < 1 and bool(one.text) == (not is_silent)
    loaded = loaded.with_settings(no_speech_threshold=1.0)
    assert all(one.text for one in loaded.answer_batch(files))
    loaded = loaded.with_settings(
        no_speech_threshold=0.0, log_probability_threshold=0.0, timestamps=False
    )
    assert not any(one.text or one.segments for one in loaded.answer_batch(files))
    with pytest.raises(ValueError, match="`no_speech_threshold` must be from 0 to 1. Received"):
        loaded.with_settings(no_speech_threshold=2.0)
