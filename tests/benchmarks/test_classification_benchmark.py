"""Checks of `benchmarks/classification.py` that must pass before its results can be trusted."""

import json
import runpy

import numpy as np
import pytest
from small_runs import run_quietly
from support import BENCHMARKS, run_benchmark

from keras_transformer.models import ClassifierConfig
from keras_transformer.tasks.run import Run
from keras_transformer.training.loop.checkpoint import Checkpoints
from keras_transformer.training.settings.toml import load_settings

CONFIG = """
[task]
kind = "classification"

[model]
num_layers = 1
d_model = 12
d_ff = 20
num_heads = 2
dropout = 0.3
max_length = 20

[data]
source = "text"
train = "train.tsv"
validation = "dev.tsv"
test = "test.tsv"
max_length = 20
batch_tokens = 60

[vocabulary]
size = 15

[schedule]
warmup_steps = 1
peak = 0.02

[training]
updates = 4
validate_every = 2
r_drop = 1.0
"""
NAMES = ("lstm", "lstm_max", "bidirectional", "bidirectional_max", "bidirectional_mean")


@pytest.fixture(scope="module")
def models():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return runpy.run_path(str(BENCHMARKS / "classification.py"))["MODELS"]


def config():
    return ClassifierConfig(
        vocab_size=30, labels=("0", "1", "2"), num_layers=1, d_model=12, d_ff=20, num_heads=2,
        dropout=0.5,
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_recurrent_model_has_the_requested_number_of_parameters(models, name):
    kind = models[name]
    units = kind.units(config(), 2000)
    model = kind.make(config(), units, "float32")
    assert model.count_params() == kind.count(config(), units)
    nearest = [abs(kind.count(config(), units + step) - 2000) for step in (-1, 0, 1)]
    assert nearest[1] == min(nearest)


@pytest.mark.parametrize("name", ["bidirectional", "bidirectional_mean"])
def test_dropout_is_on_in_training_only_and_padding_changes_nothing(models, name):
    model = models[name].make(config(), 7, "float32")
    for weight in model.weights:
        weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    tokens = np.random.default_rng(1).integers(4, 30, (3, 5))
    tokens[1, 3:] = 0
    padded = np.pad(tokens, ((0, 0), (0, 4)))
    logits = model(tokens).numpy()
    assert logits.shape == (3, 3)
    np.testing.assert_allclose(model(padded), logits, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(model(tokens).numpy(), logits)
    first, second = (model(tokens, training=True).numpy() for _ in range(2))
    assert (first != second).all() and (first != logits).all()


@pytest.mark.slow
@pytest.mark.long
def test_all_models_are_trained_alike_and_the_test_split_is_not_read(tmp_path):
    rng = np.random.default_rng(0)
    for split, count in (("train", 40), ("dev", 12), ("test", 9)):
        rows = [rng.integers(0, 10, rng.integers(2, 7)) for _ in range(count)]
        lines = ["".join(map(str, row)) + f"\t{row[0] % 2}\n" for row in rows]
        (tmp_path / f"{split}.tsv").write_text("".join(lines))
    (tmp_path / "c.toml").write_text(CONFIG)
    output = tmp_path / "runs"
    arguments = ["--config", tmp_path / "c.toml", "--output", output, "--seeds=1,2"]

    def run(*more):
        done = run_benchmark("classification.py", *arguments, "--models=lstm", *more)
        assert done.returncode == 0, done.stderr
        return json.loads((output / "classification.json").read_text()), done

    first, _ = run("--choose")
    assert first["split"] == "validation"
    report, done = run()
    assert list(report["results"]) == ["transformer", "lstm"]
    for name, of_seeds in report["results"].items():
        assert list(of_seeds) == ["1", "2"]
        for seed, figures in of_seeds.items():
            assert figures["parameters"] == pytest.approx(
                report["results"]["transformer"][seed]["parameters"], rel=0.05
            )
            curve = (output / f"{name}-{seed}" / "history.csv").read_text().splitlines()
            place = curve[0].split(",").index("validation/accuracy")
            measured = [float(line.split(",")[place]) for line in curve[1:]]
            assert len(measured) == 2
            updates = {"last": 4, "best": 2 * (1 + int(np.argmax(measured)))}
            for rule, update in updates.items():
                right = figures[rule].pop("test") * 9 / 100
                assert right == pytest.approx(round(right), abs=1e-3)
                expected = pytest.approx(100 * measured[update // 2 - 1])
                assert figures[rule] == {"update": update, "validation": expected}
            assert figures == first["results"][name][seed], "nothing was trained again"
        for rule in updates:
            values = report["summary"][rule][name]["seeds"]
            assert f"{np.median(values):.2f} ({min(values):.2f} to" in done.stdout
    place = curve[0].split(",").index("train/examples")
    seen = set()
    for name in report["results"]:
        last = (output / f"{name}-1" / "history.csv").read_text().splitlines()[-1]
        seen.add(float(last.split(",")[place]))
    assert len(seen) == 1, "they saw the same batches"

    # The package's own training loop ends with the same weights. The tolerance covers rounding,
    # which differs by 6e-8 between processes.
    figures, _ = run_quietly(
        load_settings(tmp_path / "c.toml", ["training.seed=1"]), tmp_path / "r"
    )
    assert figures["validation"]["accuracy"] * 100 == pytest.approx(
        report["results"]["transformer"]["1"]["last"]["validation"]
    )
    ours = [tmp_path / "r", output / "transformer-1"]
    first, second = (np.load(Checkpoints(Run(run).checkpoints).paths()[-1]) for run in ours)
    for one, two in zip(first.files[:-1], second.files[:-1], strict=True):
        np.testing.assert_allclose(first[one], second[two], rtol=0, atol=1e-5, err_msg=one)
