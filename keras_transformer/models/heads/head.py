"""The base of prediction heads, and layers that several of them have."""

import keras

from keras_transformer.layers.inputs.embedding import OutputBias


class Head:
    """The layers that turn the output of a model's last stack into the output of the model.

    Args:
        config: The `ModelConfig`.
        policy: Dtype policy of the layers.
        kernels: The `Kernels` that they compute with.
        embedding: The embedding of the tokens that the last stack reads, where there is one.

    Attributes:
        layers: The layers by the names of the model's attributes, in order.
    """

    def __init__(self, config, policy, kernels, embedding=None):
        self.layers = self.make_layers(config, policy, kernels, embedding)

    def make_layers(self, config, policy, kernels, embedding):
        """Returns the layers by the names of the model's attributes, in order."""
        raise NotImplementedError

    def __call__(self, hidden, inputs=None, allowed=None):
        """Returns the output of the model.

        Args:
            hidden: Output of the last stack, `[B, S, D]`.
            inputs: The inputs of the model.
            allowed: Boolean `[B, 1, S]`, which positions are real. `None`: all are.
        """
        raise NotImplementedError

    @property
    def roles(self):
        """The layers by the names that two models of different kinds share."""
        return self.layers

    @property
    def drawn(self):
        """The layers that a drawing of the model shows, in order."""
        return self.layers["output_layer"], self.layers["logits"]


def make_logits(policy, bias=False):
    """Returns the layer that casts logits: losses over a large vocabulary need float32.

    Args:
        policy: The dtype policy of the model.
        bias: Whether it also adds a bias.
    """
    in_half = policy.compute_dtype in ("float16", "bfloat16")
    dtype = "float32" if in_half else policy.compute_dtype
    if bias:
        return OutputBias(dtype=dtype, name="logits")
    return keras.layers.Activation("linear", dtype=dtype, name="logits")
