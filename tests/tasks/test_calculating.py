"""Expressions as symbols, values as digits, and the pipeline of arithmetic."""

import functools
import random

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from pipelines import write_run
from support import randomise

from keras_transformer.cli.main import cli
from keras_transformer.models import Calculator
from keras_transformer.pipelines import Calculation, CalculatorPipeline
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.arithmetic.codec import ArithmeticCodec
from keras_transformer.tasks.arithmetic.metrics import value_metrics
from keras_transformer.tasks.arithmetic.symbols import (
    decode_values,
    encode_expressions,
    encode_values,
    length_of,
    parse,
)

EXPRESSIONS = ["101+11", "0*0", "1+1", "10011*1", "1*110", "0001+1"]
SIZES = {"num_layers": 1, "d_model": 6, "dropout": 0.0}


def symbols_of(expression, layout):
    """The symbols of an expression, in Python's strings."""
    sign = "+" if "+" in expression else "*"
    first, second = expression.split(sign)
    count = max(len(first), len(second))
    first, second = (number.zfill(count)[::-1] for number in (first, second))
    if layout == "sequence":
        return ["01+*".index(character) + 1 for character in first + sign + second]
    size = count + 1 if sign == "+" else 2 * count
    pairs = zip(first.ljust(size, "0"), second.ljust(size, "0"), strict=True)
    return [1 + 2 * int(a) + int(b) + 4 * (sign == "*") for a, b in pairs]


@functools.cache
def pipeline(**changes):
    options = {"encoder": "neural_gpu", "max_length": 15, **SIZES, **changes}
    return CalculatorPipeline(randomise(Calculator(**options)))


@pytest.mark.parametrize("layout", ["sequence", "aligned"])
def test_symbols(layout):
    encoded = encode_expressions(tf.constant(EXPRESSIONS), layout)
    expected = [symbols_of(expression, layout) for expression in EXPRESSIONS]
    assert encoded.dtype == tf.int32 and encoded.to_list() == expected
    assert [length_of(expression, layout) for expression in EXPRESSIONS] == [*map(len, expected)]
    for expression in EXPRESSIONS:  # the same alone
        (alone,) = encode_expressions(tf.constant([expression]), layout).to_list()
        assert alone == symbols_of(expression, layout)


@pytest.mark.parametrize("layout", ["sequence", "aligned"])
def test_a_value_has_room(layout):
    """The largest numbers of some digits have a value of no more digits than symbols."""
    for digits in range(1, 9):
        largest = 2**digits - 1
        for sign, value in (("+", 2 * largest), ("*", largest**2)):
            assert value.bit_length() <= length_of(f"{largest:b}{sign}{largest:b}", layout)


def test_invalid_expressions_have_no_symbols():
    wrong = ["12+3", "", "1+1+1", "+1", "1-1", "1 1", "٣+1", "1+1"]
    lengths = encode_expressions(tf.constant(wrong), "sequence").row_lengths()
    assert lengths.numpy().tolist() == [0] * 7 + [3]


def test_values_return():
    drawn = random.Random(1)
    numbers = [drawn.getrandbits(drawn.randint(1, 60)) for _ in range(20)] + [0]
    lengths = tf.constant([max(1, number.bit_length()) + drawn.randint(0, 3) for number in numbers])
    values = [f"{number:b}" for number in numbers]
    encoded = encode_values(tf.constant(values), lengths)
    assert encoded.row_lengths().numpy().tolist() == lengths.numpy().tolist()
    padded = encoded.to_tensor(1)  # padding does not count
    assert [value.decode() for value in decode_values(padded, lengths).numpy()] == values
    for digits, number in zip(encoded.to_list(), numbers, strict=True):
        assert sum(digit << place for place, digit in enumerate(digits)) == number


@pytest.mark.parametrize("expression", ["12+3", "", " ", "1+1+1", "101", "+", "1-1", "1" * 99])
def test_wrong_expressions(expression):
    with pytest.raises(ValueError, match=r"must be two binary numbers .* Received: ") as error:
        parse(expression)
    assert "\n" not in str(error.value) and len(str(error.value)) < 200


def test_errors_name_the_expression():
    calculate = pipeline()
    with pytest.raises(ValueError, match=r"^expression 2 must be two binary .* Received: '12\+3'"):
        calculate(["1+1", "12+3"])
    message = r"^an expression must have at most 15 symbols, .* Received: 17 symbols\."
    with pytest.raises(ValueError, match=message):
        calculate("10000000+1")
    with pytest.raises(ValueError, match=message):
        calculate.images("10000000+1")
    with pytest.raises(TypeError, match="`expressions` must be a list of strings"):
        calculate([3])


@pytest.mark.parametrize(
    "layout, encoder",
    [("sequence", "neural_gpu"), ("aligned", "neural_gpu"), ("aligned", "extended_neural_gpu")],
)
def test_the_pipeline_reads_the_digits_of_the_model(layout, encoder):
    calculate = pipeline(layout=layout, encoder=encoder)
    assert calculate([]) == [] and calculate(" 1 + 10 ") == calculate("1+10")
    together = calculate.answer(EXPRESSIONS)
    for expression, result in zip(EXPRESSIONS, together, strict=True):
        logits = calculate.model(np.array([symbols_of(expression, layout)]))[0]
        number = sum(int(digit) << place for place, digit in enumerate(np.argmax(logits, -1)))
        assert result.text == f"{number:b}"
        np.testing.assert_allclose(result.probabilities, tf.nn.softmax(logits), atol=1e-6)
        np.testing.assert_allclose(
            result.probabilities, calculate.answer(expression).probabilities, atol=1e-6
        )


def test_bad_lines_get_one_line_each(tmp_path):
    """`predict` leaves their answers empty."""
    run = write_run(pipeline(), tmp_path / "run")
    lines = "1+1\n12+3\n\n10000000+1\n 1 * 10\n"
    done = CliRunner().invoke(cli, ["predict", str(run)], input=lines)
    right = pipeline()(["1+1", "1*10"])
    assert done.stdout.split("\n") == [right[0], "", "", "", right[1], ""]
    warnings = [line for line in done.stderr.splitlines() if line.startswith("Warning")]
    assert [line.partition(": must")[0] for line in warnings[:2]] == [
        "Warning: line 2",
        "Warning: line 3",
    ]
    assert "line 4: an expression must have at most 15 symbols" in warnings[2]


def test_images_of_a_neural_gpu():
    images = pipeline().images("10+1")
    assert images.shape == (6, 5, 4, 6)
    with pytest.raises(ValueError, match="must be a Neural GPU to have mental images"):
        transformer = Calculator(**SIZES, num_heads=2, d_ff=8)
        CalculatorPipeline(transformer).images("10+1")


def test_images_of_an_extended_neural_gpu():
    """Five steps of the encoder and five of the decoder, whose last one has the last digit."""
    calculate = pipeline(encoder="extended_neural_gpu")
    images = calculate.images("10+1")
    assert images.shape == (11, 5, 4, 6)
    last = calculate.model.decoder.output_layer(images[-1:, -1, 0])
    probabilities = calculate.answer("10+1").probabilities[-1]
    np.testing.assert_allclose(tf.nn.softmax(last)[0], probabilities, rtol=0, atol=1e-5)


def test_a_tape_has_one_model():
    model = Calculator(**SIZES, encoder="extended_neural_gpu")
    with pytest.raises(ValueError, match="must be used alone: .* Received: 2 models"):
        CalculatorPipeline([model, model])


def test_results_compare_digits():
    sure, other = ([[0.9, 0.1], [0.2, 0.8]], [[0.4999, 0.5001], [0.2, 0.8]])
    ours, theirs = (
        Calculation(value, np.array(numbers, "float32"))
        for value, numbers in (("10", sure), ("11", other))
    )
    assert not ours.agrees(theirs, 1e-3)
    assert theirs.is_tied(ours, 1e-3) and not ours.is_tied(theirs, 1e-3)
    assert ours.score_of(theirs) == pytest.approx(np.log([0.1, 0.8]).mean())


def test_evaluation_by_digits():
    """Whole values and wrong digits, also of numbers with zeros before them."""

    class Answers:
        def answer(self, expressions):
            values = {"1+1": "10", "1+0": "0", "10+11": "101", "0011+0001": "110"}
            return [
                Calculation(values[one], np.zeros((len(symbols_of(one, "aligned")), 2)))
                for one in expressions
            ]

    expressions = ["0011+0001", "1+1", "10+11", "1+0"]
    results = TASKS["arithmetic"].evaluate(Answers(), [expressions, ["100", "10", "101", "1\n"]])
    assert results["exact_match"] == 50 and results["expressions"] == 4
    assert results["digit_errors"] == pytest.approx(100 * 2 / (2 + 2 + 3 + 5))
    assert [*results["by_digits"]] == ["1", "2", "4"]
    one = {"exact_match": 50, "digit_errors": 25, "expressions": 2}
    assert results["by_digits"]["1"] == one
    with pytest.raises(ValueError, match="value 1 must be a binary number. Received: '12'"):
        TASKS["arithmetic"].evaluate(Answers(), [["1+1"], ["12"]])
    with pytest.raises(ValueError, match="at least one expression"):
        TASKS["arithmetic"].evaluate(Answers(), [[], []])
    assert value_metrics(["1"], ["10"], [3]) == {"exact_match": 0, "digit_errors": 100 * 2 / 3}


def test_rows_of_symbols_from_outside():
    codec = ArithmeticCodec("sequence", 5)
    rows = tf.constant([[2, 3, 2, 0], [0, 2, 3, 2], [2, 5, 2, 0], [0, 0, 0, 0], [1, 3, 1, 0]])
    valid, kept = codec.screen(symbols=rows)
    assert valid.numpy().tolist() == [True, False, False, False, True]
    assert not np.any(kept["symbols"][1:4])
    np.testing.assert_array_equal(codec.checked(symbols=rows[:1])["symbols"], rows[:1])
    for wrong, message in ((rows[1:2], "must be a row"), (tf.ones([1, 6], tf.int32), "at most 5")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            codec.checked(symbols=wrong)
