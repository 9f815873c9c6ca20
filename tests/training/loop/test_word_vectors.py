"""Training with word vectors: rows that are set, and rows that stay unchanged."""

import os
import signal

import numpy as np
import pytest
from small_runs import CONFIG, At, assert_same_end, run_quietly, write_pairs

from keras_transformer.tasks.run import Run
from keras_transformer.training.settings.toml import SettingsError, load_settings

WIDTH = 16
DIGITS = "01234567"  # of ten digits; two have no vector
STEP = ["training.updates=1", "schedule.peak=1e-20", "training.validate_every=1"]


def vectors():
    return {digit: np.full(WIDTH, 0.25 * (1 + int(digit)), np.float32) for digit in DIGITS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_pairs(folder, "train", 60, seed=1)
    write_pairs(folder, "validation", 9, seed=2)
    (folder / "config.toml").write_text(CONFIG)
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in vectors().items()]
    (folder / "vectors.txt").write_text("\n".join([*lines, "dog" + " 1" * WIDTH]) + "\n")
    return folder


def settings_of(folder, *overrides):
    return load_settings(
        folder / "config.toml", [f'model.vectors="{folder}/vectors.txt"', *overrides]
    )


def table_of(path):
    model = Run(path).load_model()
    return model.input_embedding.table.numpy()


def rows_of(path):
    """Returns each digit's row of the source embedding, and the rows of all other tokens."""
    tokenizer = Run(path).load_tokenizers().source
    pieces = [piece.removeprefix("▁") for piece in tokenizer.pieces(range(tokenizer.vocab_size))]
    table = table_of(path)
    known = {piece: table[number] for number, piece in enumerate(pieces) if piece in vectors()}
    others = {n: table[n] for n, piece in enumerate(pieces) if piece not in vectors()}
    return known, others


@pytest.mark.long
@pytest.mark.slow
def test_rows_of_tokens_are_set_and_the_others_start_as_usual(folder, tmp_path):
    figures, shown = run_quietly(settings_of(folder, *STEP), tmp_path / "run")
    run_quietly(load_settings(folder / "config.toml", STEP), tmp_path / "plain")
    known, others = rows_of(tmp_path / "run")
    assert set(known) == set(DIGITS)
    for word, vector in vectors().items():
        np.testing.assert_array_equal(known[word], vector)
    for number, row in rows_of(tmp_path / "plain")[1].items():
        np.testing.assert_array_equal(others[number], row)
    metadata = {"file": f"{folder}/vectors.txt", "found": 8, "missing": 15 - 4 - 8, "frozen": False}
    assert figures["vectors"] == Run(tmp_path / "run").read_metrics()["vectors"] == metadata
    assert "8 tokens begin with their vectors in" in shown and "; 3 are not in it." in shown
    assert "vectors" not in Run(tmp_path / "plain").read_metrics()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("tie", ["none", pytest.param("target", marks=pytest.mark.long)])
def test_a_frozen_table_does_not_change_in_a_single_bit(folder, tmp_path, tie):
    """With weight decay and a moving average, and stopped in the middle."""
    overrides = [
        f'model.tie="{tie}"', "model.freeze_vectors=true", 'optimizer.kind="adamw"',
        "optimizer.weight_decay=0.5", "optimizer.ema_momentum=0.5", "training.updates=4",
    ]  # fmt: skip
    settings = settings_of(folder, *overrides)
    press = At(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    run_quietly(settings, tmp_path / "run", [press])
    moved = (folder / "vectors.txt").rename(folder / "moved.txt")
    try:
        figures, shown = run_quietly(settings, tmp_path / "run")
    finally:
        moved.rename(folder / "vectors.txt")
    assert "vectors of" not in shown and figures["vectors"]["frozen"]
    first = settings_of(folder, *overrides, *STEP)
    run_quietly(first, tmp_path / "first")
    np.testing.assert_array_equal(table_of(tmp_path / "run"), table_of(tmp_path / "first"))
    known, _ = rows_of(tmp_path / "run")
    for word, vector in vectors().items():
        np.testing.assert_array_equal(known[word], vector)
    figures = run_quietly(settings, tmp_path / "whole")[0]
    assert_same_end(tmp_path / "run", (tmp_path / "whole", figures))
    weights = {w.path: w.numpy() for w in Run(tmp_path / "run").load_model().weights}
    before = {w.path: w.numpy() for w in Run(tmp_path / "first").load_model().weights}
    same = [path for path in weights if np.array_equal(weights[path], before[path])]
    assert same == ["source_embedding/table"]


@pytest.mark.slow
@pytest.mark.long
def test_unfrozen_vectors_are_trained(folder, tmp_path):
    run_quietly(settings_of(folder, "training.updates=2"), tmp_path / "run")
    known, _ = rows_of(tmp_path / "run")
    assert all(np.any(known[word] != vector) for word, vector in vectors().items())


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.freeze_vectors=true"], '`model.freeze_vectors` needs `model.tie = "none"`'),
        (['model.start_from="x"'], "not a finished run|no effect with `model.start_from`"),
        (["model.vectors=3"], "model.vectors must be"),
        (["model.freeze_vectors=1"], "model.freeze_vectors must be a valid boolean"),
    ],
)
def test_settings_without_effect_are_reported_in_one_line(folder, overrides, message):
    with pytest.raises(SettingsError, match=message) as error:
        settings_of(folder, *overrides)
    assert "\n" not in str(error.value)


def test_freezing_without_vectors_has_no_effect(folder):
    with pytest.raises(SettingsError, match="`model.freeze_vectors` has no effect without"):
        load_settings(folder / "config.toml", ["model.freeze_vectors=false"])


def test_a_wrong_file_is_reported_before_anything_is_written(folder, tmp_path):
    for content, match in (
        ("", "must have at least one word"),
        ("1 2 3\n", "line 1: must have 16 values, as many as `d_model`. Received: 2"),
    ):
        (tmp_path / "v.txt").write_text(content)
        settings = settings_of(folder, f'model.vectors="{tmp_path}/v.txt"')
        with pytest.raises(ValueError, match=match):
            run_quietly(settings, tmp_path / "run")
        assert not (tmp_path / "run").exists()
