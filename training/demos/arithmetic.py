"""Generated sums and products of binary numbers, with longer numbers in the test split."""

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.memory import MemoryData

SIGNS = {"addition": "+", "multiplication": "*"}
HELD_OUT = 500  # expressions of the validation split, at most


def draw_expression(dice, sign, digits) -> tuple[str, str]:
    """Draws two numbers of some digits, which may begin with zeros.

    Args:
        dice: A `Dice`.
        sign: `"+"` or `"*"`.
        digits: Number of digits of both numbers.

    Returns:
        The expression and its value, a binary number without zeros before it.
    """
    first, second = ("".join(dice.pick("01") for _ in range(digits)) for _ in range(2))
    a, b = int(first, 2), int(second, 2)
    return f"{first}{sign}{second}", f"{a + b if sign == '+' else a * b:b}"


def open_arithmetic(settings) -> MemoryData:
    """Generates the expressions that a `[data]` section describes.

    All counts of digits are equally frequent in training and validation. The validation split may
    share short expressions with the training split, as there are only few of them.

    Args:
        settings: The section, an `ArithmeticData`, or an object with its attributes.
    """
    dice, sign = Dice(settings.seed), SIGNS[settings.operation]
    low, high = settings.digits
    held_out = min(HELD_OUT, settings.examples // 10)
    drawn = [
        draw_expression(dice, sign, low + number % (high - low + 1))
        for number in range(settings.examples)
    ]
    test = [
        draw_expression(dice, sign, digits)
        for digits in settings.test_digits
        for _ in range(settings.test_examples)
    ]
    splits = {"validation": drawn[:held_out], "test": test, "train": drawn[held_out:]}
    return MemoryData(splits, f"generated expressions for the {settings.operation} of numbers")
