"""Base class of the inputs of models."""

import keras
from keras import ops

from keras_transformer.layers.composite import LayerGroup
from keras_transformer.tensors import Tensor


class ModelInput(LayerGroup):
    """Base class of the layers between the input of a model and its first stack.

    Attributes:
        embeddings: The layers that embed tokens.
        dtype: Name of the dtype of the inputs.
        counts_tokens: Whether inputs have a length in tokens, which can limit that of outputs.
    """

    embeddings: tuple[keras.Layer, ...] = ()
    dtype = "float32"
    counts_tokens = False

    def symbol(self) -> Tensor:
        """Returns the `keras.Input`."""
        raise NotImplementedError

    def check(self, inputs, model) -> None:
        """Checks the shape and dtype of inputs, with errors of one line.

        Raises:
            TypeError: If the dtype is wrong.
            ValueError: If the shape is wrong.
        """

    def read(self, inputs) -> Tensor:
        """Returns the inputs in the order in which they are embedded, by default as they are."""
        return inputs

    def positions(self, inputs) -> Tensor:
        """Returns the number of positions S of the first stack, a scalar tensor."""
        return ops.shape(inputs)[1]

    def padding_mask(self, inputs) -> Tensor | None:
        """Returns the mask of positions that are not padding, boolean `[B, 1, S]`, or `None`."""
        return None

    def __call__(self, inputs, training=None) -> Tensor:
        """Returns the input of the first stack, `[B, S, D]`.

        Args:
            inputs: The inputs of the model.
            training: Whether dropout is active.
        """
        raise NotImplementedError
