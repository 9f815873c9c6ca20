"""Recurrent networks as mixers: what the LSTM and the GRU have in common."""

from __future__ import annotations

from typing import ClassVar

from keras_transformer.arguments import option
from keras_transformer.checks import OptionalCount
from keras_transformer.lazy_keras import keras, ops
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.tensors import Tensor
from keras_transformer.variants import declared


@declared
class Recurrent(Mixer):
    """Base class of recurrent networks, which compute one position after the other.

    A causal layer has one of them. Otherwise half of its features come from one that reads forwards
    and half from one that reads backwards (Schuster and Paliwal, 1997). Padding does not change a
    state. States are float32 even under mixed-precision policies. With the same weights a
    `keras.layers.LSTM` or `GRU` computes the same, and training takes less time: see `recurrence`.

    Attributes:
        gates: Number of gate inputs for each unit.
        count: Number of tensors in a state; the first one is the output.
        has_input_bias: Whether the projection of the input has a bias, besides that of the output
            before.
    """

    gates: ClassVar[int]
    count: ClassVar[int] = 1
    has_input_bias: ClassVar[bool] = False

    units: OptionalCount = option(
        None,
        """Number of output features. `None`: as many as there are input features, which a block
        needs.""",
    )

    def update(self, x: Tensor, r: Tensor, before: tuple) -> tuple[tuple, tuple]:
        """Returns the state of a position, and a tuple of tensors for `changes`.

        Args:
            x: Projection of the input, `[B, G]`, with G = `gates` * U.
            r: Projection of the output of the position before, `[B, G]`.
            before: The state of the position before, tensors `[B, U]`.
        """
        raise NotImplementedError

    def changes(self, upstream: tuple, before: tuple, kept: tuple) -> tuple[Tensor, Tensor, tuple]:
        """Returns the gradients of the arguments of `update`.

        Args:
            upstream: Gradient of the state.
            before: The state of the position before.
            kept: What `update` has returned for this function.
        """
        raise NotImplementedError

    def first_bias(self, shape: tuple[int, ...], dtype: str | None = None) -> Tensor:
        """Returns the bias before training, `[G]`."""
        return ops.zeros(shape, dtype)

    def output_width(self, width: int) -> int:  # noqa: D102
        return self.units or width

    def build(self, layer: keras.Layer, width: int) -> None:  # noqa: D102
        for name, units in self._directions(layer, width):
            size = self.gates * units
            layer.add_dense(f"{name}_input", size, width, bias=self.has_input_bias)
            layer.add_matrix(f"{name}_recurrent_kernel", (units, size), "orthogonal")
            layer.add_matrix(f"{name}_bias", (size,), self.first_bias)

    def call(self, layer: keras.Layer, x: Tensor, real: Tensor | None = None) -> Tensor:  # noqa: D102
        from keras_transformer.recurrence import recurrence

        x = ops.transpose(x, (1, 0, 2))  # [T, B, D]
        real = None if real is None else ops.transpose(real, (1, 0, 2))  # [T, B, 1]
        outputs = [
            recurrence(self, *_weighted(layer, name, x), real, reverse=name == "backward")
            for name, _ in self._directions(layer, layer.widths["x"])
        ]
        joined = outputs[0] if len(outputs) == 1 else ops.concatenate(outputs, axis=-1)
        return ops.cast(ops.transpose(joined, (1, 0, 2)), layer.compute_dtype)

    def read(  # noqa: D102
        self, layer: keras.Layer, x: Tensor, real: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        from keras_transformer.recurrence import last_of, recurrent_states

        x = ops.transpose(x, (1, 0, 2))  # [T, B, D]
        real = None if real is None else ops.transpose(real, (1, 0, 2))  # [T, B or 1, 1]
        states = recurrent_states(self, *_weighted(layer, "forward", x), real)  # [T, B, U] each
        outputs = ops.cast(ops.transpose(states[0], (1, 0, 2)), layer.compute_dtype)
        return outputs, tuple(ops.expand_dims(last_of(state), 1) for state in states)

    def state_shapes(self, width: int) -> tuple[tuple[int, ...], ...]:  # noqa: D102
        return ((self.output_width(width),),) * self.count

    def step(  # noqa: D102
        self, layer: keras.Layer, x: Tensor, state: tuple[Tensor, ...], index: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        from keras_transformer.recurrence import product

        units = self.output_width(layer.widths["x"])
        x, kernel, bias = _weighted(layer, "forward", ops.reshape(x, (-1, 1, x.shape[-1])))
        before = tuple(ops.reshape(tensor, (-1, units)) for tensor in state)  # [B * N, U]
        r = product(before[0], kernel) + bias
        after, _ = self.update(ops.squeeze(x, axis=1), r, before)
        shape = ops.shape(state[0])
        after = tuple(ops.reshape(tensor, shape) for tensor in after)  # [B, N, U]
        return ops.cast(after[0], layer.compute_dtype), after

    def _directions(self, layer, width):
        """Returns the name and the number of units of each direction."""
        units = self.output_width(width)
        if layer.causal:
            return [("forward", units)]
        return [("forward", units - units // 2), ("backward", units // 2)]


def _weighted(layer, direction, x):
    """Returns the projection of inputs `[T, B, D]`, `[T, B, G]`, and the other two weights."""
    dense = getattr(layer, f"{direction}_input")
    length, batch, width = ops.shape(x)
    flat = layer.project(dense, ops.reshape(x, (-1, width)))  # [T * B, G]
    projected = ops.reshape(ops.cast(flat, layer.state_dtype), (length, batch, flat.shape[-1]))
    kernel = ops.convert_to_tensor(getattr(layer, f"{direction}_recurrent_kernel"))
    bias = ops.convert_to_tensor(getattr(layer, f"{direction}_bias"))
    return projected, ops.cast(kernel, layer.compute_dtype), ops.cast(bias, layer.state_dtype)
