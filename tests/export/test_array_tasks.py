"""Exports of images and of time series give the answers of the run."""

import datetime
import itertools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from array_corpora import write_corpus
from click.testing import CliRunner
from marks import long, slow_except
from small_runs import run_quietly
from support import with_effect

from keras_transformer.cli.main import cli
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass
from keras_transformer.models import SeriesConfig
from keras_transformer.pipelines import ImageClassificationPipeline, SeriesSimulator
from keras_transformer.tasks.time_series.file import read_series
from keras_transformer.tasks.time_series.metrics import nash_sutcliffe
from keras_transformer.tasks.time_series.model import SeriesRegressor
from keras_transformer.training.evaluate import evaluate_files
from keras_transformer.training.settings.toml import load_settings

pytestmark = pytest.mark.slow
pytest.importorskip("ai_edge_litert")
ENCODERS = ("transformer", "lstm", "gru", "lstm_attention", "gru_attention")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    """A function that takes a kind of task and returns its run."""
    made = {}

    def run(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind) / "run"
            run_quietly(load_settings(corpus / f"{kind}.toml"), made[kind])
        return made[kind]

    return run


def command(*arguments, data=b"", code=0):
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=data)
    assert done.exit_code == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def paths(corpus):
    return sorted((corpus / "validation").rglob("*.png"))


def test_images_in_a_saved_model(runs, corpus, tmp_path, monkeypatch):
    """Encoded files, pixels, both loaders of TensorFlow, the README, and `predict`."""
    folder, directory = runs("image_classification"), tmp_path / "digits"
    report = json.loads(command("export", "saved-model", folder, directory, "--json"))
    assert report["signatures"] == ["serving_default", "pixels"] and report["agreement"] == 1
    assert report["python_needs"] == ["tensorflow"] and report["checked_with"].startswith("7 sen")
    lines = "".join(f"{path}\n" for path in paths(corpus)).encode()
    assert command("predict", directory, data=lines) == command("predict", folder, data=lines)
    image_classifier = ImageClassificationPipeline.from_run(folder)
    expected = image_classifier.classify(paths(corpus))
    loaded = tf.saved_model.load(str(directory / "1"))
    arrays = np.stack([image_classifier.read(path) for path in paths(corpus)]).astype("float32")
    answers = loaded.signatures["pixels"](pixels=tf.constant(arrays))
    probabilities = [result.probabilities for result in expected]
    np.testing.assert_allclose(answers["probabilities"], probabilities, atol=1e-5)
    readme = (directory / "1" / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0].replace('load(".")', "load(folder)")
    monkeypatch.chdir(directory / "1")
    exec(code, {"folder": "."})
    large = tf.io.encode_png(np.zeros((9, 9, 1), "uint8"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="an image must have 4 x 6 pixels"):
        loaded.signatures["serving_default"](images=tf.expand_dims(large, 0))
    with pytest.raises(ValueError, match="1: an image must have 4 x 6 pixels.$"):
        SavedModelSinglePass(directory).answer_batch([large.numpy()])


def test_images_in_a_tflite_file(runs, corpus, tmp_path, quantize="int8"):
    folder, file = runs("image_classification"), tmp_path / "digits.tflite"
    limits = ["--max-loss", "100"] if quantize != "none" else []
    report = json.loads(
        command("export", "litert", folder, file, "--quantize", quantize, *limits, "--json")
    )
    assert report["signatures"] == ["classify_1"] and "accuracy" in report or quantize == "none"
    lines = "".join(f"{path}\n" for path in paths(corpus)).encode()
    labels = command("predict", file, data=lines).splitlines()
    assert len(labels) == len(paths(corpus))
    loaded = LiteRTSinglePass(file)
    size = {"height": 4, "width": 6, "channels": 1, "resize": False}
    steps = {"interpolation": None, "resize_to": [], "center_crop": False}
    assert loaded.metadata["image"] == {**size, **steps}
    if quantize == "none":
        assert labels == command("predict", folder, data=lines).splitlines()
        signatures = load_interpreter()(model_path=str(file)).get_signature_list()
        assert signatures["classify_1"]["inputs"] == ["pixels"]


@pytest.mark.long
def test_a_bad_image_does_not_affect_the_other_answers_of_an_export(runs, corpus, tmp_path):
    folder, good = runs("image_classification"), paths(corpus)[:3]
    command("export", "saved-model", folder, tmp_path / "saved")
    command("export", "litert", folder, tmp_path / "x.tflite")
    keras.utils.save_img(tmp_path / "large.png", np.zeros((9, 9, 1)), scale=False)
    (tmp_path / "bad.png").write_bytes(good[0].read_bytes()[:40])
    lines = [good[0], tmp_path / "large.png", good[1], "nowhere.png", tmp_path / "bad.png", good[2]]
    data = "".join(f"{line}\n" for line in lines).encode()
    answers = ImageClassificationPipeline.from_run(folder)(good)
    sizes = {
        "saved": "an image must have 4 x 6 pixels",
        "x.tflite": "must have height x width x channels of 4 x 6 x 1. Received: 9 x 9 x 1",
    }
    for name, message in sizes.items():
        done = CliRunner().invoke(cli, ["predict", str(tmp_path / name)], input=data)
        assert done.exit_code == 0, done.output
        assert done.stdout.splitlines() == [answers[0], "", answers[1], "", "", answers[2]]
        size, missing, damaged = done.stderr.splitlines()
        assert "line 2: " in size and f"{message}; left empty" in size
        assert "line 4: nowhere.png: cannot be read: No such file" in missing
        assert "line 5: " in damaged and "bad.png: is not a readable PNG or JPEG" in damaged


@pytest.mark.long
@pytest.mark.parametrize("steps", [[], ["data.interpolation=lanczos", "data.resize_to=[6]"]])
def test_images_are_resized_as_in_the_run(corpus, tmp_path, steps):
    overrides = ["data.image_size=[4, 4]", "training.updates=1", "training.final_model=last"]
    overrides += steps
    settings = load_settings(corpus / "image_classification.toml", overrides)
    run_quietly(settings, tmp_path / "run")
    command("export", "saved-model", tmp_path / "run", tmp_path / "saved")
    command("export", "litert", tmp_path / "run", tmp_path / "x.tflite")
    keras.utils.save_img(tmp_path / "large.png", np.arange(99).reshape(9, 11, 1), scale=False)
    line = f"{tmp_path / 'large.png'}\n".encode()
    labels = {
        command("predict", tmp_path / name, data=line) for name in ("run", "saved", "x.tflite")
    }
    assert len(labels) == 1


def weather(corpus):
    text = (corpus / "river.csv").read_text()
    rows = [line.split(",")[1:3] for line in text.splitlines()[1:]]
    return text.encode(), np.array(rows, "float32")


@pytest.mark.long
def test_a_series_in_a_saved_model(runs, corpus, tmp_path):
    folder, directory = runs("time_series"), tmp_path / "river"
    report = json.loads(command("export", "saved-model", folder, directory, "--json"))
    assert report["signatures"] == ["serving_default"]
    _, rows = weather(corpus)
    windows = np.stack([rows[start : start + 9] for start in range(5)])
    answer = tf.saved_model.load(str(directory / "1")).signatures["serving_default"]
    expected = SeriesSimulator.from_run(folder).run(windows)["target"]
    np.testing.assert_allclose(answer(series=windows)["target"], expected, atol=1e-5)
    shorter = answer(series=windows[:, :4])["target"]
    np.testing.assert_allclose(shorter, expected[:, :4], atol=1e-5)
    readme = (directory / "1" / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0].replace('load(".")', "load(folder)")
    exec(code, {"folder": str(directory / "1")})


def test_a_saved_model_of_a_series_answers_lines_as_the_run_does(runs, corpus, tmp_path):
    folder, directory = runs("time_series"), tmp_path / "river"
    command("export", "saved-model", folder, directory)
    text, rows = weather(corpus)
    lines = command("predict", directory, data=text).splitlines()
    assert lines[0] == "flow" and len(lines) == len(rows) + 1
    expected = SeriesSimulator.from_run(folder)(rows)
    np.testing.assert_allclose(list(map(float, lines[1:])), expected, rtol=1e-4, atol=1e-5)
    metadata = directory / "1" / "assets.extra" / "metadata.json"
    assert json.loads(metadata.read_text())["inputs"] == ["rain", "warmth"]
    metadata.write_text('{"task": "time_series"}')
    assert "metadata.json cannot be read" in command("predict", directory, data=text, code=1)
    metadata.unlink()
    line = command("predict", directory, data=text, code=1)
    assert "has no assets.extra/metadata.json, which names its task. Export the run again" in line


@pytest.mark.parametrize("encoder", slow_except(ENCODERS, "gru_attention", mark=long))
def test_a_series_in_a_tflite_file(runs, corpus, tmp_path, encoder):
    """It uses LiteRT's builtin operators only, also for recurrent layers."""
    model = SeriesSimulator.from_run(runs("time_series")).model
    fields = with_effect(SeriesConfig, **{**model.config.to_flat(), "encoder": encoder})
    simulator = SeriesSimulator(SeriesRegressor(**fields))
    text, rows = weather(corpus)
    report = export_litert(simulator, tmp_path / "x.tflite", [rows])
    assert report["signatures"] == ["simulate_1"]
    lines = command("predict", tmp_path / "x.tflite", data=text).splitlines()
    assert lines[0] == "flow" and len(lines) == len(rows) + 1
    np.testing.assert_allclose(list(map(float, lines[1:])), simulator(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_snow_accounting_in_both_exports(runs, corpus, tmp_path):
    model = SeriesSimulator.from_run(runs("time_series")).model
    changes = {"encoder": "gru", "snow": ("rain", "warmth")}
    fields = with_effect(SeriesConfig, **{**model.config.to_flat(), **changes})
    simulator = SeriesSimulator(SeriesRegressor(**fields))
    text, rows = weather(corpus)
    export_litert(simulator, tmp_path / "x.tflite", [rows])
    export_saved_model(simulator, tmp_path / "saved", [rows])
    for name in ("x.tflite", "saved"):
        lines = command("predict", tmp_path / name, data=text).splitlines()[1:]
        np.testing.assert_allclose(list(map(float, lines)), simulator(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_lines_have_the_format_of_the_training_data(corpus, tmp_path):
    """Hours in another format, with a gap: the run and both exports parse and fill it alike."""
    header, *rows = (corpus / "river.csv").read_text().splitlines()
    first, lines = datetime.datetime(2001, 3, 25), [header.replace(",", ";")]
    for hour, row in enumerate(rows):
        date = first + datetime.timedelta(hours=hour)
        cells = row.replace(".", ",").split(",", 1)[1].split(",")
        rain, warmth, flow = (",".join(cells[n : n + 2]) for n in (0, 2, 4))
        lines.append(f"{date:%d.%m.%Y %H:%M};{rain};{warmth};{flow}")
    (tmp_path / "hours.csv").write_text("\n".join([*lines[:9], *lines[11:]]) + "\n")
    periods = {
        "train": "[2001-03-25, 2001-03-26]",
        "validation": "[2001-03-27T00:00:00, 2001-03-27T19:00:00]",
        "test": "[2001-03-27T20:00:00, 2001-03-28T12:00:00]",
    }
    overrides = [f"data.{split}={period}" for split, period in periods.items()]
    overrides += [f"data.file={tmp_path / 'hours.csv'}", "data.fill=linear", "training.updates=1"]
    folder = tmp_path / "run"
    _, shown = run_quietly(load_settings(corpus / "time_series.toml", overrides), folder)
    assert "Steps of 1 hour; 2 steps were filled (linear)." in shown
    command("export", "saved-model", folder, tmp_path / "saved")
    command("export", "litert", folder, tmp_path / "x.tflite")
    data = (tmp_path / "hours.csv").read_bytes()
    series = read_series(tmp_path / "hours.csv", ["rain", "warmth"], "flow", "date", fill="linear",
                         fill_limit=2)  # fmt: skip
    expected = np.delete(SeriesSimulator.from_run(folder)(series.inputs), [8, 9])
    for path in (folder, tmp_path / "saved", tmp_path / "x.tflite"):
        done = CliRunner().invoke(cli, ["predict", str(path)], input=data)
        answers = done.stdout.splitlines()
        assert answers[0] == "flow" and len(answers) == len(lines) - 2
        np.testing.assert_allclose(list(map(float, answers[1:])), expected, rtol=1e-4, atol=1e-5)
        assert "line 10: filled 2 steps up to this line" in done.stderr
    metrics = evaluate_files(folder, tmp_path / "hours.csv", tmp_path / "hours.csv")
    known = np.isfinite(np.delete(series.target, [8, 9]))
    assert (metrics["filled"], metrics["steps"]) == (2, known.sum())
    observed = np.delete(series.target, [8, 9])[known]
    assert metrics["nse"] == pytest.approx(nash_sutcliffe(observed, expected[known]), abs=1e-4)


def test_a_quantised_series(runs, corpus, tmp_path, quantize="int8"):
    file = tmp_path / "x.tflite"
    arguments = ["--quantize", quantize, "--max-score-loss", "0.5"]
    report = json.loads(
        command("export", "litert", runs("time_series"), file, *arguments, "--json")
    )
    assert 0 < report["score_error"] < 0.5


def test_an_export_with_different_answers_is_not_kept(runs, corpus, tmp_path, monkeypatch):
    simulator = SeriesSimulator.from_run(runs("time_series"))
    _, rows = weather(corpus)
    traced = itertools.count()  # returns another number in every graph
    monkeypatch.setattr(
        type(simulator.codec),
        "outputs",
        lambda codec, prediction: {"target": prediction + 0.1 * next(traced)},
    )
    with pytest.raises(ExportError, match="a target differs from that of the model in memory by"):
        export_saved_model(simulator, tmp_path / "river", [rows])
    assert not (tmp_path / "river").exists()


def test_lines_to_check_a_series_with_are_numbers(runs, tmp_path):
    (tmp_path / "lines.txt").write_text("1,2\n3\n")
    arguments = ["--sentences", tmp_path / "lines.txt"]
    line = command("export", "saved-model", runs("time_series"), tmp_path / "x", *arguments, code=1)
    assert "must have 2 columns with a comma between them, including rain, warmth." in line
