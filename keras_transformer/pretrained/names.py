"""Tables of weights, from names in a checkpoint to paths of variables in our models; their ties."""

import operator
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np

TIE = "tie_word_embeddings"
SILENT = -1000.0  # bias of padding, which gets no probability


class Layout(typing.NamedTuple):
    """Relation between the array in a checkpoint (theirs) and the variable of our model (ours).

    Attributes:
        transposed: Whether their array is the transpose of ours, as in PyTorch's linear layers.
        ones: Number of axes of size 1 before the axes of our array.
        first: Number of their rows before the row that is our first.
        last: Number of their rows after the row that is our last.
        entries: Number of entries of their vocabulary, if ours has more at its end. `None`: both
            have equally many.
        axis: Axis of their array over the entries of the vocabulary.
        filling: Value of the entries that only our vocabulary has.
        patch: Height, width and channels of a patch, if their array is the kernel of a convolution
            over patches, `[out, channels, height, width]`, and ours a linear map, `[height * width
            * channels, out]`. `None`: it is not.
        share: Number of our part and number of parts, a pair of integers, if their last axis, or
            their first one if they are transposed, joins several weights of equal size. `None`: the
            whole array is ours.
    """

    transposed: bool = False
    ones: int = 0
    first: int = 0
    last: int = 0
    entries: int | None = None
    axis: int = 0
    filling: float = 0.0
    patch: tuple | None = None
    share: tuple | None = None

    def shape(self, ours) -> tuple[int, ...]:
        """Returns the shape of their array, a tuple, for a variable of the shape `ours`."""
        if self.patch is not None:
            height, width, channels = self.patch
            return ours[-1], channels, height, width
        if self.share is not None:
            joined = (*ours[:-1], ours[-1] * self.share[1])
            return joined[::-1] if self.transposed else joined
        shape = [*(1,) * self.ones, *(ours[::-1] if self.transposed else ours)]
        if self.entries is not None:
            shape[self.axis] = self.entries
        shape[0] += self.first + self.last
        return tuple(shape)

    def ours(self, array, shape) -> np.ndarray:
        """Converts their array to our layout, with the shape `shape`."""
        if self.patch is not None:
            return array.transpose(2, 3, 1, 0).reshape(shape)
        if self.share is not None:
            array = array.T if self.transposed else array
            return np.split(array, self.share[1], axis=-1)[self.share[0]]
        array = array[self.first : len(array) - self.last]
        whole = self._replace(entries=None, first=0, last=0).shape(shape)
        missing = [(0, size - count) for size, count in zip(whole, array.shape, strict=True)]
        array = np.pad(array, missing, constant_values=self.filling)
        array = array.reshape(array.shape[self.ones :])
        return array.T if self.transposed else array

    def theirs(self, array) -> np.ndarray:
        """Converts our array to their layout, without their rows before and after ours."""
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
    """A weight with its name in a checkpoint and in our model.

    Attributes:
        theirs: Name in the checkpoint, or several names of one tensor. If a file contains several
            of them, their values must be equal.
        ours: Path of attributes from the model, such as `"encoder.blocks.0.ssru.forget.bias"`.
        layout: The `Layout`.
        default: Array in their layout for a file without any of the names. `None`: the file must
            contain one of them.
        change: Function that computes our values from their array in our layout. `None`: the values
            are equal.
    """

    theirs: str | tuple
    ours: str
    layout: Layout = SAME
    default: typing.Any = None
    change: typing.Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """Tuple of the names in the checkpoint."""
        return (self.theirs,) if isinstance(self.theirs, str) else tuple(self.theirs)

    def variable(self, model) -> Any:
        """Returns the variable of a model, or the tensor that it is a view of.

        Returns `None` if the model does not have the variable, for example a bias.
        """
        value = model
        for name in self.ours.split("."):
            if value is None:
                return None
            value = value[int(name)] if name.isdecimal() else operator.attrgetter(name)(value)
        return value


def layers(table, theirs="", ours="") -> Iterator[Weight]:
    """Yields the `Weight`s of layers of PyTorch.

    Args:
        table: Dictionary from names in the checkpoint to paths of our layers. Paths that end in
            "norm" are normalisations; all others are linear layers with kernels `[out, in]`.
        theirs, ours: Common beginnings of the names and of the paths.
    """
    for name, layer in table.items():
        name, layer = theirs + name, ours + layer
        if layer.endswith("norm"):  # old files have the names of TensorFlow
            yield Weight((f"{name}.weight", f"{name}.gamma"), f"{layer}.gamma")
            yield Weight((f"{name}.bias", f"{name}.beta"), f"{layer}.beta")
        else:
            yield Weight(f"{name}.weight", f"{layer}.kernel", TRANSPOSED)
            yield Weight(f"{name}.bias", f"{layer}.bias")


def is_tied(family, output, tables, default=True) -> bool:
    """Returns whether output weights are those of the embedding; the weights in the file decide.

    They are tied if the settings say so, unless the file contains both and they differ; and if the
    file does not contain output weights. A note of the family names the contradiction.

    Args:
        family: The `Family`.
        output: Name of the tensor of the output weights.
        tables: Names of the tensor of the embedding.
        default: Value of a missing setting.

    Raises:
        ValueError: If there are neither output weights nor ties, because the checkpoint is a base
            model without a head.
    """
    settings, tensors = family.settings, family.tensors
    stated, table = settings.flag(TIE, default), tensors.first_of(tables)
    if output not in tensors:
        if not stated:
            named = settings.get("architectures")
            names = [str(name) for name in named] if isinstance(named, list) else []
            if any(name.endswith("Model") and not name.endswith("HeadModel") for name in names):
                raise ValueError(
                    f"{tensors.path}: the tensor {output} is missing, and {settings.path.name} "
                    f"does not tie it: {names[0]} is a base model without output weights."
                )
            family.notes.append(
                f"`{TIE}` is false, but the file has no {output}: the output weights are those of "
                f"the embedding, {table}"
            )
        return True
    if not stated or table not in tensors or np.array_equal(*map(tensors.read, (output, table))):
        return stated
    family.notes.append(
        f"`{TIE}` is true, but {output} differs from {table}: the output weights are those of the "
        "file, as in transformers 5"
    )
    return False


def token_weights(table, output, config, entries) -> Iterator[Weight]:
    """Yields embedding and output weights of a language model that never emits padding.

    Args:
        table: Name of the tensor of the embedding.
        output: Name of the tensor of the output weights.
        config: The `LanguageModelConfig`, whose `tie` is `"none"` or `"all"`.
        entries: Number of tokens in the file.
    """
    layout = Layout(entries=entries)
    if config.head.tie == "none":
        yield Weight(table, "embedding.table", layout)
        yield Weight(output, "output_layer.kernel", layout._replace(transposed=True))
    else:
        yield Weight((table, output), "embedding.table", layout)
    bias = np.zeros(config.tokens.vocab_size, "float32")
    bias[config.tokens.pad_id] = SILENT
    yield Weight((), "logits.bias", default=bias)
