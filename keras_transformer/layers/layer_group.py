"""Base class of the inputs and heads of models: a group of named layers."""

from typing import Any


class LayerGroup:
    """The layers of a model's input or head, made from its configuration.

    Args:
        config: The `ModelConfig`.
        policy: Dtype policy of the layers.
        kernels: The `Kernels` of the layers.
        **options: Further arguments of `make_layers`.

    Attributes:
        layers: The layers in order, by their attribute names in the model.
    """

    def __init__(self, config, policy, kernels, **options):
        self.config = config
        self.layers = self.make_layers(config, policy, kernels, **options)

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:
        """Returns the layers in order, by their attribute names in the model."""
        raise NotImplementedError

    @property
    def roles(self) -> dict[str, Any]:
        """The layers by role: names that models of different kinds have in common."""
        return self.layers
