"""`Calculator`: a Neural GPU or a Transformer's encoder that writes a digit at each position."""

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.call_checks import check_ids, described
from keras_transformer.layers.masks import PaddingMask
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.head import Head, make_logits
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.models.inputs.tokens import make_embedding
from keras_transformer.models.parts import Parts
from keras_transformer.tasks.arithmetic.config import DIGITS, PAD, CalculatorConfig
from keras_transformer.tasks.arithmetic.layers import NeuralGPU
from keras_transformer.tasks.arithmetic.tape import TapeDecoder
from keras_transformer.tensors import Tensor


class EmbeddedSymbols(ModelInput):
    """Embeds the symbols of expressions, `[B, T]`; with a tape, they are the input `symbols`."""

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
        symbols, digits = (
            keras.Input((None,), dtype="int32", name=name) for name in ("symbols", "digits")
        )
        return {"symbols": symbols, "digits": digits} if self.config.writes_tape else symbols

    def read(self, inputs) -> Tensor:
        """Returns the symbols, `[B, T]`."""
        return inputs["symbols"] if isinstance(inputs, dict) else inputs

    def check(self, inputs, model) -> None:  # noqa: D102
        check_ids(self.read(inputs), "symbols", model, self.config.input.num_symbols)
        if isinstance(inputs, dict):
            check_digits(inputs["digits"], inputs["symbols"], model)

    def padding_mask(self, inputs) -> Tensor | None:  # noqa: D102
        return self.layers["mask"](self.read(inputs))

    def __call__(self, inputs, training=None) -> Tensor:  # noqa: D102
        return self.layers["embedding"](self.read(inputs), training=training)  # [B, T, D]


def check_digits(digits, symbols, model) -> None:
    """Checks known digits, integer `[B, T]`: 0, 1, or -1 where the model writes its own.

    Raises:
        ValueError: If their shape differs from that of the symbols, or a value is none of these.
    """
    shape, wanted = described(digits)[1], described(symbols)[1]
    pairs = [*zip(shape or (), wanted or (), strict=False)]
    if len(shape or (0, 0)) != 2 or any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise ValueError(
            "`digits` must have a digit for each symbol. "
            f"Received by {model.name!r}: shape={shape} for symbols of shape {wanted}."
        )
    if isinstance(digits, np.ndarray) and not np.isin(digits, (-1, 0, 1)).all():
        raise ValueError(
            "`digits` must be 0, 1, or -1 where the model writes its own. "
            f"Received by {model.name!r}: {digits[~np.isin(digits, (-1, 0, 1))][0]}."
        )


class DigitLogits(Head):
    """Linear classifier of each position, with a logit for each of the two digits.

    With a tape, the decoder has the classifier, because the next step needs its digit.
    """

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        logits = make_logits(policy)
        if config.writes_tape:
            return {"logits": logits}
        output_layer = keras.layers.Dense(DIGITS, dtype=policy, name="output")
        return {"output_layer": output_layer, "logits": logits}

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        for layer in self.layers.values():
            hidden = layer(hidden)
        return hidden  # [B, T, 2]

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        return (*self.layers.values(),)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Calculator(EncoderModel):
    """Reads an expression of binary numbers, and writes a digit of its value at each position.

    With `encoder="transformer"` or `"neural_gpu"`, all digits are predicted at once. With
    `"extended_neural_gpu"`, a decoder predicts one digit after the other, the ones first, and reads
    the digits before: the known ones that the model is called with, or its own.

    Args:
        config: A `CalculatorConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Symbols `[B, T]`, integer; see `encode_expressions`. With
            `"extended_neural_gpu"` also a dictionary of `symbols` and `digits`, integer `[B, T]`:
            the digits that are known, 0 or 1, and -1 where the model continues with its own.

    Returns:
        Logits `[B, T, 2]` of the digits 0 and 1, the digit of the value's ones first;
        float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import Calculator
        >>> model = Calculator(encoder="neural_gpu", num_layers=2, d_model=24)
        >>> model(np.array([[2, 1, 3, 2, 2]])).shape  # 1 + 11, the ones first
        TensorShape([1, 5, 2])

    Reference: Kaiser and Sutskever (2016), "Neural GPUs Learn Algorithms"; Kaiser and Bengio
        (2016), "Can Active Memory Replace Attention?"; as a Transformer's encoder, Vaswani et al.
        (2017), section 3.1.

    Differs from the papers: a value has as many digits as the input has symbols, with zeros before
    it. There, padding symbols follow its last digit.
    """

    config_class = CalculatorConfig
    input_class, head_class = EmbeddedSymbols, DigitLogits
    default_name = "calculator"

    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts:  # noqa: D102
        parts = super().make_parts(config, policy, kernels)
        if not config.writes_tape:
            return parts
        stack = config.encoder
        decoder = TapeDecoder(
            DIGITS,
            stack.num_layers,
            stack.kernel_size,
            stack.gate_cutoff,
            stack.dropout,
            dtype=policy,
            name="decoder",
        )
        return dataclasses.replace(parts, decoder=decoder)

    def roles(self, parts: Any) -> dict[str, Any]:  # noqa: D102
        decoder = {} if parts.decoder is None else {"decoder": parts.decoder}
        return {**super().roles(parts), **decoder}

    def connect(self, parts: Any, inputs: Any) -> Tensor:  # noqa: D102
        if parts.decoder is None:
            return super().connect(parts, inputs)
        padding_mask = parts.input.padding_mask(inputs)  # [B, 1, T]
        image = parts.encoder(parts.input(inputs), padding_mask, return_image=True)
        return parts.head(parts.decoder(image, inputs["digits"], padding_mask))

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Calls the model; with a tape and without known digits, it writes all of them itself."""
        if self.config.writes_tape and not isinstance(inputs, dict):
            self.check_inputs(inputs)
            symbols = ops.cast(inputs, "int32")
            inputs = {"symbols": symbols, "digits": ops.full_like(symbols, -1)}
        return super().__call__(inputs, *args, **kwargs)

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
