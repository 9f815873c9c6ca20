"""The best validation is remembered, and patience decides when to stop."""

import pytest

from keras_transformer.tasks import TASKS
from keras_transformer.training.loop.best import Best

FIGURES = TASKS["translation"].metrics


@pytest.mark.parametrize(
    ("by", "values", "best", "stop"),
    [
        ("perplexity", [9.0, 7.0, 8.0, 7.0, 6.5, 6.6, 6.7, 6.8], 5, 8),
        ("bleu", [0.0, 3.0, 2.0, 3.0, 2.9, 9.0], 2, 5),
        ("bleu", [0.0, 0.0, 0.0], None, 3),  # nothing learned, so no model is the best
        ("loss", [0.0, 1.0, 1.0, 1.0], 1, 4),
        ("perplexity", [float("nan"), 5.0, float("nan"), float("inf"), 6.0], 2, 5),
        ("bleu", [1.0, 2.0, 3.0, 4.0], 4, None),
        ("perplexity", [float("nan")] * 3, None, 3),
    ],
)
def test_the_best_is_remembered_until_patience_ends(by, values, best, stop):
    looked = Best(FIGURES, by, patience=3)
    for update, value in enumerate(values, start=1):
        assert not looked.exhausted
        looked.see(update, {"loss": -update, by: value})
        resumed = Best(FIGURES, by, patience=3)
        resumed.restore(looked.state())
        looked = resumed
        if looked.exhausted:
            break
    assert (looked.update, looked.exhausted) == (best, stop is not None)
    if stop is not None:
        assert update == stop
        since = "" if best is None else f" since update {best}"
        assert looked.reason() == f"{by} has not improved{since}, 3 validations in a row"
    if best is not None:
        assert looked.results == {"loss": -best, by: values[best - 1]}


def test_the_best_validation_can_be_forgotten_without_new_patience():
    best = Best(FIGURES, "bleu", patience=2)
    for update, value in enumerate([5.0, 4.0]):
        best.see(update, {"bleu": value})
    best.forget()
    assert (best.update, best.results, best.waited) == (None, None, 1)
    best.see(2, {"bleu": 1.0})
    assert (best.update, best.waited) == (2, 0)


def test_without_a_metric_nothing_is_best_and_nothing_stops():
    best = Best(FIGURES)
    for update in range(9):
        best.see(update, {"perplexity": 1.0})
    assert best.state() == {"update": None, "figures": None, "waited": 0}
    assert not best.exhausted
    patient = Best(FIGURES, "bleu")
    for update in range(9):
        patient.see(update, {"bleu": 1.0})
    assert (patient.update, patient.waited, patient.exhausted) == (0, 8, False)
