"""Time series to a time series: an encoder that sees no future, and a linear map."""

import keras

from keras_transformer.config import SeriesConfig
from keras_transformer.layers import positions
from keras_transformer.layers.attention import MultiHeadSelfAttention
from keras_transformer.layers.call_checks import check_positions
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.inputs.series import SeriesEmbedding
from keras_transformer.layers.normalization import LayerNormalization
from keras_transformer.models.base import ConfiguredModel, make_logits
from keras_transformer.models.snow import SnowAccount

CELLS = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


@keras.saving.register_keras_serializable(package="keras_transformer")
class SeriesRegressor(ConfiguredModel):
    """From what is measured at every step to one number at every step, of this and earlier steps.

    Inputs are scaled by the constants of the configuration, and so is the output, so that both are
    in their own units.

    Args:
        config: A `SeriesConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` that the layers compute with; a file does not keep them.

    Call arguments:
        inputs: `[B, T, F]`, floating: the `config.inputs` at every step.

    Returns:
        `[B, T]`, the `config.target` at every step; float32 under the mixed policies. A step
        depends on itself and on earlier ones only.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import SeriesConfig, SeriesRegressor
        >>> config = SeriesConfig.preset("tiny", encoder="gru", num_layers=1)
        >>> SeriesRegressor(config)(np.zeros((2, 7, 1), "float32")).shape
        TensorShape([2, 7])

    Differs from the paper: inputs are numbers, not tokens; its encoder attends to earlier steps
    alone, as its decoder does (section 3.2.3). LSTM and GRU are those of Keras.
    """

    config_class = SeriesConfig

    def __init__(self, config="base", dtype=None, name="series_regressor", **kwargs):
        super().__init__(config, dtype, name, **kwargs)
        self.widths = {"inputs": self.config.num_inputs}

    def __call__(self, inputs, *args, **kwargs):
        """Refuses inputs of a wrong shape or dtype in one line, and calls the model."""
        check_positions(inputs, "inputs", self, ndim=3)
        return super().__call__(inputs, *args, **kwargs)

    def _make_inputs(self, config):
        return keras.Input((None, config.num_inputs), dtype="float32", name="series")

    def _make_layers(self, config, policy, kernels):
        scaling = [1 / scale for scale in config.input_scale]
        offset = [
            -mean / scale for mean, scale in zip(config.input_mean, config.input_scale, strict=True)
        ]
        make = _blocks if config.encoder == "transformer" else _recurrent_layers
        return {
            **_snow(config),
            # In float32: a mean far from 0 would not survive 16 bits.
            "scaling": keras.layers.Rescaling(scaling, offset, dtype="float32", name="scaling"),
            **make(config, policy, kernels),
            "dropout": Dropout(config.dropout, dtype=policy, name="dropout"),
            "output_layer": keras.layers.Dense(1, dtype=policy, name="output"),
            "logits": make_logits(policy),
            "squeeze": keras.layers.Reshape((-1,), dtype="float32", name="squeeze"),
            "unscaling": keras.layers.Rescaling(
                config.target_scale, config.target_mean, dtype="float32", name="unscaling"
            ),
        }

    def _connect(self, config, layers, inputs):
        x, before = inputs, None
        for name, layer in layers.items():
            if name == "norm":  # of the attention before it, with a residual connection
                x = keras.layers.Add(dtype=layer.dtype_policy, name="residual")([before, x])
            before, x = x, layer(x)  # [B, T, F], [B, T, D], [B, T, 1] and [B, T]
        return x


def _snow(config):
    """The layer that makes water and snow of two of the inputs, if there is one."""
    if not config.snow:
        return {}
    places = [config.inputs.index(name) for name in config.snow]
    return {"snow": SnowAccount(*places, config.max_length, dtype="float32", name="snow")}


def _blocks(config, policy, kernels):
    """The layers of a transformer, by the names of the model's attributes."""
    return {
        "embedding": SeriesEmbedding(
            config.d_model,
            positions.of_embedding(config),
            config.max_length,
            config.embedding_dropout,
            dtype=policy,
            kernels=kernels,
            name="embedding",
        ),
        "encoder": Encoder.from_stack(
            config.stack, causal=True, dtype=policy, kernels=kernels, name="encoder"
        ),
    }


def _recurrent_layers(config, policy, kernels):
    """LSTM or GRU layers, and what follows them where there is attention."""
    kind, _, attention = config.encoder.partition("_")
    layers = {
        f"recurrent_{number}": CELLS[kind](
            config.d_model, return_sequences=True, dtype=policy, name=f"{kind}_{number}"
        )
        for number in range(config.num_layers)
    }
    if attention:
        layers["attention"] = MultiHeadSelfAttention(
            config.num_heads,
            d_k=config.d_k,
            d_v=config.d_v,
            dropout=config.attention_dropout,
            use_bias=config.attention_bias,
            score=config.score,
            causal=True,
            dtype=policy,
            kernels=kernels,
            name="attention",
        )
        layers["norm"] = LayerNormalization(
            epsilon=config.layer_norm_epsilon, dtype=policy, name="norm"
        )
    return layers
