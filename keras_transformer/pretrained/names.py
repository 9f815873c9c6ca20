"""Tables of weights: names in a checkpoint, and paths of variables in our models."""

import operator
import typing

import numpy as np


class Layout(typing.NamedTuple):
    """Layout of a checkpoint's array in ours.

    Attributes:
        transposed: Whether ours is the other way round, as PyTorch's linear layers are.
        ones: Axes of size 1 that theirs has before ours.
        first: Rows of theirs before the first of ours.
        entries: Entries of their vocabulary, where ours has more of them at its end. `None`: equal.
        axis: Axis of theirs that the entries lie on.
        filling: Value of the entries that only our vocabulary has.
        patch: Height, width and channels of patches, where theirs is a convolution of them,
            `[out, channels, height, width]`, and ours a linear map, `[height * width * channels,
            out]`. `None`: it is none.
        share: Which of how many equal parts of the last axis of theirs is ours, a pair; the others
            belong to other weights. `None`: the whole is ours.
    """

    transposed: bool = False
    ones: int = 0
    first: int = 0
    entries: int | None = None
    axis: int = 0
    filling: float = 0.0
    patch: tuple | None = None
    share: tuple | None = None

    def shape(self, ours):
        """Returns the shape that theirs must have, a tuple, where ours has the shape `ours`."""
        if self.patch is not None:
            height, width, channels = self.patch
            return ours[-1], channels, height, width
        if self.share is not None:
            return (*ours[:-1], ours[-1] * self.share[1])
        shape = [*(1,) * self.ones, *(ours[::-1] if self.transposed else ours)]
        if self.entries is not None:
            shape[self.axis] = self.entries
        shape[0] += self.first
        return tuple(shape)

    def ours(self, array, shape):
        """Returns their array as ours, which has the shape `shape`."""
        if self.patch is not None:
            return array.transpose(2, 3, 1, 0).reshape(shape)
        if self.share is not None:
            return np.split(array, self.share[1], axis=-1)[self.share[0]]
        array = array[self.first :]
        whole = self._replace(entries=None, first=0).shape(shape)
        missing = [(0, size - count) for size, count in zip(whole, array.shape, strict=True)]
        array = np.pad(array, missing, constant_values=self.filling)
        array = array.reshape(array.shape[self.ones :])
        return array.T if self.transposed else array

    def theirs(self, array):
        """Returns our array as theirs; rows before the first of ours are not written."""
        if self.patch is not None:
            array = array.reshape(*self.patch, -1).transpose(3, 2, 0, 1)
            return np.ascontiguousarray(array, np.float32)
        array = array.T if self.transposed else array
        array = array.reshape((1,) * self.ones + array.shape)
        if self.entries is not None:
            array = np.take(array, range(self.entries), axis=self.axis)
        return np.ascontiguousarray(array, np.float32)


SAME, TRANSPOSED, ROW = Layout(), Layout(transposed=True), Layout(ones=1)


class Weight(typing.NamedTuple):
    """A weight under both names.

    Attributes:
        theirs: Name in the checkpoint, or several names of one tensor: those that are in the file
            must then be equal.
        ours: Path of attributes from the model, such as `"encoder.blocks.0.ssru.forget.bias"`.
        layout: The `Layout`.
        default: Array, laid out as theirs, for a file that has none of the names. `None`: the file
            must have one.
        change: Function of their array, laid out as ours, that returns the values of ours. `None`:
            they are equal.
    """

    theirs: str | tuple
    ours: str
    layout: Layout = SAME
    default: typing.Any = None
    change: typing.Any = None

    @property
    def names(self):
        """Their names, a tuple."""
        return (self.theirs,) if isinstance(self.theirs, str) else tuple(self.theirs)

    def variable(self, model):
        """Returns our variable, or the tensor that it is a view of.

        It is `None` where the model's configuration leaves it out, such as a bias.
        """
        value = model
        for name in self.ours.split("."):
            if value is None:
                return None
            value = value[int(name)] if name.isdecimal() else operator.attrgetter(name)(value)
        return value


def layers(table, theirs="", ours=""):
    """Yields the weights of layers of PyTorch's.

    Args:
        table: Dictionary from names in the checkpoint to paths of our layers. Those that end in
            "norm" are normalisations, all others linear layers, whose kernels are `[out, in]`.
        theirs, ours: What begins all of these names.
    """
    for name, layer in table.items():
        name, layer = theirs + name, ours + layer
        if layer.endswith("norm"):  # old files have TensorFlow's names
            yield Weight((f"{name}.weight", f"{name}.gamma"), f"{layer}.gamma")
            yield Weight((f"{name}.bias", f"{name}.beta"), f"{layer}.beta")
        else:
            yield Weight(f"{name}.weight", f"{layer}.kernel", TRANSPOSED)
            yield Weight(f"{name}.bias", f"{layer}.bias")
