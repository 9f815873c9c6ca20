"""Several labels per text: data in two notations, loss, metrics, a run and its threshold."""

import json

import keras
import numpy as np
import pytest
from click.testing import CliRunner

from keras_transformer.cli.main import cli
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.training import choose_threshold, evaluate_split, load_settings
from keras_transformer.training.evaluate import read_columns
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.toml import SettingsError
from keras_transformer.training.tasks.multi_label_classification.label_f1 import LabelF1
from keras_transformer.training.tasks.multi_label_classification.training import (
    MultiLabelClassificationTraining,
)
from keras_transformer.training.training_run import train

TASK = TASKS["multi_label_classification"]
CONFIG = """
task = {{ kind = "multi_label_classification" }}
model = {{ num_layers = 1, d_model = 8, d_ff = 12, num_heads = 2, max_length = 16 }}
vocabulary = {{ size = 20 }}
schedule = {{ warmup_steps = 1, peak = 0.05 }}

[data]
source = "text"
train = "train.{suffix}"
validation = "validation.{suffix}"
max_length = 16
batch_tokens = 200
{data}

[training]
updates = {updates}
validate_every = {updates}
best_by = "macro_f1"
"""
WORDS = ("cat", "dog", "bird", "fish", "tree")
LABELS = ("has fur", "swims", "flies")
OF_WORDS = {"cat": (0,), "dog": (0, 1), "bird": (2,), "fish": (1,), "tree": ()}


def examples(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        words = [WORDS[n] for n in rng.integers(0, 5, rng.integers(1, 4))]
        numbers = sorted({n for word in words for n in OF_WORDS[word]})
        yield " ".join(words), [LABELS[n] for n in numbers]


def write(folder, suffix="tsv", updates=2, data='label_separator = "; "'):
    for split, count in (("train", 60), ("validation", 40)):
        rows = list(examples(count, len(split)))
        if suffix == "tsv":
            lines = [f"{text}\t{'; '.join(labels)}" for text, labels in rows]
        else:
            lines = [json.dumps({"text": t, "labels": labels, "more": 1}) for t, labels in rows]
        (folder / f"{split}.{suffix}").write_text("\n".join(lines) + "\n")
    config = folder / f"{suffix}.toml"
    config.write_text(CONFIG.format(suffix=suffix, updates=updates, data=data))
    return config


def test_both_notations_have_the_same_examples_also_without_labels(tmp_path):
    columns = []
    for suffix, data in (("tsv", 'label_separator = ";"'), ("jsonl", "")):
        settings = load_settings(write(tmp_path, suffix, data=data)).data
        source = open_source(settings, TASK.columns)
        assert source.left_out("train") == 0 and source.count("train") == 60
        assert source.metadata() == {"separator": ";" if data else ","}
        columns.append(read_columns(source, TASK, "train"))
    assert columns[0] == columns[1]
    texts, labels = zip(*examples(60, seed=5), strict=True)
    assert columns[0] == [list(texts), [tuple(one) for one in labels]]
    assert () in columns[0][1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", r"train.jsonl, line 1: must be an object in JSON. Received: '\[\]'"),
        ("{", "must be an object in JSON"),
        ('{"text": 1, "labels": []}', "`text` must be a string. Received: 1"),
        ('{"text": "a"}', "`labels` must be a list of strings without line feeds. .*nothing"),
        ('{"text": "a", "labels": "b"}', "`labels` must be a list of strings"),
        ('{"text": "a", "labels": ["b\\n"]}', "`labels` must be a list of strings without"),
        ('{"text": "\\ud800", "labels": []}', "`text` must be a string"),
        ('{"text": " ", "labels": ["a"]}', "at least one line without an empty column"),
    ],
)
def test_lines_of_json_that_are_no_examples_are_named(line, message, tmp_path):
    settings = load_settings(write(tmp_path, "jsonl", data="")).data
    (tmp_path / "train.jsonl").write_text(line + "\n")
    with pytest.raises(ValueError, match=message):
        open_source(settings, TASK.columns)


def test_settings_without_effect_are_refused(tmp_path):
    config = write(tmp_path)
    for old, new, message in (
        ('kind = "multi_label_', 'kind = "', "`data.label_separator` has no effect on classif"),
        ('"; "', '"\\t"', "`data.label_separator` must not contain tabs or line ends"),
        ("[training]", "[training]\nr_drop = 1.0", "`training.r_drop` has no effect"),
    ):
        changed = config.read_text().replace(old, new).replace('best_by = "macro_f1"', "")
        (tmp_path / "changed.toml").write_text(changed)
        with pytest.raises(SettingsError, match=message):
            load_settings(tmp_path / "changed.toml")
    settings = load_settings(write(tmp_path, "jsonl", data="tsv_columns = [1, 2]")).data
    with pytest.raises(ValueError, match="`tsv_columns` has no effect on .*train.jsonl"):
        open_source(settings, TASK.columns)


def test_the_loss_is_the_mean_over_labels_and_is_finite():
    class Options:
        label_smoothing = 0.1

    loss = MultiLabelClassificationTraining.loss(None, Options)
    logits = np.array([[0.3, -2.0, 1000.0], [-1000.0, 5.0, 0.0]])
    labels = np.array([[1.0, 0, 0], [1, 1, 0]])
    smooth = 0.9 * labels + 0.05
    expected = [
        sum(max(z, 0) - z * q + np.log1p(np.exp(-abs(z))) for z, q in zip(*row, strict=True)) / 3
        for row in zip(logits, smooth, strict=True)
    ]
    np.testing.assert_allclose(loss.call(labels, logits), expected, rtol=1e-6)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_f1_of_batches_is_that_of_all_examples(average):
    rng = np.random.default_rng(3)
    logits, labels = rng.normal(size=(13, 4)), rng.integers(0, 2, (13, 4))
    labels[:, 3], logits[:, 3] = 0, -5
    weights = np.array([1.0] * 11 + [0.0] * 2)  # rows of padding
    metric = LabelF1(4, 0.3, average)
    for rows in (slice(0, 5), slice(5, 13)):
        metric.update_state(labels[rows], logits[rows], sample_weight=weights[rows])
    counts = np.zeros((4, 3))
    for row, other in zip(logits[:11], labels[:11], strict=True):
        for label, (z, y) in enumerate(zip(row, other, strict=True)):
            p = 1 / (1 + np.exp(-z)) >= 0.3
            counts[label] += p and y, p and not y, not p and y
    f1 = [2 * t / (2 * t + p + n) if t + p + n else 0 for t, p, n in [sum(counts), *counts]]
    expected = f1[0] if average == "micro" else np.mean(f1[1:])
    assert float(metric.result()) == pytest.approx(expected, abs=1e-6)
    again = LabelF1.from_config(metric.get_config())
    assert float(again.result()) == 0 and again.average == average
    with pytest.raises(ValueError, match="`average` must be one of micro, macro"):
        LabelF1(4, average="mean")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    keras.utils.set_random_seed(1)
    train(load_settings(write(folder, updates=30)), folder / "run")
    return folder / "run"


@pytest.mark.slow
def test_a_run_is_trained_evaluated_and_has_its_threshold_chosen(run):
    before = evaluate_split(run, "validation")
    chosen = choose_threshold(run, "label_f1")
    assert open_run(run).thresholds == pytest.approx(tuple(chosen["threshold"].values()))
    after = evaluate_split(run, "validation")
    assert chosen["before"]["macro_f1"] == before["macro_f1"]
    assert chosen["after"]["macro_f1"] == after["macro_f1"] >= before["macro_f1"]
    history = (run / "history.csv").read_text().splitlines()
    columns = dict(zip(history[0].split(","), history[-1].split(","), strict=True))
    (run / "threshold.json").unlink()
    assert 100 * float(columns["validation/micro_f1"]) == pytest.approx(
        before["micro_f1"], abs=0.01
    )
    assert 100 * float(columns["validation/macro_f1"]) == pytest.approx(
        before["macro_f1"], abs=0.01
    )
    assert open_run(run).codec.separator == "; "


@pytest.mark.slow
def test_the_command_prints_and_writes_a_threshold(run, tmp_path):
    (tmp_path / "texts").write_text("cat dog\nbird bird\ntree\n")
    (tmp_path / "labels").write_text("has fur; swims\nflies\n\n")
    files = ["--source", str(tmp_path / "texts"), "--reference", str(tmp_path / "labels")]
    result = CliRunner().invoke(cli, ["threshold", str(run), "--for", "micro-f1", *files])
    assert result.exit_code == 0, result.output
    threshold = json.loads(result.stdout)["threshold"]
    assert json.loads((run / "threshold.json").read_text()) == threshold
    (run / "threshold.json").unlink()
    alone = CliRunner().invoke(cli, ["threshold", str(run), *files[:2]])
    assert "--source and --reference go together" in alone.output
    answers = CliRunner().invoke(
        cli, ["predict", str(run), "--threshold", "1", "--scores"], input="cat\n\ndog\n"
    )
    assert [line.split("\t")[1] for line in answers.stdout.splitlines()] == ["", "", ""]
    every = CliRunner().invoke(
        cli, ["predict", str(run), "--threshold", "0", "--probabilities"], input="cat\n\n"
    )
    first, second = every.stdout.splitlines()
    assert {*json.loads(first)} == {*LABELS} and second == "{}"
