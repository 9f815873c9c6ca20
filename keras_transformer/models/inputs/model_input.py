"""The base of the inputs of models."""


class ModelInput:
    """The layers that turn the input of a model into the input of its first stack.

    Args:
        config: The `ModelConfig`.
        policy: Dtype policy of the layers.
        kernels: The `Kernels` that they compute with.

    Attributes:
        layers: The layers by the names of the model's attributes, in order.
    """

    def __init__(self, config, policy, kernels):
        self.config = config
        self.layers = self.make_layers(config, policy, kernels)

    def make_layers(self, config, policy, kernels):
        """Returns the layers by the names of the model's attributes, in order."""
        raise NotImplementedError

    @property
    def roles(self):
        """The layers by the names that two models of different kinds share."""
        return self.layers

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
