"""Exports of a model of speech transcribe like the run, from files and from samples."""

import json

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from exporting import asked
from pipelines import speech_recognizer, write_run
from tasks.test_speech_recognizer import RATE, RECORDINGS

from keras_transformer import Beam
from keras_transformer.cli.main import cli
from keras_transformer.decoding import BestPath
from keras_transformer.export import LiteRTOptions, export_litert, export_saved_model
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.packed import pack, read_model, unpack
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass
from keras_transformer.tasks.speech_recognition.audio.wav import encode_wav

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    paths = [folder / f"{number}.wav" for number in range(len(RECORDINGS))]
    for path, samples in zip(paths, RECORDINGS, strict=True):
        path.write_bytes(encode_wav(samples, RATE))
    return paths


def command(*arguments, data=b""):
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=data)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("search", [Beam(3, length_penalty=0.6)], ids=["beam"])
def test_a_saved_model_takes_files_or_samples(files, tmp_path, search, monkeypatch):
    pipeline = speech_recognizer()
    pipeline = pipeline if search is None else pipeline.with_search(search)
    report = export_saved_model(pipeline, tmp_path / "speech", files)
    assert report["signatures"] == ["serving_default", "samples"] and report["agreement"] == 1
    expected = pipeline(files)
    run = write_run(pipeline, tmp_path / "run")
    if search is None:
        named = command("predict", tmp_path / "speech", *files)
        assert named.splitlines() == expected == command("predict", run, *files).splitlines()
    model = tf.saved_model.load(str(tmp_path / "speech" / "1"))
    variables = tf.train.list_variables(str(tmp_path / "speech" / "1" / "variables" / "variables"))
    shapes = [tuple(shape) for _, shape in variables]
    # The table, and a copy of it in the order that the steps of a search read fastest.
    assert shapes.count((30, 16)) == shapes.count((16, 30)) == 1
    inputs, _ = pipeline.codec.tensors([pipeline.codec.read(path, "x") for path in files])
    answers = model.signatures["samples"](**inputs)
    assert [text.decode() for text in answers["transcript"].numpy()] == expected
    long = tf.constant([encode_wav(np.tile(RECORDINGS[0], 2), RATE)])
    assert model.signatures["serving_default"](recordings=long)["truncated"].numpy()[0]
    readme = (tmp_path / "speech" / "1" / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0].replace('load(".")', "load(folder)")
    monkeypatch.chdir(tmp_path / "speech" / "1")
    exec(code, {"folder": "."})
    wrong = SavedModelSinglePass(tmp_path / "speech")
    with pytest.raises(ValueError, match="must have 1000 samples per second. Received: 2000"):
        wrong.answer_batch([encode_wav(RECORDINGS[0], 2 * RATE)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="`lengths` must be at least 8"):
        model.signatures["samples"](**{**inputs, "lengths": inputs["lengths"] - 1})


@pytest.mark.long
@pytest.mark.parametrize("options", [{"pad_to_max_seconds": True, "prompt_ids": (7, 9)}])
def test_a_tflite_file_emits_the_tokens_of_the_run(files, tmp_path, options):
    pytest.importorskip("ai_edge_litert")
    pipeline, path = speech_recognizer(**options), tmp_path / "speech.tflite"
    report = export_litert(pipeline, path, files, LiteRTOptions(batch_sizes=[1, 3]))
    assert report["signatures"] == ["transcribe_1x400", "transcribe_3x400"]
    assert report["agreement"] == 1
    results = LiteRTSinglePass(path).answer_batch(files), pipeline.transcribe(files)
    for ours, theirs in zip(*results, strict=True):
        assert (ours.text, ours.length) == (theirs.text, theirs.length)
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
    interpreter = load_interpreter()(model_path=str(path))
    run = interpreter.get_signature_runner("transcribe_3x400")
    samples = np.zeros((3, 400), "float32")
    samples[:2] = RECORDINGS[0], np.pad(RECORDINGS[1], (0, 267))
    lengths = np.array([400, 133, 0], "int32")
    outputs = run(samples=samples, lengths=lengths)
    expected = pipeline.predict(tf.constant(samples[:2]), tf.constant(lengths[:2]))
    np.testing.assert_array_equal(outputs["tokens"][:2], expected["tokens"])
    assert not outputs["tokens"][2].any() and outputs["length"][2] == 0
    assert command("predict", path, *files).splitlines() == pipeline(files)
    long = tmp_path / "long.wav"
    long.write_bytes(encode_wav(np.concatenate(RECORDINGS), RATE))
    overlapping = pipeline.transcribe([long])[0].text
    assert command("predict", path, long).splitlines() == [overlapping]
    assert command("predict", path, long, "--windows", "overlap").splitlines() == [overlapping]
    done = CliRunner().invoke(cli, ["predict", str(path), str(long), "--windows", "context"])
    assert "--windows must be 'overlap' for an export that reads no frames" in done.stderr
    metadata, _, tokenizers = unpack(path)
    for wrong in ({}, {"choices": {"prompt": [5], "languages": {"de": "six"}}}):
        changed = {name: value for name, value in metadata.items() if name != "choices"}
        pack(tmp_path / "old.tflite", read_model(path), tokenizers, {**changed, **wrong})
        with pytest.raises(ValueError, match=r"old.tflite is damaged: its metadata.json cannot be"):
            LiteRTSinglePass(tmp_path / "old.tflite")


def numbers_in(path):
    """Returns how many numbers the variables of the first version of a SavedModel contain."""
    variables = tf.train.list_variables(str(path / "1" / "variables" / "variables"))
    return sum(int(np.prod(shape)) for name, shape in variables if name.startswith("weights/"))


@pytest.mark.long
def test_exports_of_the_best_path_contain_neither_decoder_nor_loop(files, tmp_path):
    pytest.importorskip("ai_edge_litert")
    pipeline = speech_recognizer().with_search(BestPath())
    run = write_run(pipeline, tmp_path / "run", "[training]\nctc_weight = 0.3\n")
    lines = tmp_path / "list.txt"
    lines.write_text("".join(f"{path}\n" for path in files))
    expected, greedy = pipeline(files), speech_recognizer()(files)
    assert expected != greedy and len({*expected}) > 1
    places = {"saved-model": tmp_path / "speech", "litert": tmp_path / "speech.tflite"}
    for form, path in places.items():
        report = command("export", form, run, path, "--ctc", "--sentences", lines, "--json")
        assert json.loads(report)["agreement"] == 1
        assert command("predict", path, *files).splitlines() == expected
        with_loop = path.with_name(f"greedy_{path.name}")
        command("export", form, run, with_loop, "--sentences", lines)
        assert command("predict", with_loop, *files).splitlines() == greedy
    assert numbers_in(tmp_path / "speech") == sum(
        int(np.prod(weight.shape))
        for weight in pipeline.model.weights
        if not weight.path.startswith(("decoder/", "target_embedding/position"))
    )
    outputs = LiteRTSinglePass(places["litert"]).answer_batch(files)
    for ours, theirs in zip(outputs, pipeline.transcribe(files), strict=True):
        assert (ours.text, ours.length) == (theirs.text, theirs.length)
        assert ours.score == pytest.approx(theirs.score, abs=1e-3)
    sizes = [len(read_model(tmp_path / name)) for name in ("speech.tflite", "greedy_speech.tflite")]
    assert sizes[0] < sizes[1]
    (tmp_path / "plain.tflite").write_bytes(read_model(places["litert"]))
    interpreter = load_interpreter()(model_path=str(tmp_path / "plain.tflite"))
    assert "WHILE" not in {operation["op_name"] for operation in interpreter._get_ops_details()}


@pytest.mark.long
def test_exports_of_the_best_path_keep_its_maximum_length(files, tmp_path):
    pytest.importorskip("ai_edge_litert")
    run = write_run(speech_recognizer(), tmp_path / "run", "[training]\nctc_weight = 0.3\n")
    lines = tmp_path / "list.txt"
    lines.write_text("".join(f"{path}\n" for path in files))
    options = "--ctc", "--max-output", 3
    short = speech_recognizer().with_search(BestPath(3)).transcribe(files)
    assert max(result.length for result in short) == 3 and not short[0].complete
    for form, name in {"saved-model": "speech", "litert": "speech.tflite"}.items():
        path = tmp_path / name
        report = command("export", form, run, path, *options, "--sentences", lines, "--json")
        assert json.loads(report)["agreement"] == 1
        opened = (SavedModelSinglePass if form == "saved-model" else LiteRTSinglePass)(path)
        for ours, theirs in zip(opened.answer_batch(files), short, strict=True):
            assert (ours.text, ours.length) == (theirs.text, theirs.length)
            assert ours.complete == theirs.complete
    texts = [result.text for result in short]
    assert command("predict", run, *options, *files).splitlines() == texts


@pytest.mark.long
def test_the_command_exports_the_search_of_its_options(files, tmp_path):
    run, lines = write_run(speech_recognizer(), tmp_path / "run"), tmp_path / "list.txt"
    lines.write_text("".join(f"{path}\n" for path in files))
    beam = speech_recognizer().with_search(Beam(3, length_penalty=1.0))
    arguments = "--beam", 3, "--length-penalty", 1, "--sentences", lines
    command("export", "saved-model", run, tmp_path / "out", *arguments)
    answers = SavedModelSinglePass(tmp_path / "out").answer_batch(files)
    for ours, theirs in zip(answers, beam.transcribe(files), strict=True):
        assert ours.text == theirs.text
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
    scores = [each.score for each in speech_recognizer().transcribe(files)]
    assert [each.score for each in answers] != pytest.approx(scores, abs=1e-3)


def test_int8_keeps_the_features_in_float(files, tmp_path):
    """The range of a spectrogram is eight decades: int8 would leave two of them."""
    pytest.importorskip("ai_edge_litert")
    pipeline, path = speech_recognizer(), tmp_path / "speech.tflite"
    limits = {"max_loss": 100.0, "max_score_loss": 10.0}
    report = export_litert(pipeline, path, files, **asked(LiteRTOptions, "int8", **limits))
    assert report["bytes"] > 0 and report["sentences"] == len(files)
    (tmp_path / "plain.tflite").write_bytes(read_model(path))
    interpreter = load_interpreter()(model_path=str(tmp_path / "plain.tflite"))
    dtypes = [
        detail["dtype"]
        for detail in interpreter.get_tensor_details()
        if sorted(detail["shape"]) == [11, 20]
    ]
    assert dtypes.count(np.float32) >= 2 and np.int8 not in dtypes


@pytest.mark.long
def test_the_command_exports_a_run(files, tmp_path):
    pipeline = speech_recognizer()
    run = write_run(pipeline, tmp_path / "run")
    lines = tmp_path / "list.txt"
    lines.write_text("".join(f"{path}\n" for path in files))
    report = command("export", "saved-model", run, tmp_path / "out", "--sentences", lines, "--json")
    assert json.loads(report)["agreement"] == 1
    assert command("predict", tmp_path / "out", data=lines.read_bytes()).splitlines() == pipeline(
        files
    )
