"""The decoder of the Extended Neural GPU: one step for each output, which is written to a tape.

`B` batch, `T` symbols of the longest input, `W` width of the mental image, `D` its maps, `V`
different outputs.
"""

from typing import Any

import keras
from keras import ops

from keras_transformer.checks import check_count, check_rate
from keras_transformer.layers.call_checks import check_mask_of_positions, check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.tasks.arithmetic.config import CUTOFF, KERNEL
from keras_transformer.tasks.arithmetic.layers import ConvolutionalGRU, repeated
from keras_transformer.tensors import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_transformer")
class TapeGRU(ConvolutionalGRU):
    """Convolutional gated recurrent unit that also reads a tape.

    `u = gate(U * s + W * p + b)`, `r = gate(U' * s + W' * p + b')` and
    `CGRU(s, p) = u s + (1 - u) tanh(V * (r s) + W'' * p + b'')`, where p is the tape, the first
    column of an image whose other columns are zeros; see `ConvolutionalGRU`.

    Args:
        kernel_size, gate_cutoff: See `ConvolutionalGRU`.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: Mental image `[B, T, W, D]`, floating.
        tape: `[B, T, D]`, floating.
        padding_mask: Boolean `[B, 1, T]`, `True` for rows that are not padding. Padding of both
            must be zeros, and stays zeros. `None`: no padding.

    Returns:
        `[B, T, W, D]`.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import TapeGRU
        >>> image, tape = keras.random.normal((2, 7, 4, 24)), keras.random.normal((2, 7, 24))
        >>> TapeGRU()(image, tape).shape
        TensorShape([2, 7, 4, 24])

    Reference: Kaiser and Bengio (2016), "Can Active Memory Replace Attention?", CGRU^d.

    Differs from the paper: the kernels W have no weights that would always meet the zeros beside
    the tape. The result is the same.
    """

    def build(  # noqa: D102
        self, x_shape: Shape, tape_shape: Shape | None = None, padding_mask_shape: Any = None
    ) -> None:
        super().build(x_shape)
        width, maps = x_shape[-2:]
        self.columns = min(width, 1 + self.kernel_size // 2)  # as far as kernels reach the tape
        shape = (self.kernel_size, maps, self.columns * 3 * maps)
        self.tape_kernel = self.add_weight(shape=shape, name="tape_kernel")
        self.image_width = width

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("tape"), "tape", self, ndim=3)
        return super().checked_arguments(given)

    def call(self, x: Tensor, tape: Tensor, padding_mask: Tensor | None = None) -> Tensor:  # noqa: D102
        read = ops.conv(tape, self.tape_kernel, padding="same")  # [B, T, columns * 3 * D]
        read = ops.stack(ops.split(read, self.columns, axis=-1), axis=2)
        beyond = self.image_width - self.columns
        read = ops.pad(read, ((0, 0), (0, 0), (0, beyond), (0, 0)))  # [B, T, W, 3 * D]
        of_update, of_reset, of_new = ops.split(read, 3, axis=-1)
        gates = ops.concatenate([of_update, of_reset], axis=-1)  # [B, T, W, 2 * D]
        return self.changed(x, padding_mask, gates + self.gate_bias, of_new + self.bias)

    def compute_output_shape(
        self,
        x_shape: Shape,
        tape_shape: Shape | None = None,
        padding_mask_shape: Shape | None = None,
    ) -> Shape:  # noqa: D102
        return x_shape


@keras.saving.register_keras_serializable(package="keras_transformer")
class TapeDecoder(CompositeLayer):
    """Applies a stack of `TapeGRU`s once for each output, and writes each output to a tape.

    Step k, counted from 0, changes the mental image; output k is predicted from row k of its first
    column; and row k of the tape becomes the embedding of output k. So each output depends on all
    outputs before it. Where an output is known, as in training (teacher forcing), it is written;
    elsewhere, the most probable one. An input of n symbols has n outputs, and the result is the
    same alone, in a batch, and with padding.

    Args:
        num_outputs: Number V of different outputs.
        num_layers: Number of units in a step.
        kernel_size, gate_cutoff: See `ConvolutionalGRU`.
        dropout: Dropout rate of the mental image before each step.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        x: The last mental image of a `NeuralGPU`, `[B, T, W, D]`, floating.
        known: Known outputs, integer `[B, T]`, from 0; -1 where the decoder writes its own.
            `None`: it writes all of them.
        padding_mask: Boolean `[B, 1, T]`, `True` for symbols that are not padding, which comes
            last. `None`: no padding.
        training: Whether dropout is active.

    Returns:
        Logits `[B, T, V]`; zeros for padding.

    Example:
        >>> import keras
        >>> from keras_transformer.layers import NeuralGPU, TapeDecoder
        >>> image = NeuralGPU()(keras.random.normal((2, 7, 24)), return_image=True)
        >>> TapeDecoder(2)(image).shape
        TensorShape([2, 7, 2])

    Reference: Kaiser and Bengio (2016), "Can Active Memory Replace Attention?", the Extended Neural
        GPU.

    Differs from the paper: inputs of a batch have their own numbers of outputs, as many as they
    have symbols. In the paper, the number is that of a bucket, and padding is an output.
    """

    def __init__(
        self,
        num_outputs: int,
        num_layers: int = 2,
        kernel_size: int = KERNEL[0],
        gate_cutoff: float = CUTOFF[0],
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_count("num_outputs", num_outputs)
        check_count("num_layers", num_layers)
        check_rate("dropout", dropout)
        self.num_outputs, self.num_layers, self.dropout_rate = num_outputs, num_layers, dropout
        self.kernel_size, self.gate_cutoff = kernel_size, gate_cutoff
        self.units = [
            TapeGRU(kernel_size, gate_cutoff, dtype=self.dtype_policy, name=f"recurrent_{number}")
            for number in range(num_layers)
        ]
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.output_layer = keras.layers.Dense(num_outputs, dtype=self.dtype_policy, name="output")

    def build(  # noqa: D102
        self, x_shape: Shape, known_shape: Shape | None = None, padding_mask_shape: Any = None
    ) -> None:
        column = (*x_shape[:2], x_shape[-1])
        for unit in self.units:
            unit.build(x_shape, column)
        self.output_layer.build(column)
        self.table = self.add_weight(
            shape=(self.num_outputs, x_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=1.0),
            name="table",
        )

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_positions(given.get("x"), "x", self, ndim=4)
        check_mask_of_positions(given.get("padding_mask"), "padding_mask", self)
        return {}

    def call(  # noqa: D102
        self,
        x: Tensor,
        known: Tensor | None = None,
        padding_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        step, state, count = self._loop(x, known, padding_mask, training)
        return repeated(step, state, count)[2]  # [B, T, V]

    def images(
        self, x: Tensor, known: Tensor | None = None, padding_mask: Tensor | None = None
    ) -> list[Tensor]:
        """Returns the mental images `[B, T, W, D]` after each step.

        Args:
            x, known, padding_mask: See the call arguments.
        """
        step, state, count = self._loop(x, known, padding_mask, False)
        images = []
        for number in range(int(count)):
            state = step(number, state)
            images.append(state[0])
        return images

    def _loop(self, x, known, padding_mask, training):
        """Returns the function of a step, the first state and the number of steps.

        The state is the mental image, the tape `[B, T, D]` and the logits `[B, T, V]`.
        """
        column = x[:, :, 0]  # [B, T, D]
        batch, length, _ = ops.shape(column)
        if padding_mask is None:
            padding_mask = ops.ones((batch, 1, length), "bool")
        real = ops.swapaxes(padding_mask, 1, 2)  # [B, T, 1]
        count = ops.max(ops.sum(ops.cast(real, "int32"), axis=(1, 2)))
        rows = ops.reshape(ops.arange(length, dtype="int32"), (1, -1, 1))

        def step(number, state):
            image, tape, logits = state
            image = self.dropout(image, training=training)
            for unit in self.units:
                image = unit(image, tape, padding_mask)
            here = ops.logical_and(ops.equal(rows, number), real)  # [B, T, 1], of this output
            logits = ops.where(here, self.output_layer(image[:, :, 0]), logits)
            # Not `ops.argmax`, whose case of a negative zero LiteRT has no operator for.
            written = ops.top_k(logits, 1)[1][:, :, 0]  # [B, T]
            if known is not None:
                written = ops.where(known < 0, written, ops.cast(known, written.dtype))
            return image, ops.where(here, self._embedded(written), tape), logits

        state = x, ops.zeros_like(column), ops.zeros_like(self.output_layer(column))
        return step, state, count

    def _embedded(self, outputs):
        """Returns the embeddings `[B, T, D]` of outputs `[B, T]`."""
        chosen = ops.one_hot(outputs, self.num_outputs, dtype=self.compute_dtype)
        return ops.matmul(chosen, ops.cast(self.table, self.compute_dtype))

    def compute_output_shape(
        self,
        x_shape: Shape,
        known_shape: Shape | None = None,
        padding_mask_shape: Shape | None = None,
    ) -> Shape:  # noqa: D102
        return (*x_shape[:2], self.num_outputs)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "num_outputs": self.num_outputs,
            "num_layers": self.num_layers,
            "kernel_size": self.kernel_size,
            "gate_cutoff": self.gate_cutoff,
            "dropout": self.dropout_rate,
        }
