"""Expressions of binary numbers, such as `101+11`, as the symbols that a model reads.

Both numbers get as many digits as the longer one, k of them, and the digits of ones come first. In
the layout `sequence` the 2 k + 1 symbols are the first number, the sign and the second number, with
0 padding, 1 the digit zero, 2 the digit one, 3 plus and 4 times. In the layout `aligned` a symbol
is a pair of digits, `1 + 2 a + b`, and 4 more for a product; there are k + 1 symbols for a sum and
2 k for a product. In both, the value has no more digits than there are symbols.
"""

import re

import tensorflow as tf

from keras_transformer.tensors import Tensor

SHOWN = 60  # maximum number of characters of an expression in an error
EXPRESSION = re.compile(r"\s*([01]+)\s*([+*])\s*([01]+)\s*", re.ASCII)
RULE = "must be two binary numbers with + or * between them, such as 101+11"


def parse(expression: str) -> str:
    """Returns an expression without white space.

    Raises:
        ValueError: If it is no expression; the error is the end of a sentence about it.
    """
    match = EXPRESSION.fullmatch(expression)
    if match is None:
        shown = expression if len(expression) <= SHOWN else expression[:SHOWN] + "..."
        raise ValueError(f"{RULE}. Received: {shown!r}.")
    return "".join(match.groups())


def digits_in(expression: str) -> int:
    """Returns the number of digits of the longer number of an expression."""
    return max(map(len, parse(expression).replace("*", "+").split("+")))


def length_of(expression: str, layout: str) -> int:
    """Returns the number of symbols of an expression."""
    return int(length_for(digits_in(expression), "*" in expression, layout))


def length_for(digits, is_product, layout):
    """Returns the number of symbols for numbers of some digits: integers, arrays or tensors."""
    return 2 * digits + 1 if layout == "sequence" else (digits + 1) + is_product * (digits - 1)


def encode_expressions(expressions: Tensor, layout: str) -> tf.RaggedTensor:
    """Returns the symbols of expressions, int32, ragged `[B, (T)]`; runs in a graph.

    An invalid expression has no symbols.

    Args:
        expressions: Strings `[B]`, as `parse` accepts and returns them.
        layout: `"sequence"` or `"aligned"`.
    """
    expressions = tf.strings.regex_replace(expressions, r"\s", "")
    valid = tf.strings.regex_full_match(expressions, "[01]+[+*][01]+")
    expressions = tf.where(valid, expressions, "0+0")
    first, first_size = digits_of(tf.strings.regex_replace(expressions, "[+*].*", ""))
    second, second_size = digits_of(tf.strings.regex_replace(expressions, ".*[+*]", ""))
    is_product = tf.cast(tf.strings.regex_full_match(expressions, r".*\*.*"), tf.int32)  # [B]
    digits = tf.maximum(first_size, second_size)  # [B]
    lengths = length_for(digits, is_product, layout)  # [B]
    places = tf.range(tf.reduce_max(lengths, axis=0))  # [T]; of no expression, empty
    digits, is_product = tf.expand_dims(digits, 1), tf.expand_dims(is_product, 1)  # [B, 1]
    if layout == "sequence":
        of_first, of_second = at(first, places), at(second, places - digits - 1)  # [B, T]
        numbers = tf.where(places < digits, of_first, of_second) + 1
        symbols = tf.where(tf.equal(places, digits), 3 + is_product, numbers)
    else:
        symbols = 1 + 4 * is_product + 2 * at(first, places) + at(second, places)
    return tf.RaggedTensor.from_tensor(symbols, tf.where(valid, lengths, 0))


def digits_of(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the digits of binary numbers, the ones first, `[B, K]`, and their counts `[B]`.

    Args:
        numbers: Strings `[B]` of the digits 0 and 1.
    """
    characters = tf.strings.bytes_split(numbers)  # [B, (K)]
    counts = tf.cast(characters.row_lengths(), tf.int32)
    ones = tf.cast(tf.equal(characters.to_tensor(""), "1"), tf.int32)  # [B, K]
    return tf.reverse_sequence(ones, counts, seq_axis=1), counts


def at(digits: Tensor, places: Tensor) -> Tensor:
    """Returns the digits at some places, 0 for places beyond the last digit.

    Args:
        digits: `[B, K]`.
        places: `[T]`, or `[B, T]`.
    """
    rows, last = tf.unstack(tf.shape(digits))
    places = tf.broadcast_to(places, [rows, tf.shape(places)[-1]])  # [B, T]
    inside = (places >= 0) & (places < last)
    digits = tf.pad(digits, [[0, 0], [0, 1]])  # so that there is a place, even without digits
    return tf.where(inside, tf.gather(digits, tf.where(inside, places, 0), batch_dims=1), 0)


def encode_values(values: Tensor, lengths: Tensor) -> tf.RaggedTensor:
    """Returns the digits of values, the ones first, with zeros up to given lengths, ragged.

    Args:
        values: Strings `[B]` of binary numbers.
        lengths: Numbers of symbols of their expressions, `[B]`; a longer value is cut.
    """
    digits, _ = digits_of(values)
    lengths = tf.cast(lengths, tf.int32)
    places = tf.range(tf.reduce_max(lengths, axis=0))
    return tf.RaggedTensor.from_tensor(at(digits, places), lengths)


def decode_values(digits: Tensor, lengths: Tensor) -> Tensor:
    """Returns values as strings `[B]` without zeros before them; runs in a graph.

    Args:
        digits: `[B, T]`, the ones first.
        lengths: Numbers of digits that count, `[B]`.
    """
    real = tf.sequence_mask(lengths, tf.shape(digits)[1])
    characters = tf.where(real, tf.where(tf.equal(digits, 1), "1", "0"), "")
    values = tf.strings.reduce_join(tf.reverse(characters, [1]), axis=1)
    return tf.strings.regex_replace(values, "^0+([01])", r"\1")
