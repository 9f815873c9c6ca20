"""Numbers in decimal notation, and spellings that only Python accepts."""

import pytest

from keras_transformer.text.numbers import parse_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-12.5", -12.5), ("+.5", 0.5), ("7.", 7), ("3e-4", 3e-4), ("1E+2", 100)],
)
def test_decimal_notation_is_read(text, number):
    assert parse_number(text) == number
    assert parse_number(text.replace(".", ","), ",") == number


@pytest.mark.parametrize(
    "text",
    ["", "1_0", "infinity", "inf", "nan", "٣", "１", " 1", "1 ", "1\n", "0x1f", "1e400", ".", "e5",
     "1,5", "1.000,5", "--1", "1e", "²", "1e1.5"],
)  # fmt: skip
def test_other_spellings_are_not_numbers(text):
    assert parse_number(text) is None


def test_the_other_decimal_sign_is_not_a_number():
    assert parse_number("1.5", ",") is None and parse_number("1,5") is None


def test_python_accepts_most_of_these_spellings():
    """So the package must not use Python's own parser."""
    assert list(map(float, ["1_0", " 1", "٣", "１"])) == [10, 1, 3, 1]
