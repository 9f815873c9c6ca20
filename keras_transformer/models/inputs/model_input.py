"""The base of the inputs of models."""

from keras_transformer.layers.layer_group import LayerGroup


class ModelInput(LayerGroup):
    """The layers that turn the input of a model into the input of its first stack.

    Attributes:
        embeddings: The layers that embed tokens.
    """

    embeddings = ()

    def symbol(self):
        """Returns the `keras.Input`."""
        raise NotImplementedError

    def check(self, inputs, model):
        """Refuses inputs of a wrong shape or dtype in one line.

        Raises:
            TypeError: If the dtype is wrong.
            ValueError: If the shape is wrong.
        """

    def allowed(self, inputs):
        """Returns which positions are real, boolean `[B, 1, S]`; `None`: all are."""
        return None

    def __call__(self, inputs, training=None):
        """Returns the input of the first stack, `[B, S, D]`."""
        raise NotImplementedError
