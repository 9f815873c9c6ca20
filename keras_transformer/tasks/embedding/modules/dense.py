"""A linear layer after pooling, with a bias and an activation or without."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from keras_transformer import activations
from keras_transformer.arguments import option
from keras_transformer.checks import Count, check_activation
from keras_transformer.lazy_keras import keras
from keras_transformer.tasks.embedding.modules.module import VectorModule
from keras_transformer.variants import declared

# Names of PyTorch's activations, and ours for the same functions with their default options.
ACTIVATIONS = {
    **{"Identity": "linear", "Tanh": "tanh", "ReLU": "relu", "Sigmoid": "sigmoid"},
    **{"GELU": "gelu", "SiLU": "silu"},
}
# Settings that change what the module computes, with the values that are possible here.
EXPRESSIBLE = {
    "module_input_name": ("sentence_embedding", None),
    "module_output_name": ("sentence_embedding", None),
    "use_residual": (False,),
}


@declared
class VectorDense(VectorModule):
    """`activation(W x + b)`, as in LaBSE (Feng et al., 2022).

    Args:
        **options: See `help(VectorDense)`.

    Example:
        >>> from keras_transformer.tasks.embedding.modules.dense import VectorDense
        >>> VectorDense(units=3).width(768)
        3
    """

    kind = "dense"
    about = "a linear layer with an activation"
    published = "Dense"
    weights: ClassVar = {"linear.weight": ("kernel", True), "linear.bias": ("bias", False)}

    units: Count = option(256, "Number of features of the output.")
    activation: Annotated[str, check_activation] = option(
        "tanh", 'Activation: `"tanh"`, `"linear"` for none, or another one.'
    )
    bias: bool = option(True, "Adds a bias.")

    def width(self, width: int) -> int:  # noqa: D102
        return self.units

    def layer(self, width: int, dtype: Any, name: str) -> keras.Layer:  # noqa: D102
        activation = activations.get(self.activation)
        return keras.layers.Dense(
            self.units, activation, use_bias=self.bias, dtype=dtype, name=name
        )

    @classmethod
    def read(cls, settings: Any, shapes: Any) -> Self:  # noqa: D102
        settings.check(EXPRESSIBLE)
        inputs, units = settings.count("in_features"), settings.count("out_features")
        if shapes.get("linear.weight", (units, inputs)) != (units, inputs):
            received = list(shapes["linear.weight"])
            raise settings.wrong("out_features", f"that of linear.weight, {received}")
        name = settings.get("activation_function", "torch.nn.modules.activation.Tanh")
        known = isinstance(name, str) and name.startswith("torch.nn.")
        kind = name.rpartition(".")[2] if known else None
        if kind not in ACTIVATIONS:
            raise settings.wrong(
                "activation_function", f"one of PyTorch's {', '.join(ACTIVATIONS)}"
            )
        return cls(units=units, activation=ACTIVATIONS[kind], bias=settings.flag("bias", True))
