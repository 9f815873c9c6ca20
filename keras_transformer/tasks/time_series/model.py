"""Regression of time series: a causal encoder and a linear output at every step."""

from typing import Any

import keras

from keras_transformer.layers.attention import MultiHeadSelfAttention
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.mixing import Mixing
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import LinearHead
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.tasks.time_series.config import SeriesConfig
from keras_transformer.tasks.time_series.layers import SeriesEmbedding
from keras_transformer.tasks.time_series.snow import SnowAccount
from keras_transformer.tensors import Tensor


class ScaledSteps(ModelInput):
    """Scales the values of every step, `[B, T, F]`, and embeds them if the encoder has blocks."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        layers, series = {}, config.input
        if series.snow:
            places = [series.inputs.index(name) for name in series.snow]
            layers["snow"] = SnowAccount(*places, config.max_length, dtype="float32", name="snow")
        scaling = [1 / scale for scale in series.input_scale]
        offset = [
            -mean / scale for mean, scale in zip(series.input_mean, series.input_scale, strict=True)
        ]
        # In float32: with 16 bits, subtracting a mean far from 0 loses precision.
        layers["scaling"] = keras.layers.Rescaling(scaling, offset, dtype="float32", name="scaling")
        if config.encoder.has_blocks:
            layers["embedding"] = SeriesEmbedding(
                config.d_model,
                config.encoder.embedded_position,
                config.max_length,
                config.encoder.embedding_dropout,
                dtype=policy,
                kernels=kernels,
                name="embedding",
            )
        return layers

    def symbol(self) -> Tensor:  # noqa: D102
        return keras.Input((None, self.config.input.num_inputs), dtype="float32", name="series")

    def check(self, inputs, model) -> None:  # noqa: D102
        check_positions(inputs, "inputs", model, ndim=3)

    def __call__(self, inputs, training=None) -> Tensor:  # noqa: D102
        x = inputs  # [B, T, F]
        if "snow" in self.layers:
            x = self.layers["snow"](x)  # replaces precipitation and temperature by water and snow
        x = self.layers["scaling"](x)  # [B, T, F]
        if "embedding" in self.layers:
            x = self.layers["embedding"](x, training=training)  # [B, T, D]
        return x


class RecurrentEncoder:
    """`LSTM` or `GRU` mixers, optionally followed by causal self-attention (with a residual)."""

    def __init__(self, config, policy, kernels):
        self.roles = {
            f"recurrent_{number}": Mixing(
                config.mixer,
                causal=True,
                dtype=policy,
                kernels=kernels,
                name=f"{config.mixer.kind}_{number}",
            )
            for number in range(config.num_layers)
        }
        self.recurrent = [*self.roles.values()]
        if config.has_attention:
            self.roles["attention"] = MultiHeadSelfAttention(
                config.attention,
                causal=True,
                dtype=policy,
                kernels=kernels,
                name="attention",
            )
            self.roles["norm"] = config.normalization.layer(policy, "norm")

    def __call__(self, x) -> Tensor:
        """Returns `[B, T, D]` for `[B, T, F]`."""
        for layer in self.recurrent:
            x = layer(x)  # [B, T, D]
        if "attention" in self.roles:
            norm = self.roles["norm"]
            residual = keras.layers.Add(dtype=norm.dtype_policy, name="residual")
            x = norm(residual([x, self.roles["attention"](x)]))  # [B, T, D]
        return x


class Number(LinearHead):
    """Linear layer with one output at every step, rescaled to the units of the target."""

    def units(self, config) -> int:  # noqa: D102
        return 1

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        return {
            **super().make_layers(config, policy, kernels),
            "squeeze": keras.layers.Reshape((-1,), dtype="float32", name="squeeze"),
            "unscaling": keras.layers.Rescaling(
                config.head.target_scale, config.head.target_mean, dtype="float32", name="unscaling"
            ),
        }

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        x = self.layers["squeeze"](super().__call__(hidden))  # [B, T]
        return self.layers["unscaling"](x)


@keras.saving.register_keras_serializable(package="keras_transformer")
class SeriesRegressor(EncoderModel):
    """Predicts one number at every step from the measurements at this and earlier steps.

    The model scales inputs and output with the constants of the configuration, so that both have
    their original units outside the model.

    Args:
        config: A `SeriesConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: `[B, T, F]`, floating: the `config.input.inputs` at every step.

    Returns:
        `[B, T]`, the `config.head.target` at every step;
        float32 under mixed-precision policies. A step
        depends only on itself and on earlier steps.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import SeriesConfig, SeriesRegressor
        >>> config = SeriesConfig.preset("tiny", encoder="gru", num_layers=1)
        >>> SeriesRegressor(config)(np.zeros((2, 7, 1), "float32")).shape
        TensorShape([2, 7])

    Differs from the paper: inputs are numbers instead of tokens, and the encoder is causal, like
    the paper's decoder (section 3.2.3).
    """

    config_class = SeriesConfig
    input_class, head_class = ScaledSteps, Number
    default_name = "series_regressor"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.widths = {"inputs": self.config.input.num_inputs}

    def make_encoder(self, stack: Any, policy: Any, kernels: Any) -> Any:  # noqa: D102
        if stack.has_blocks:
            return super().make_encoder(stack, policy, kernels, causal=True)
        return RecurrentEncoder(stack, policy, kernels)
