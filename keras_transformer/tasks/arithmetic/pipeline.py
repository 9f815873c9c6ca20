"""The pipeline of arithmetic: expressions of binary numbers in, values out."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.tasks.arithmetic.codec import ArithmeticCodec, Calculation
from keras_transformer.tasks.arithmetic.model import Calculator
from keras_transformer.tasks.single_pass.pipeline import SinglePass


class CalculatorPipeline(SinglePass):
    """A trained `Calculator` in use.

    Args:
        model: A `Calculator`, or a list of several; see `Pipeline`.

    Raises:
        TypeError: If `model` is not a `Calculator`.
        ValueError: If several models differ in the layout of their symbols, or write a tape.

    Example:
        from keras_transformer.pipelines import CalculatorPipeline
        CalculatorPipeline.from_run("runs/addition")(["101+11"])
    """

    task = "arithmetic"
    model_class = Calculator
    request = ("expressions",)
    output = "value"
    codec_class = ArithmeticCodec

    def __init__(self, model: keras.Model | Sequence[keras.Model]):
        super().__init__(model)
        if len(self.models) > 1 and any(one.config.writes_tape for one in self.models):
            raise ValueError(
                "An `extended_neural_gpu` must be used alone: models of an ensemble would each "
                f"continue with their own digits. Received: {len(self.models)} models."
            )
        longest = min(one.config.max_length for one in self.models)
        self.codec = ArithmeticCodec(self.model.config.input.layout, longest)
        self.check_models()

    def answer_batch(self, expressions: Sequence[str]) -> list[Calculation]:
        """Returns a `Calculation` for each expression of a list, computed as one batch.

        Raises:
            ValueError: If an expression is too long.
        """
        self.codec.check_lengths(expressions)
        return super().answer_batch(expressions)

    def images(self, expression: str) -> np.ndarray:
        """Returns the mental images of a Neural GPU while it calculates an expression.

        Args:
            expression: Two binary numbers with a sign between them.

        Returns:
            Array `[steps + 1, T, W, D]`, float32: the image before the first step and after each;
            in an Extended Neural GPU also after each step of the decoder.

        Raises:
            ValueError: If the model is not a Neural GPU, or the expression is not valid.
        """
        self.require_one("have no mental image in common")
        if self.model.config.encoder.has_blocks:
            raise ValueError(
                "the model must be a Neural GPU to have mental images: `encoder = "
                '"neural_gpu"`. Received: a Transformer.'
            )
        expressions = self.check_inputs([expression])
        self.codec.check_lengths(expressions)
        symbols = self.codec.encode(**self.codec.request(expressions))[0]["symbols"]  # [1, T]
        inputs = self.model.parts.input
        images = self.model.encoder.images(inputs(symbols), inputs.padding_mask(symbols))
        if self.model.config.writes_tape:
            images += self.model.decoder.images(images[-1])
        return np.stack([tf.cast(image[0], tf.float32).numpy() for image in images])
