"""Base classes of prediction heads."""

from typing import Any

import keras

from keras_transformer import activations
from keras_transformer.layers.composite import LayerGroup
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.inputs.embedding import OutputBias
from keras_transformer.layers.masks import TokenMask
from keras_transformer.tensors import Tensor


class Head(LayerGroup):
    """Base class of prediction heads, the layers from the last stack to the model's output."""

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:
        """Returns the output of the model.

        Args:
            hidden: Output of the last stack, `[B, S, D]`.
            inputs: The inputs of the model.
            padding_mask: Boolean `[B, 1, S]`, `True` for positions that are not padding. `None`: no
                padding.
        """
        raise NotImplementedError

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:
        """The layers to show in a diagram of the model, in order."""
        return self.layers["output_layer"], self.layers["logits"]


class LinearHead(Head):
    """Dropout and a linear layer, applied to each position of the output of the last stack.

    With the option `transform`, a dense layer and a normalisation come first.
    """

    def units(self, config) -> int:
        """Returns the number of logits C."""
        raise NotImplementedError

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        units = self.units(config)
        return {
            **make_transform(config, policy, config.encoder.d_model),
            "dropout": Dropout(config.encoder.dropout, dtype=policy, name="dropout"),
            "output_layer": keras.layers.Dense(units, dtype=policy, name="output"),
            "logits": make_logits(policy),
        }

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        return self.classified(hidden)  # [B, S, C]

    def classified(self, hidden, output="output_layer") -> Tensor:
        """Returns the logits `[..., C]` of vectors `[..., D]`.

        Args:
            hidden: The vectors.
            output: Name of the linear layer.
        """
        x = self.layers["dropout"](transformed(hidden, self.layers))  # [..., D]
        return self.layers["logits"](self.layers[output](x))  # [..., C]


def make_transform(config, policy, width) -> dict[str, keras.Layer]:
    """Returns the dense layer and the normalisation of the option `transform`, a dictionary.

    It is empty without the option.

    Args:
        config: The configuration of the model.
        policy: The dtype policy of the model.
        width: Number of features of their output.
    """
    if not getattr(config.head, "transform", False):
        return {}
    activation = activations.get(config.head.transform_activation)
    return {
        "transform": keras.layers.Dense(width, activation, dtype=policy, name="transform"),
        "transform_norm": config.encoder.block.normalization.layer(policy, "transform_norm"),
    }


def transformed(hidden, layers) -> Tensor:
    """Returns the output of the layers of `make_transform`, if they are among those of a head."""
    if "transform" not in layers:
        return hidden
    return layers["transform_norm"](layers["transform"](hidden))  # [B, S, E]


def output_dtype(policy) -> str:
    """Returns the dtype of outputs: float32, which losses need, where layers compute in 16 bits."""
    is_half = policy.compute_dtype in ("float16", "bfloat16")
    return "float32" if is_half else policy.compute_dtype


def make_logits(policy, bias=False) -> keras.Layer:
    """Returns the layer that casts logits to float32, which losses over large vocabularies need.

    Args:
        policy: The dtype policy of the model.
        bias: Whether the layer also adds a bias.
    """
    dtype = output_dtype(policy)
    if bias:
        return OutputBias(dtype=dtype, name="logits")
    return keras.layers.Activation("linear", dtype=dtype, name="logits")


def with_mask(logits, tokens, config) -> Tensor:
    """Returns logits with the mask of padding, which Keras's losses and metrics leave out.

    Args:
        logits: `[B, T, C]`.
        tokens: The token ids that the model reads, `[B, T]`.
        config: The configuration of the model.
    """
    ids = config.tokens
    layer = TokenMask(
        ids.pad_id,
        keeps_first=ids.bos_id == ids.pad_id,
        dtype=logits.dtype,
        name="token_mask",
    )
    return layer([logits, tokens])
