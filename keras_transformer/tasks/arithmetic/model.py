"""`Calculator`: a Neural GPU or a Transformer's encoder that writes a digit at each position."""

from typing import Any

import keras

from keras_transformer.layers.call_checks import check_ids
from keras_transformer.layers.masks import PaddingMask
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head, make_logits
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.models.inputs.tokens import make_embedding
from keras_transformer.tasks.arithmetic.config import PAD, CalculatorConfig
from keras_transformer.tasks.arithmetic.layers import NeuralGPU
from keras_transformer.tensors import Tensor


class EmbeddedSymbols(ModelInput):
    """Embeds the symbols of expressions, `[B, T]`."""

    dtype = "int32"

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        size = config.input.num_symbols
        return {
            "mask": PaddingMask(PAD, name="mask"),
            "embedding": make_embedding(
                config.input, size, config.encoder, policy, kernels, "embedding"
            ),
        }

    def symbol(self) -> Tensor:  # noqa: D102
        return keras.Input((None,), dtype="int32", name="symbols")

    def check(self, inputs, model) -> None:  # noqa: D102
        check_ids(inputs, "symbols", model, self.config.input.num_symbols)

    def padding_mask(self, inputs) -> Tensor | None:  # noqa: D102
        return self.layers["mask"](inputs)

    def __call__(self, inputs, training=None) -> Tensor:  # noqa: D102
        return self.layers["embedding"](inputs, training=training)  # [B, T, D]


class DigitLogits(Head):
    """Linear classifier of each position, with a logit for each of the two digits."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        return {
            "output_layer": keras.layers.Dense(2, dtype=policy, name="output"),
            "logits": make_logits(policy),
        }

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        return self.layers["logits"](self.layers["output_layer"](hidden))  # [B, T, 2]


@keras.saving.register_keras_serializable(package="keras_transformer")
class Calculator(EncoderModel):
    """Reads an expression of binary numbers, and writes a digit of its value at each position.

    Args:
        config: A `CalculatorConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Symbols `[B, T]`, integer; see `encode_expressions`.

    Returns:
        Logits `[B, T, 2]` of the digits 0 and 1, the digit of the value's ones first;
        float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import Calculator
        >>> model = Calculator(encoder="neural_gpu", num_layers=2, d_model=24)
        >>> model(np.array([[2, 1, 3, 2, 2]])).shape  # 1 + 11, the ones first
        TensorShape([1, 5, 2])

    Reference: Kaiser and Sutskever (2016), "Neural GPUs Learn Algorithms"; as a Transformer's
        encoder, Vaswani et al. (2017), section 3.1.

    Differs from the paper: a value has as many digits as the input has symbols, with zeros before
    it. In the paper, padding symbols follow its last digit.
    """

    config_class = CalculatorConfig
    input_class, head_class = EmbeddedSymbols, DigitLogits
    default_name = "calculator"

    def make_encoder(self, stack: Any, policy: Any, kernels: Any) -> Any:  # noqa: D102
        if stack.has_blocks:
            return super().make_encoder(stack, policy, kernels)
        return NeuralGPU(
            stack.num_layers,
            stack.image_width,
            stack.kernel_size,
            stack.gate_cutoff,
            stack.dropout,
            dtype=policy,
            name="encoder",
        )
