"""Parts of a model: input, encoder, decoder and head, and copies of their weights."""

import dataclasses
from typing import Any

from keras_transformer.config.parts import PARTS, STACKS


@dataclasses.dataclass(frozen=True)
class Parts:
    """The parts of a model; `None` where it lacks one.

    Attributes:
        input: A `ModelInput`; of an encoder-decoder that of the source.
        encoder: An `Encoder`, or what takes its place.
        decoder: A `TargetDecoder`, the target's embedding and the `Decoder`; or the causal
            `Encoder` of a language model.
        head: A `Head`.
    """

    input: Any
    encoder: Any
    decoder: Any
    head: Any

    @property
    def embeddings(self):
        """The layers that embed tokens, in order; an embedding of both sides is there twice."""
        return [*self.input.embeddings, *getattr(self.decoder, "embeddings", ())]

    def weights(self, name):
        """Returns the variables of a part by their paths within it; `None` without the part.

        A table that embedding and output weights share belongs to the input, or to the decoder.

        Args:
            name: One of `PARTS`.
        """
        if getattr(self, name) is None:
            return None
        return _weights(getattr(self, name), self._earlier(name))

    def _earlier(self, name):
        """The variables of the parts before one, by identity."""
        earlier = [getattr(self, other) for other in PARTS[: PARTS.index(name)]]
        return {id(v) for part in earlier if part for v in _weights(part, set()).values()}


@dataclasses.dataclass(frozen=True)
class Copied:
    """Parts that were copied from one model to another, and parts that begin anew.

    Attributes:
        copied: The name of each part that was copied, with the name that it has in the other model.
        new: The name of each other part, with the reason.
    """

    copied: dict
    new: dict


def stacks_of(model):
    """Returns the names of the stacks that a model has, of `STACKS`; none if it has no parts."""
    parts = getattr(model, "parts", None)
    return tuple(name for name in STACKS if getattr(parts, name, None) is not None)


def copy_parts(model, other, names=PARTS):
    """Copies the weights of the parts that two models have in common.

    A part fits if all its weights have the same names and shapes. A decoder without attention to a
    memory, that of a language model, also fits an encoder, and the other way round.

    Args:
        model: The model whose weights change.
        other: The model whose weights are copied.
        names: The parts to copy, of `PARTS`.

    Returns:
        A `Copied`.

    Raises:
        ValueError: If there is no such part.
    """
    if unknown := [name for name in names if name not in PARTS]:
        raise ValueError(
            f"`names` must be of {', '.join(PARTS)}. Received: {', '.join(map(str, unknown))}."
        )
    copied, new = {}, {}
    for name in PARTS:
        ours = model.parts.weights(name)
        if ours is None:
            continue
        if name not in names:
            new[name] = "not asked for"
            continue
        source = source_of(name, other.parts)
        theirs = None if source is None else other.parts.weights(source)
        reason = _difference(ours, theirs)
        if reason:
            new[name] = reason
            continue
        for path, variable in ours.items():
            variable.assign(theirs[path])
        copied[name] = source
    return Copied(copied, new)


def source_of(name, other):
    """Returns the name of the part of another model to copy, or `None`.

    An only stack is an encoder to another model's encoder, and a decoder to its decoder.

    Args:
        name: One of `PARTS`.
        other: The `Parts` of the other model, or its `ModelConfig`.
    """
    if getattr(other, name) is not None:
        return name
    swapped = {"encoder": "decoder", "decoder": "encoder"}.get(name)
    return swapped if swapped and getattr(other, swapped) is not None else None


def _difference(ours, theirs):
    """Why weights do not fit; empty if they do."""
    if theirs is None:
        return "the other model has none"
    for path in {**ours, **theirs}:
        if path not in theirs:
            return f"the other model has no {path}"
        if path not in ours:
            return f"the other model also has {path}"
        if tuple(ours[path].shape) != tuple(theirs[path].shape):
            sizes = [" x ".join(map(str, one[path].shape)) for one in (ours, theirs)]
            return f"{path} is {sizes[0]} here and {sizes[1]} there"
    return ""


def _weights(part, left_out):
    """The variables of a part by path, but for some; the names of its layers begin the paths."""
    weights = {}
    for role, layer in getattr(part, "roles", {"": part}).items():  # a stack is one layer
        for variable in layer.weights:
            path = variable.path.partition(f"{layer.name}/")[2]
            if id(variable) not in left_out:
                weights[f"{role}/{path}".lstrip("/")] = variable
    return weights
