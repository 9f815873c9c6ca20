"""`Reader`, which copies the tensors of a checkpoint into a model and checks that all are used."""

import re

import numpy as np


class Reader:
    """The tensors of a checkpoint, with a record of those that have been used.

    Args:
        tensors: A `SafetensorsFile`, `TorchFile`, `ShardedTensors` or `Arrays`.
        source: Name of the file that determines the sizes of tensors, for messages.
    """

    def __init__(self, tensors, source="config.json"):
        self.tensors, self.source = tensors, source
        self.path, self.shapes = tensors.path, tensors.shapes
        self._unused = set(tensors.shapes)

    def __contains__(self, name) -> bool:
        return name in self.shapes

    def type_of(self, name) -> str:
        """Returns the type of a tensor in the file, such as `"F16"`."""
        return self.tensors.types[name]

    def read(self, name, shape=None, reason=None) -> np.ndarray:
        """Returns a tensor as a float32 array, and marks it as used.

        Args:
            name, shape, reason: See `check_shape`. Without a shape, it is not checked.

        Raises:
            ValueError: If the tensor is missing, has another shape or is not finite.
        """
        if shape is not None:
            self.check_shape(name, shape, reason)
        values = self.tensors.read(name)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.path}: {name} contains NaN or infinite values.")
        self._unused.discard(name)
        return values

    def check_shape(self, name, shape, reason=None) -> None:
        """Checks the shape of a tensor without reading its values.

        Args:
            name: Name of the tensor.
            shape: Required shape.
            reason: Clause that states the reason for the shape, such as `"config.json says"`.
                `None`: the settings.

        Raises:
            ValueError: If the tensor is missing or has another shape; the error names it.
        """
        if name not in self.shapes:
            raise ValueError(f"{self.path}: the tensor {name} is missing.")
        if self.shapes[name] != tuple(shape):
            raise ValueError(
                f"{self.path}: {name} must have the shape {list(shape)}, as "
                f"{reason or f'{self.source} says'}. Received: {list(self.shapes[name])}."
            )

    def check_rows(self, name, settings, key) -> None:
        """Checks the number of rows of a tensor, if the file has it, before a list is as long.

        Args:
            name: Name of the tensor.
            settings: The `CheckpointSettings`.
            key: Setting with the number of rows.

        Raises:
            ValueError: If the tensor has another number of rows; the error names it.
        """
        rows = settings.count(key)
        if name in self.shapes and self.shapes[name][:1] != (rows,):
            raise ValueError(
                f"{self.path}: {name} must have {rows} rows, as `{key}` in {self.source} says. "
                f"Received the shape: {list(self.shapes[name])}."
            )

    def first_of(self, names) -> str:
        """Returns the first of several names that the file contains; if none, the first name."""
        return next((name for name in names if name in self.shapes), names[0])

    def has_biases(self, *layers) -> bool:
        """Returns whether linear layers with the given names have biases."""
        return any(
            name.endswith(tuple(f".{layer}.bias" for layer in layers)) for name in self.shapes
        )

    def fill(self, model, weights) -> None:
        """Assigns the tensors of the checkpoint to the variables of a model.

        Args:
            model: The model.
            weights: The `Weight`s of all its variables. `Weight`s without a variable are skipped.

        Raises:
            ValueError: If a tensor is missing, has another shape or is not finite, or tied tensors
                differ.
        """
        for weight in weights:
            variable, layout = weight.variable(model), weight.layout
            if variable is None:
                continue
            shape = tuple(variable.shape)
            values = layout.ours(self._read_tied(weight, layout.shape(shape)), shape)
            variable.assign(values if weight.change is None else weight.change(values))

    def _read_tied(self, weight, shape):
        """Returns the tensor of a weight after checking that its copies in the file are equal."""
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

    def check_all_used(self, ignored=()) -> None:
        """Refuses tensors that have not been used.

        Args:
            ignored: Regular expressions of the names of tensors that our model does not need.
        """
        unused = sorted(
            name
            for name in self._unused
            if not any(re.fullmatch(pattern, name) for pattern in ignored)
        )
        if unused:
            more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
            raise ValueError(
                f"{self.path}: every tensor must be used by the model. "
                f"Unused: {', '.join(unused[:3])}{more}."
            )
