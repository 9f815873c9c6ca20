"""The call arguments that all layers share which attend: positions, and masks over them."""

import keras

from keras_transformer.layers.call_checks import check_mask, check_positions, check_same_batch
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.masks import attached_mask


class AttendingLayer(CompositeLayer):
    """A layer with positions `x`, perhaps a `memory`, and masks of what may be attended to.

    A mask that Keras attached to a tensor is an argument as well: that of `x` is `mask`, that of
    `memory` is `memory_mask`, unless these are given. Taken off the tensors before the layer is
    called they are a part of a functional model's graph, whatever another layer does to a tensor.
    """

    # The argument whose positions are the keys of a mask; the queries are those of `x`.
    keys_of = {"allowed": "x", "memory_allowed": "memory", "mask": "x", "memory_mask": "memory"}
    # Of a layer with a memory, what to take where there is none.
    without_memory = None

    def checked_arguments(self, given):
        """Returns the masks of a call, Keras's among them; refuses what does not fit."""
        positions = {name: given[name] for name in ("x", "memory") if given.get(name) is not None}
        for name, value in positions.items():
            check_positions(value, name, self, ndim=3)
        if "x" not in positions:
            return {}  # Keras names what is missing
        if "memory" in self.call_arguments() and "memory" not in positions:
            raise TypeError(
                "`memory`, what `x` attends to, must be given. Where there is none, use "
                f"{self.without_memory}. Received by {self.name!r}: no memory."
            )
        if len(positions) == 2:
            check_same_batch(positions, self)
        masks = {}
        for name, keys in self.keys_of.items():
            mask = given.get(name)
            if mask is None and name in ("mask", "memory_mask"):
                mask = attached_mask(positions.get(keys))
            if mask is not None and name in self.call_arguments() and keys in positions:
                masks[name] = check_mask(mask, name, positions["x"], positions[keys], self)
        return masks

    def compute_output_shape(self, x_shape, *others, **other_shapes):
        """Returns the shape of what a call returns without attention weights, that of `x`."""
        return x_shape

    def compute_output_spec(self, x, *arguments, return_weights=False, **options):
        """What a call returns, without a trace of it: a model is built in a third of the time."""
        if return_weights:
            options["return_weights"] = True
        if return_weights or self.has_call_of_its_own():
            return keras.Operation.compute_output_spec(self, x, *arguments, **options)
        return keras.KerasTensor(self.compute_output_shape(x.shape), self.compute_dtype)

    def check_shapes(self, **shapes):
        """Refuses shapes to build from that are not `[B, T, D]`; keeps the widths D."""
        for name, shape in shapes.items():
            if len(shape) != 3 or shape[-1] is None:
                raise ValueError(
                    f"`{name}` must be [batch, positions, features] with a known number of "
                    f"features. Received by {self.name!r}: shape={tuple(shape)}."
                )
        self.widths = {name: shape[-1] for name, shape in shapes.items()}
