"""Pooling of the outputs for the tokens of a text."""

from typing import Literal

Pooling = Literal["mean", "max", "first", "attention"]
POOLING = (
    "mean",
    """Pooling of the encoder's output: `"mean"` or `"max"` over the tokens of a text, `"first"`,
    the first token, or `"attention"`, a mean with learned weights.""",
)
