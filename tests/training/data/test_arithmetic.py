"""The generated expressions, and the training of the task."""

import numpy as np
import pytest
import tensorflow as tf
from pydantic import ValidationError

from keras_transformer.models import CalculatorConfig
from keras_transformer.training.demos.settings import ArithmeticData
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.tasks.arithmetic import ArithmeticTraining, ExactMatch

SIZES = {"num_layers": 1, "d_model": 6}


def settings(**changes):
    values = {"source": "arithmetic", "examples": 200, "digits": [1, 6], "test_digits": [3, 70]}
    return ArithmeticData(**{**values, "test_examples": 5, **changes})


def examples(data, split):
    return [tuple(text.decode() for text in row) for row in data.rows(split).as_numpy_iterator()]


@pytest.mark.parametrize("operation, sign", [("addition", "+"), ("multiplication", "*")])
def test_values_are_exact(operation, sign):
    """Python's integers calculate them, also beyond 64 bits."""
    data = open_source(settings(operation=operation))
    sizes = {split: data.count(split) for split in ("train", "validation", "test")}
    assert sizes == {"train": 180, "validation": 20, "test": 10}
    for split in sizes:
        for expression, value in examples(data, split):
            first, second = (int(number, 2) for number in expression.split(sign))
            assert int(value, 2) == (first + second if sign == "+" else first * second)
            assert value == f"{int(value, 2):b}"


def test_counts_of_digits():
    data = open_source(settings())
    counts = [len(e) // 2 for split in ("validation", "train") for e, _ in examples(data, split)]
    assert {counts.count(digits) for digits in range(1, 7)} <= {33, 34} and {*counts} == {
        *range(1, 7)
    }
    assert [len(e) // 2 for e, _ in examples(data, "test")] == [3] * 5 + [70] * 5


def test_a_seed_decides():
    first, again, other = (examples(open_source(settings(seed=s)), "train") for s in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"digits": [5, 2]}, "`digits` must be a smaller and a larger number of digits"),
        ({"digits": [0, 2]}, "`digits` must be a smaller"),
        ({"operation": "division"}, "addition"),
        ({"test_digits": []}, "at least 1"),
        ({"digits": [1, 300]}, "`batch_symbols` must be above .* Received: batch_symbols=512"),
    ],
)
def test_wrong_settings(changes, message):
    with pytest.raises(ValidationError, match=message):
        settings(**changes)


@pytest.mark.parametrize("layout, width", [("sequence", 13), ("aligned", 7)])
def test_batches_have_a_digit_for_each_symbol(layout, width):
    config = CalculatorConfig(encoder="neural_gpu", layout=layout, **SIZES)
    training = ArithmeticTraining(None, config)
    section = settings(digits=[1, 6])
    corpus = training.corpus(open_source(section), "train", section)
    widths = set()
    for symbols, digits in corpus.batches(40):
        widths.add(symbols.shape[1])
        assert symbols.shape == digits.shape
        np.testing.assert_array_equal(symbols != 0, digits >= 0)
        np.testing.assert_array_equal(training.weigh(symbols, digits), symbols != 0)
    assert max(widths) == width


def test_a_tape_learns_from_the_correct_digits():
    """Batches have them as inputs; the digits of padding are unknown and do not count."""
    config = CalculatorConfig(encoder="extended_neural_gpu", **SIZES)
    training = ArithmeticTraining(None, config)
    section = settings()
    inputs, digits = next(iter(training.corpus(open_source(section), "train", section).batches(40)))
    np.testing.assert_array_equal(inputs["digits"], digits)
    np.testing.assert_array_equal(inputs["digits"] < 0, inputs["symbols"] == 0)
    np.testing.assert_array_equal(training.weigh(inputs, digits), inputs["symbols"] != 0)


def test_invalid_examples_are_refused():
    config = CalculatorConfig(encoder="neural_gpu", **SIZES)
    training = ArithmeticTraining(None, config)
    columns = {"expression": tf.constant(["1+1", "2+1"]), "value": tf.constant(["10", "11"])}
    encoded = training.encode(columns)
    valid = training.fields["expression"].is_valid(encoded["expression"])
    assert valid.numpy().tolist() == [True, False]
    assert encoded["value"].to_list() == [[0, 1, 0], []]
    assert training.fields["expression"].explain().startswith("two binary numbers")


def test_exact_match_counts_rows():
    """A row with a wrong digit is wrong; padding and rows of padding do not count."""
    labels = np.array([[0, 1, 1], [1, 0, -1], [-1, -1, -1], [1, 1, 0]])
    answers = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0], [1, 0, 0]])
    metric = ExactMatch()
    metric.update_state(labels, np.eye(2)[answers], sample_weight=labels >= 0)
    assert float(metric.result()) == pytest.approx(2 / 3)
