"""The codec of arithmetic: expressions of binary numbers to their values."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.arithmetic.config import NUM_SYMBOLS, PAD
from keras_transformer.tasks.arithmetic.metrics import wrong_digits
from keras_transformer.tasks.arithmetic.symbols import (
    RULE,
    decode_values,
    encode_expressions,
    length_of,
    parse,
)
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.labels import LabelCodec
from keras_transformer.tasks.single_pass.result import Choice, log_of
from keras_transformer.tasks.strings import check_sentences
from keras_transformer.tasks.token_rows import assertions
from keras_transformer.tensors import Tensor

ROW = (
    "Each row: the symbols of an expression, then 0 up to the end of the row. {} For any other row "
    "all probabilities are 0. Other rows are not affected."
)
LAYOUTS = {
    "sequence": "Both numbers have the same count of digits, the ones first: 1 for the digit 0 and "
    "2 for the digit 1; between the numbers 3 for + or 4 for *.",
    "aligned": "A symbol is 1 + 2 a + b for a digit a of the first number and the digit b of the "
    "same place of the second, the ones first, and 4 more in a product. Numbers of k digits have "
    "k + 1 symbols in a sum and 2 k in a product.",
}


@dataclasses.dataclass(frozen=True)
class Calculation(Choice):
    """The value of an expression, as a model predicts it.

    Args:
        value: The binary number, without zeros before it.
        probabilities: Array `[T, 2]`, float32: the probabilities of the digits 0 and 1 at each
            place, the ones first.
    """

    value: str
    probabilities: np.ndarray = dataclasses.field(compare=False, repr=False)  # ty: ignore[incompatible-attribute-override]
    truncated = False

    @property
    def text(self) -> str:
        """The value."""
        return self.value

    def score_of(self, other: Any) -> float:
        """Returns the mean log-probability of another result's digits."""
        digits = other.probabilities.argmax(axis=1)[:, None]
        return float(log_of(np.take_along_axis(self.probabilities, digits, axis=1)).mean())

    def is_tied(self, other: Any, tolerance: float) -> bool:
        """Returns whether digits that differ are ties, within 2 * `tolerance`."""
        ours, theirs = (one.probabilities.argmax(axis=1) for one in (self, other))
        if ours.shape != theirs.shape:
            return False
        differ = self.probabilities[ours != theirs]
        return bool(np.all(np.abs(differ[:, 0] - differ[:, 1]) <= 2 * tolerance))


class ArithmeticCodec(LabelCodec):
    """The codec of a model that reads `symbols`, `[B, T]`.

    Args:
        layout: Arrangement of the two numbers: see `SymbolInput`.
        max_length: Maximum number of symbols of an expression; a longer one is an error.
    """

    labels = ("0", "1")
    verb, example = "calculate", "expression"
    signature = "symbols"
    score_unit = "nats per digit"
    blank = False
    padding = {"symbols": PAD}
    own_metadata = ("max_length",)
    request_specs = {"expressions": tf.TensorSpec([None], tf.string, name="expressions")}

    def __init__(self, layout, max_length):
        self.layout, self.longest = layout, max_length
        self.rule = ROW.format(LAYOUTS[layout])

    @classmethod
    def check(cls, examples) -> list[str]:
        """Returns expressions as a list, without white space."""
        return [
            checked(number, example)
            for number, example in enumerate(check_sentences(examples, "expressions"), start=1)
        ]

    @classmethod
    def parse(cls, line) -> str:  # noqa: D102
        return parse(line)

    @classmethod
    def request(cls, examples) -> dict[str, Tensor]:  # noqa: D102
        return {"expressions": tf.constant(examples, tf.string, [len(examples)])}

    def check_lengths(self, examples) -> None:
        """Raises a `ValueError` for an expression that is longer than the model's limit."""
        for example in examples:
            length = length_of(example, self.layout)
            if length > self.longest:
                raise ValueError(
                    f"an expression must have at most {self.longest} symbols, the `max_length` of "
                    f"the model. Received: {length} symbols."
                )

    def encode(self, expressions) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `symbols`, `[B, T]`, and as the rest `digits`, their numbers `[B]`."""
        ragged = encode_expressions(expressions, self.layout)
        digits = tf.cast(ragged.row_lengths(), tf.int32)  # [B]
        checks = {
            f"An expression {RULE}.": digits > 0,
            f"An expression must have at most {self.longest} symbols.": digits <= self.longest,
        }
        with tf.control_dependencies(assertions(checks)):
            symbols = tf.identity(ragged.to_tensor(PAD))
        return {"symbols": symbols}, {"digits": digits}

    def answers(self, outputs, rest) -> dict[str, Tensor]:
        """Returns `value`, `[B]`, the number of its `digits` with zeros, and `probabilities`."""
        probabilities = tf.convert_to_tensor(outputs["probabilities"])  # [B, T, 2]
        digits = tf.argmax(probabilities, axis=-1, output_type=tf.int32)  # [B, T]
        value = decode_values(digits, rest["digits"])
        return {"value": value, "digits": rest["digits"], "probabilities": probabilities}

    @classmethod
    def results(cls, answers) -> list[Calculation]:
        """Returns a `Calculation` for each expression."""
        columns = (answers[name] for name in ("value", "digits", "probabilities"))
        return [
            Calculation(value.decode(), probabilities[:digits])
            for value, digits, probabilities in zip(*columns, strict=True)
        ]

    def checked(self, symbols) -> dict[str, Tensor]:  # noqa: D102
        checks = {
            f"`symbols` must be a row as follows. {LAYOUTS[self.layout]}": self._valid(symbols),
            f"`symbols` must have at most {self.longest} in a row.": tf.reduce_sum(
                tf.cast(tf.not_equal(symbols, PAD), tf.int32), axis=1
            )
            <= self.longest,
        }
        with tf.control_dependencies(assertions(checks)):
            return {"symbols": tf.identity(symbols)}

    def screen(self, symbols) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: D102
        valid = self._valid(symbols)  # [B]
        return valid, {"symbols": tf.where(tf.expand_dims(valid, 1), symbols, PAD)}

    def _valid(self, symbols):
        """Returns which rows have known symbols and then padding, boolean `[B]`."""
        real = tf.not_equal(symbols, PAD)  # [B, T]
        length = tf.reduce_sum(tf.cast(real, tf.int32), axis=1, keepdims=True)  # [B, 1]
        at_the_end = tf.equal(real, tf.range(tf.shape(symbols)[1]) < length)
        known = (symbols >= 0) & (symbols < NUM_SYMBOLS[self.layout])
        return tf.reduce_all(at_the_end & known, axis=1) & (tf.squeeze(length, 1) > 0)

    def input_specs(self, rows=None, length=None) -> dict[str, tf.TensorSpec]:  # noqa: D102
        return {"symbols": tf.TensorSpec([rows, length], tf.int32, name="symbols")}

    def lengths(self, inputs) -> list[int]:  # noqa: D102
        real = tf.not_equal(inputs["symbols"], PAD)
        return tf.reduce_sum(tf.cast(real, tf.int32), axis=1).numpy().tolist()

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {"layout": self.layout, "max_length": self.longest, "symbols": self.rule}

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "ArithmeticCodec":  # noqa: D102
        return cls(metadata["layout"], metadata["max_length"])

    def guide(self, example) -> Guide:  # noqa: D102
        return Guide(
            purpose="Adds or multiplies two binary numbers",
            request={"expressions": f'["{example}"]'},
            axes={
                **dict.fromkeys(("symbols", "label", "probability"), "B, T"),
                "probabilities": "B, T, 2",
            },
            notes=[
                "B: number of expressions in the request. T: number of symbols of the longest one, "
                f"at most {self.longest}; a longer expression is an error.",
                f"An expression {RULE}.",
                "`value` is the binary number, `digits` the number of its digits with the zeros "
                "before it, and `probabilities` those of the digits 0 and 1, the ones first.",
                f"`symbols`: {LAYOUTS[self.layout]}",
            ],
        )

    def quality(self, results, references) -> dict[str, float]:
        """Returns `exact_match`, from 0 to 100."""
        pairs = zip(results, references, strict=True)
        right = [wrong_digits(result.value, reference) == 0 for result, reference in pairs]
        return {"exact_match": 100 * float(np.mean(right))}


def checked(number, example) -> str:
    """Returns an expression without white space.

    Raises:
        ValueError: If it is none; the error names its number, counted from 1.
    """
    text = example.decode("utf-8", "replace") if isinstance(example, bytes) else example
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"expression {number} {error}") from None
