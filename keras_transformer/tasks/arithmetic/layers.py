"""The Neural GPU: convolutional gated recurrent units, applied once for each input symbol.

`B` batch, `T` symbols of the longest input, `W` width of the mental image, `D` its maps.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_count, check_rate
from keras_transformer.layers.call_checks import check_mask_of_positions, check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.tasks.arithmetic.config import CUTOFF, KERNEL, check_cutoff, check_kernel
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class ConvolutionalGRU(CompositeLayer):
    """Convolutional gated recurrent unit (CGRU) on a mental image.

    `u = gate(U * s + b)`, `r = gate(U' * s + b')` and
    `CGRU(s) = u s + (1 - u) tanh(V * (r s) + b'')`, where `*` is a convolution over rows and
    columns with zeros around the image, and products without a sign are of elements. See
    `gate_cutoff` for `gate`. The biases of gates are 1 before training, so that a new unit mostly
    keeps its image.

    Args:
        kernel_size: Height and width of the kernels, odd.
        gate_cutoff: Factor c of the sigmoid in gates: `c * sigmoid(x) - (c - 1) / 2`, cut off at 0
            and 1. 1: the sigmoid itself.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: Mental image `[B, T, W, D]`, floating.
        padding_mask: Boolean `[B, 1, T]`, `True` for rows that are not padding. Padding must be
            zeros, and stays zeros. `None`: no padding.

    Returns:
        `[B, T, W, D]`.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import ConvolutionalGRU
        >>> ConvolutionalGRU()(keras.random.normal((2, 7, 4, 24))).shape
        TensorShape([2, 7, 4, 24])

    Reference: Kaiser and Sutskever (2016), "Neural GPUs Learn Algorithms", section 2.
    """

    def __init__(self, kernel_size: int = KERNEL[0], gate_cutoff: float = CUTOFF[0], **kwargs: Any):
        super().__init__(**kwargs)
        check_kernel("kernel_size", kernel_size)
        check_cutoff("gate_cutoff", gate_cutoff)
        self.kernel_size, self.gate_cutoff = kernel_size, gate_cutoff

    def build(self, x_shape: Shape, padding_mask_shape: Shape | None = None) -> None:  # noqa: D102
        maps: Any = x_shape[-1]
        size = (self.kernel_size, self.kernel_size)
        self.gate_kernel = self.add_weight(shape=(*size, maps, 2 * maps), name="gate_kernel")
        self.gate_bias = self.add_weight(shape=(2 * maps,), initializer="ones", name="gate_bias")
        self.kernel = self.add_weight(shape=(*size, maps, maps), name="kernel")
        self.bias = self.add_weight(shape=(maps,), initializer="zeros", name="bias")

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("x"), "x", self, ndim=4)
        check_mask_of_positions(given.get("padding_mask"), "padding_mask", self)
        return {}

    def call(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:  # noqa: D102
        return self.changed(x, padding_mask, self.gate_bias, self.bias)

    def changed(
        self, x: Tensor, padding_mask: Tensor | None, gate_terms: Tensor, terms: Tensor
    ) -> Tensor:
        """Returns the image after the unit, `[B, T, W, D]`.

        Args:
            x, padding_mask: See the call arguments.
            gate_terms: Terms b and b' of the gates: a tensor `[..., 2 * D]`.
            terms: Term b'': a tensor `[..., D]`.
        """
        cutoff = self.gate_cutoff
        gates = ops.sigmoid(ops.conv(x, self.gate_kernel, padding="same") + gate_terms)
        gates = ops.clip(cutoff * gates - (cutoff - 1) / 2, 0.0, 1.0)  # [B, T, W, 2 * D]
        update, reset = ops.split(gates, 2, axis=-1)  # [B, T, W, D] each
        new = ops.tanh(ops.conv(reset * x, self.kernel, padding="same") + terms)
        image = update * x + (1 - update) * new  # [B, T, W, D]
        return image if padding_mask is None else image * as_rows(padding_mask, image)

    def compute_output_shape(
        self, x_shape: Shape, padding_mask_shape: Shape | None = None
    ) -> Shape:  # noqa: D102
        return x_shape

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "kernel_size": self.kernel_size,
            "gate_cutoff": self.gate_cutoff,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class NeuralGPU(CompositeLayer):
    """Applies a stack of convolutional gated recurrent units once for each symbol of an input.

    The embedded symbols are the first column of a mental image, whose other columns are zeros. An
    input of n symbols is changed by n steps, and the result is the first column. Each input of a
    batch has its own number of steps, and padding is always zeros: an input has the same result
    alone, in a batch, and with padding.

    Args:
        num_layers: Number of units in a step.
        image_width: Width W of the mental image, in columns.
        kernel_size, gate_cutoff: See `ConvolutionalGRU`.
        dropout: Dropout rate of the mental image before each step.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: Embedded symbols `[B, T, D]`, floating.
        padding_mask: Boolean `[B, 1, T]`, `True` for symbols that are not padding, which comes
            last. `None`: no padding.
        return_image: Whether to return the whole mental image instead of its first column.
        training: Whether dropout is active.

    Returns:
        `[B, T, D]`, or `[B, T, W, D]` with `return_image`; zeros for padding.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import NeuralGPU
        >>> NeuralGPU(num_layers=2)(keras.random.normal((2, 7, 24))).shape
        TensorShape([2, 7, 24])

    Reference: Kaiser and Sutskever (2016), "Neural GPUs Learn Algorithms", section 2.

    Differs from the paper: inputs of a batch have their own numbers of steps. In the paper they
    have that of the longest, padding included. The relaxed sharing of parameters is left out.
    """

    def __init__(
        self,
        num_layers: int = 2,
        image_width: int = 4,
        kernel_size: int = KERNEL[0],
        gate_cutoff: float = CUTOFF[0],
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_count("num_layers", num_layers)
        check_count("image_width", image_width)
        check_rate("dropout", dropout)
        self.num_layers, self.image_width, self.dropout_rate = num_layers, image_width, dropout
        self.kernel_size, self.gate_cutoff = kernel_size, gate_cutoff
        self.units = [
            ConvolutionalGRU(
                kernel_size, gate_cutoff, dtype=self.dtype_policy, name=f"recurrent_{number}"
            )
            for number in range(num_layers)
        ]
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape: Shape, padding_mask_shape: Shape | None = None) -> None:  # noqa: D102
        for unit in self.units:
            unit.build((*x_shape[:2], self.image_width, x_shape[-1]))

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("x"), "x", self, ndim=3)
        check_mask_of_positions(given.get("padding_mask"), "padding_mask", self)
        return {}

    def call(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        return_image: bool = False,
        training: bool | None = None,
    ) -> Tensor:  # noqa: D102
        image, real, count = self._first_image(x, padding_mask)
        step = self._step(real, count, training)
        image = repeated(step, image, ops.max(count))
        return image if return_image else image[:, :, 0]  # [B, T, W, D] or [B, T, D]

    def images(self, x: Tensor, padding_mask: Tensor | None = None) -> list[Tensor]:
        """Returns the mental images `[B, T, W, D]` before the first step and after each one.

        Args:
            x, padding_mask: See the call arguments.
        """
        image, real, count = self._first_image(x, padding_mask)
        step, images = self._step(real, count, False), [image]
        for number in range(int(ops.max(count))):
            images.append(step(number, images[-1]))
        return images

    def _first_image(self, x, padding_mask):
        """Returns the first mental image, the mask of rows, and the number of steps, `[B]`."""
        batch, length, _ = ops.shape(x)
        if padding_mask is None:
            padding_mask = ops.ones((batch, 1, length), "bool")
        count = ops.sum(ops.cast(padding_mask, "int32"), axis=(1, 2))  # [B]
        image = ops.expand_dims(x, 2)  # [B, T, 1, D]
        image = ops.pad(image, ((0, 0), (0, 0), (0, self.image_width - 1), (0, 0)))
        return image * as_rows(padding_mask, image), padding_mask, count

    def _step(self, padding_mask, count, training):
        """Returns the function from a step's number and a mental image to the next one."""
        count = ops.reshape(count, (-1, 1, 1, 1))

        def step(number, before):
            image = self.dropout(before, training=training)
            for unit in self.units:
                image = unit(image, padding_mask)
            return ops.where(number < count, image, before)

        return step

    def compute_output_spec(self, x: Any, padding_mask: Any = None, **options: Any) -> Any:  # noqa: D102
        if not options.pop("return_image", False):
            return super().compute_output_spec(x, padding_mask, **options)
        shape = (*x.shape[:2], self.image_width, x.shape[-1])
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def compute_output_shape(
        self, x_shape: Shape, padding_mask_shape: Shape | None = None
    ) -> Shape:  # noqa: D102
        return x_shape

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "image_width": self.image_width,
            "kernel_size": self.kernel_size,
            "gate_cutoff": self.gate_cutoff,
            "dropout": self.dropout_rate,
        }


def repeated(step: Callable, state: Any, count: Tensor) -> Any:
    """Returns a state after `count` steps.

    Args:
        step: Function from the number of a step, counted from 0, and a state to the next one.
        state: The state before the first step, a tensor or a tuple of tensors.
        count: Number of steps, an integer or a scalar tensor.
    """
    if keras.backend.backend() != "tensorflow":  # whose `while_loop` may have no gradient
        numbers = ops.arange(int(count))
        return ops.scan(lambda state, number: (step(number, state), None), state, numbers)[0]
    return ops.while_loop(
        lambda number, _: number < count,
        lambda number, state: (number + 1, step(number, state)),
        (ops.convert_to_tensor(0, "int32"), state),
    )[1]


def as_rows(padding_mask, image):
    """Returns a mask `[B, 1, T]` as factors of the rows of an image, `[B, T, 1, 1]`."""
    rows = ops.expand_dims(ops.swapaxes(padding_mask, 1, 2), 3)
    return ops.cast(rows, image.dtype)
