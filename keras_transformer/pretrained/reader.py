"""`Reader`, which copies the tensors of a checkpoint into a model and checks that all are used."""

import re

import numpy as np


class Reader:
    """The tensors of a file, and which of them have been used.

    Args:
        tensors: A `SafetensorsFile`, `ShardedSafetensors` or `Arrays`.
        source: What says how large tensors must be, for messages: `"config.json"`.
    """

    def __init__(self, tensors, source="config.json"):
        self.tensors, self.source = tensors, source
        self.path, self.shapes = tensors.path, tensors.shapes
        self._unused = set(tensors.shapes)

    def __contains__(self, name):
        return name in self.shapes

    def type_of(self, name):
        """Returns the type of a tensor in the file, such as `"F16"`."""
        return self.tensors.types[name]

    def read(self, name, shape=None, reason=None):
        """Returns a tensor of a shape as a float32 array, and counts it as used.

        Raises:
            ValueError: If it is missing, has another shape or is not finite.
        """
        if shape is not None:
            self.check_shape(name, shape, reason)
        values = self.tensors.read(name)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.path}: {name} must hold finite numbers alone.")
        self._unused.discard(name)
        return values

    def check_shape(self, name, shape, reason=None):
        """Refuses a tensor that is missing or has another shape; its values are not read.

        Args:
            name: Its name.
            shape: The shape that it must have.
            reason: What says so. `None`: the settings.

        Raises:
            ValueError: With the name.
        """
        if name not in self.shapes:
            raise ValueError(f"{self.path}: the tensor {name} is missing.")
        if self.shapes[name] != tuple(shape):
            raise ValueError(
                f"{self.path}: {name} must have the shape {list(shape)}, as "
                f"{reason or f'{self.source} says'}. Received: {list(self.shapes[name])}."
            )

    def first_of(self, names):
        """Returns the first of several names that is in the file; the first of all if none is."""
        return next((name for name in names if name in self.shapes), names[0])

    def has_biases(self, *layers):
        """Returns whether linear layers of these names have biases."""
        return any(
            name.endswith(tuple(f".{layer}.bias" for layer in layers)) for name in self.shapes
        )

    def fill(self, model, weights):
        """Gives a model the tensors that a table names.

        Args:
            model: The model.
            weights: The `Weight`s of all of its variables; those that it does not have are left
                out.

        Raises:
            ValueError: If a tensor is missing, has another shape or is not finite, or tensors that
                are tied differ.
        """
        for weight in weights:
            variable, layout = weight.variable(model), weight.layout
            if variable is None:
                continue
            shape = tuple(variable.shape)
            values = layout.ours(self._read_tied(weight, layout.shape(shape)), shape)
            variable.assign(values if weight.change is None else weight.change(values))

    def _read_tied(self, weight, shape):
        """The tensor of a weight, of which all copies in the file must be equal."""
        names = [name for name in weight.names if name in self.shapes]
        if not names and weight.default is not None:
            return weight.default
        first, *others = names or weight.names[:1]
        values = self.read(first, shape)
        for other in others:
            if not np.array_equal(values, self.read(other, shape)):
                raise ValueError(
                    f"{self.path}: {first} and {other} must be equal, as {self.source} ties them. "
                    "They differ."
                )
        return values

    def check_all_used(self, ignored=()):
        """Refuses tensors that no weight was made of.

        Args:
            ignored: Regular expressions of names that a model here does not need.
        """
        unused = sorted(
            name
            for name in self._unused
            if not any(re.fullmatch(pattern, name) for pattern in ignored)
        )
        if unused:
            more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
            raise ValueError(
                f"{self.path}: every tensor must have its place in the model. "
                f"Without one: {', '.join(unused[:3])}{more}."
            )
