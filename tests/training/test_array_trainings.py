"""Images and time series: trained, stopped, resumed, averaged and refused."""

import io
import json
import os
import shutil
import signal

import keras
import numpy as np
import pytest
import rich.console
from array_corpora import KINDS, write_corpus
from click.testing import CliRunner
from documents import ROOT, unrun_examples
from marks import slow, slow_except
from small_runs import At, assert_same_end, finished_runs, run_quietly

from keras_transformer.cli.main import cli
from keras_transformer.pipelines import (
    ImageClassificationPipeline,
    ImageEmbeddingPipeline,
    SeriesSimulator,
)
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.tasks.run import Run
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.evaluate import evaluate_files, evaluate_split
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.training_run import train

PIPELINES = {
    "image_classification": ImageClassificationPipeline,
    "image_embedding": ImageEmbeddingPipeline,
    "time_series": SeriesSimulator,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    return finished_runs(corpus, tmp_path_factory)


def command(*arguments, data=b""):
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=data)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", slow_except(KINDS, "time_series"))
def test_a_run_is_self_contained(finished, kind):
    folder, figures = finished(kind)
    run, pipeline = Run(folder), open_run(folder)
    assert type(pipeline) is PIPELINES[kind]
    assert not run.vocabulary()
    assert run.read_metrics() == figures
    assert figures["parameters"] == pipeline.model.count_params()
    assert figures[f"{TASKS[kind].unit}_seen"] > 0
    assert set(figures["validation"]) == set(TASKS[kind].metrics)
    assert all(map(np.isfinite, figures["validation"].values()))
    assert load_settings(run.config) == load_settings(run.config)
    assert "[vocabulary]" not in run.config.read_text()
    assert run.history.is_file()


def test_a_run_keeps_the_settings_it_was_started_with(finished, corpus, kind="time_series"):
    assert load_settings(finished(kind)[0] / "config.toml") == load_settings(
        corpus / f"{kind}.toml"
    )


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind == "time_series" else pytest.mark.long) for kind in KINDS],
)
def test_a_resumed_run_ends_like_an_uninterrupted_one(finished, corpus, tmp_path, kind):
    """Stopped in the middle of an epoch of at least three batches."""
    settings = load_settings(corpus / f"{kind}.toml")
    press = At(4, lambda: os.kill(os.getpid(), signal.SIGINT))
    figures, shown = run_quietly(settings, tmp_path / "run", [press])
    assert figures is None and "Stopped after update 4 of 6" in shown
    _, shown = run_quietly(settings, tmp_path / "run")
    assert "Resuming after update 4 of 6." in shown
    assert_same_end(tmp_path / "run", finished(kind))


@pytest.mark.parametrize("kind", slow_except(KINDS, "time_series"))
def test_an_evaluation_equals_the_validation(finished, corpus, kind):
    folder, figures = finished(kind)
    results = evaluate_split(folder, "validation")
    measured = figures["validation"]
    if kind == "time_series":
        for name in ("kge", "nse"):
            assert results[name] == pytest.approx(measured[name], abs=1e-4)
        assert results["steps"] == 20 - 2, "two days have no observation"
        twice = evaluate_split([folder, folder], "validation")
        assert twice["steps"] == 18 and twice["kge"] == pytest.approx(results["kge"], abs=1e-4)
        test = json.loads(command("evaluate", folder))
        assert Run(folder).read_metrics()["kge"] == test["kge"] != results["kge"]
    elif kind == "image_embedding":
        paths = sorted(corpus.glob("validation/*/*.png"))
        vectors = ImageEmbeddingPipeline.from_run(folder).embed(paths)
        cosines = vectors @ vectors.T - 9 * np.eye(len(paths))  # of other images
        labels = np.array([path.parent.name for path in paths])
        expected = 100 * np.mean(labels[cosines.argmax(1)] == labels)
        assert results["recall_at_1"] == pytest.approx(expected)
        assert results["images"] == len(paths) == 7
    else:
        assert results["accuracy"] == pytest.approx(100 * measured["accuracy"], abs=1e-4)
        assert results["images"] == 7
        assert figures["model_update"] == figures["best_update"]


def test_an_average_is_a_run(finished, tmp_path, kind="time_series"):
    output = average_checkpoints(finished(kind)[0], 2, tmp_path / "average")
    assert set(evaluate_split(output, "validation")) == set(
        evaluate_split(finished(kind)[0], "validation")
    )


def test_training_is_not_resumed_with_a_changed_corpus(
    finished, corpus, tmp_path, kind="time_series"
):
    folder = shutil.copytree(finished(kind)[0], tmp_path / "run")
    copy = shutil.copytree(corpus, tmp_path / "corpus")
    if kind == "time_series":
        river = copy / "river.csv"
        river.write_text(river.read_text().replace("2001-03-05,", "2001-03-05,9"))
        override = f"data.file={river}"
    else:
        shutil.copyfile(copy / "train" / "3" / "1.png", copy / "train" / "2" / "0.png")
        override = f"data.train={copy / 'train'}"
    config = Run(folder).config
    key, path = override.split("=")
    text = config.read_text().replace(str(corpus), str(copy))
    config.write_text(text)
    with pytest.raises(ValueError, match="the training data of .* have changed since"):
        run_quietly(load_settings(config, ["training.updates=7"]), folder)
    assert path and key


@pytest.mark.long
@pytest.mark.slow
def test_training_can_start_from_the_weights_of_a_run(
    finished, corpus, tmp_path, kind="time_series"
):
    folder, figures = finished(kind)
    overrides = [f'model.start_from="{folder}"', "training.updates=1", "schedule.peak=1e-9"]
    settings = load_settings(corpus / f"{kind}.toml", [*overrides, "training.validate_every=1"])
    tuned, shown = run_quietly(settings, tmp_path / "run")
    assert f"Starting with the weights of {folder}." in shown
    assert tuned["validation"]["loss"] == pytest.approx(figures["validation"]["loss"], rel=1e-5)


@pytest.mark.long
@pytest.mark.slow
def test_weights_do_not_fit_other_labels(finished, corpus, tmp_path):
    copy = shutil.copytree(corpus, tmp_path / "corpus")
    for split in ("train", "validation"):
        (copy / split / "3").rename(copy / split / "4")
    overrides = [f'model.start_from="{finished("image_classification")[0]}"']
    settings = load_settings(copy / "image_classification.toml", overrides)
    message = "the training data have labels 2, 4, 10 here and 2, 3, 10 there."
    console = rich.console.Console(file=io.StringIO())
    with pytest.raises(ValueError, match=message):
        train(settings, tmp_path / "run", console=console)
    shown = "Images of 4 x 6 pixels; 3 labels: '2' (5), '4' (4), '10' (4).\n"
    assert shown in console.file.getvalue()


def test_an_unknown_label_is_reported_in_one_line(corpus, tmp_path):
    copy = shutil.copytree(corpus, tmp_path / "corpus")
    (copy / "validation" / "3").rename(copy / "validation" / "x")
    message = (
        "the validation split of the data, example 6: `label` must be one of the training data's "
        "labels, 2, 3, 10. Received: 'x'."
    )
    with pytest.raises(ValueError, match=message):
        run_quietly(load_settings(copy / "image_classification.toml"), tmp_path / "run")
    assert not Run(tmp_path / "run").config.exists(), "nothing is left of it"


@pytest.mark.slow
def test_paths_of_images_are_predicted(finished, corpus, tmp_path):
    folder = finished("image_classification")[0]
    paths = sorted((corpus / "validation").rglob("*.png"))
    image_classifier = ImageClassificationPipeline.from_run(folder)
    labels = image_classifier([str(path) for path in paths])
    lines = "".join(f"{path}\n" for path in paths)
    assert command("predict", folder, data=lines.encode()).splitlines() == labels
    assert image_classifier([path.read_bytes() for path in paths], batch_size=2) == labels
    arrays = [image_classifier.size.read(path) for path in paths]
    assert image_classifier(arrays) == labels
    (tmp_path / "paths.txt").write_text(lines)
    (tmp_path / "labels.txt").write_text("".join(f"{path.parent.name}\n" for path in paths))
    results = evaluate_files(folder, tmp_path / "paths.txt", tmp_path / "labels.txt")
    assert results["accuracy"] == evaluate_split(folder, "validation")["accuracy"]


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        slow(
            "image_classification",
            "nowhere.png",
            "Error: line 1: nowhere.png: cannot be read: No such file",
        ),
        slow(
            "image_classification",
            "large.png",
            "large.png: must have height x width x channels of 4",
        ),
        ("time_series", "1,2\n1,x", "Error: line 2: warmth must be a number. Received: 'x'."),
    ],
)
def test_a_wrong_line_is_reported_in_one_line(finished, tmp_path, monkeypatch, kind, line, message):
    monkeypatch.chdir(tmp_path)
    keras.utils.save_img("large.png", np.zeros((9, 9, 1)))
    arguments = ["predict", str(finished(kind)[0]), "--strict"]
    done = CliRunner().invoke(cli, arguments, input=f"{line}\n".encode())
    assert done.exit_code == 1 and done.stderr.count("\n") == 1 and message in done.stderr


@pytest.mark.slow
def test_wrong_images_are_reported(finished):
    image_classifier = ImageClassificationPipeline.from_run(finished("image_classification")[0])
    good = np.zeros((4, 6, 1), "uint8")
    with pytest.raises(
        ValueError, match="image 2: must have height x width x channels of 4 x 6 x 1"
    ):
        image_classifier([good, good[:, :3]])
    with pytest.raises(ValueError, match="image 3: must be an array of uint8, from 0 to 255. Rec"):
        image_classifier([good, good, good / 255], batch_size=2)
    with pytest.raises(ValueError, match="image 1: is not a readable PNG or JPEG image"):
        image_classifier([b"no image"])
    with pytest.raises(ValueError, match="x.png: cannot be read: No such file or directory"):
        image_classifier("x.png")


def test_lines_of_a_series_are_predicted(finished, corpus):
    folder = finished("time_series")[0]
    text = (corpus / "river.csv").read_text()
    lines = command("predict", folder, data=text.encode()).splitlines()
    rows = [line.split(",") for line in text.splitlines()[1:]]
    expected = SeriesSimulator.from_run(folder)([[float(a), float(b)] for _, a, b, _ in rows])
    assert lines == ["flow", *(f"{value:.6g}" for value in expected)]


@pytest.mark.slow
def test_bytes_of_an_unused_column_change_nothing(finished, corpus, tmp_path):
    """In `predict`, `evaluate` and training; a missing line would change all later ones."""
    folder = finished("time_series")[0]
    clean = (corpus / "river.csv").read_bytes().splitlines(keepends=True)
    noted = [line.replace(b",", b",d\xe9bit,", 1) for line in clean]
    noted[0] = clean[0].replace(b",", b",note,", 1)
    (tmp_path / "noted.csv").write_bytes(b"".join(noted))
    expected = command("predict", folder, data=b"".join(clean))
    assert command("predict", folder, data=b"".join(noted)) == expected
    figures = [
        evaluate_files(folder, path, path)
        for path in (corpus / "river.csv", tmp_path / "noted.csv")
    ]
    assert figures[0]["kge"] == figures[1]["kge"] and figures[0]["steps"] == 100 - 10
    settings = load_settings(folder / "config.toml", [f"data.file={tmp_path / 'noted.csv'}"])
    noted_rows, rows = (
        list(open_source(data).rows("train").as_numpy_iterator())
        for data in (settings.data, load_settings(folder / "config.toml").data)
    )
    np.testing.assert_equal(noted_rows, rows)
    noted[50] = noted[50].replace(b",", b"\xe9,", 1)  # in the column of dates
    done = CliRunner().invoke(cli, ["predict", str(folder)], input=b"".join(noted))
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: line 51: date must be UTF-8. Received: b'2001-03-20")
    done = CliRunner().invoke(
        cli, ["predict", str(folder)], input=b"".join([*clean[:9], *clean[10:]])
    )
    assert done.stderr == (
        "Error: line 10: every line must be 1 day after the previous one, here 2001-02-07. "
        "Received: 2001-02-08. `data.fill` fills gaps.\n"
    )


@pytest.mark.parametrize("kind", slow_except(KINDS, "time_series"))
def test_options_without_effect_are_refused(finished, kind):
    options = [["--max-length", "9"], ["--beam", "2"]]
    for words in options + ([["--scores"]] if kind == "time_series" else []):
        done = CliRunner().invoke(cli, ["predict", str(finished(kind)[0]), *words], input=b"")
        assert done.exit_code in (1, 2) and f"{words[0]} has no effect on" in done.stderr.replace(
            "`max_length`", "--max-length"
        )


@pytest.mark.parametrize(
    ("kind", "overrides", "message"),
    [
        (
            "image_classification",
            ["vocabulary.size=20"],
            r"\[vocabulary\] has no effect on image_cl",
        ),
        (
            "image_classification",
            ["training.subword_sampling=0.1"],
            "`training.subword_sampling` ha",
        ),
        ("image_classification", ["data.max_length=9"], "data.max_length is not a setting"),
        ("image_classification", ["data.batch_tokens=9"], "data.batch_tokens is not a setting"),
        (
            "image_classification",
            ["model.max_length=9"],
            r"model\.max_length is not a setting of a model for image_cl",
        ),
        (
            "image_classification",
            ["model.embedding_scale=2.0"],
            "embedding_scale is not a setting",
        ),
        ("image_classification", ["model.pooling=first"], r"model\.pooling must be 'class', 'me"),
        ("image_classification", ["training.best_by=bleu"], "must be one of loss, accuracy for im"),
        (
            "time_series",
            ["training.label_smoothing=0.1"],
            "`training.label_smoothing` has no effec",
        ),
        ("time_series", ["training.r_drop=1.0"], "`training.r_drop` has no effect on time_series"),
        (
            "time_series",
            ["model.encoder=lstm"],
            r"\[model\] `d_ff` has no effect|`num_heads` has no",
        ),
        (
            "time_series",
            ["model.pooling=mean"],
            r"model\.pooling is not a setting of a model for time_series",
        ),
        (
            "time_series",
            ["data.stride=5"],
            "`stride` must be at most `scored`, and `scored` at mos",
        ),
        ("time_series", ['data.inputs=["flow"]'], "`inputs` must name different columns, other"),
        (
            "time_series",
            ["data.train=[1, 2]"],
            "data.train.0 must be a date without quotes, such as",
        ),
        (
            "time_series",
            ["data.date_column=rain"],
            "`date_column` must not be one of `inputs`",
        ),
        ("time_series", ["data.step=daily"], "`step` must be a number and one of .*: 'daily'."),
        (
            "time_series",
            ["data.fill=spline"],
            "data.fill must be 'forward' or 'linear'. Rec",
        ),
        (
            "time_series",
            ["data.fill_limit=0"],
            "data.fill_limit must be greater than 0. Rec",
        ),
        ("time_series", ['data.separator="|"'], "data.separator must be ',', ';' or '.*t'. Rec"),
        ("time_series", ['data.snow=["rain", "flow"]'], "`snow` must name two of `inputs`, precip"),
    ],
)
def test_settings_without_effect_are_reported_in_one_line(corpus, kind, overrides, message):
    with pytest.raises(SettingsError, match=message) as error:
        load_settings(corpus / f"{kind}.toml", overrides)
    assert "\n" not in str(error.value)


def test_tasks_and_data_that_do_not_fit_are_reported_in_one_line(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[task]\nkind = "classification"\n[data]\nsource = "digits"\n')
    message = (
        '`data.source = "digits"` provides image and label: classification needs text and label, `'
    )
    with pytest.raises(SettingsError, match=message):
        load_settings(config)
    config.write_text(
        '[task]\nkind = "image_classification"\n[data]\nsource = "text"\ntrain = "a"\n'
        'validation = "b"\n'
    )
    message = (
        '`data.source = "text"` reads texts: image_classification needs image and label, `data'
    )
    with pytest.raises(SettingsError, match=message):
        load_settings(config)


@pytest.mark.parametrize(
    ("kind", "folder"),
    [slow("image_classification", "runs/digits"), ("time_series", "runs/runoff")],
)
def test_the_examples_of_docstrings_run(finished, corpus, tmp_path, monkeypatch, kind, folder):
    shutil.copytree(finished(kind)[0], tmp_path / folder)
    shutil.copyfile(corpus / "train" / "2" / "0.png", tmp_path / "seven.png")
    monkeypatch.chdir(tmp_path)
    path = ROOT / "keras_transformer" / "tasks" / kind / "pipeline.py"
    ((_, code),) = unrun_examples(path)
    assert folder in code
    exec(compile(code.replace("3.1, 12.5, 2.0", "3.1, 12.5").replace("0.0, 14.1, 2.4", "0.0, 14.1"),
                 str(path), "exec"), {})  # fmt: skip
