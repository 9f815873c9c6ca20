"""Parts of a model (input, encoder, decoder and head), and copying their weights."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.config.parts import PARTS, STACKS
from keras_transformer.lazy_keras import keras

# Names of the variables that Keras's `Dense.enable_lora` adds.
ADAPTERS = ("lora_kernel_a", "lora_kernel_b")
LAYER = re.compile(r"\b(block|recurrent)_(\d+)/")  # of a stack, in the path of a weight


@dataclasses.dataclass(frozen=True)
class Parts:
    """The parts of a model; a part is `None` if the model does not have it.

    Attributes:
        input: A `ModelInput`; in an encoder-decoder model, for the source.
        encoder: An `Encoder`, or a replacement such as a `RecurrentEncoder`.
        decoder: A `TargetDecoder`, which has the target embedding and the `Decoder`; or the causal
            `Encoder` of a language model.
        head: A `Head`.
    """

    input: Any
    encoder: Any
    decoder: Any
    head: Any

    @property
    def embeddings(self) -> list[Any]:
        """The layers that embed tokens, in order; an embedding of both sides occurs twice."""
        return [*self.input.embeddings, *getattr(self.decoder, "embeddings", ())]

    def weights(self, name) -> dict[str, Any] | None:
        """Returns the variables of a part by their paths in the part; `None` without the part.

        A table shared by embedding and output weights belongs to the input or the decoder. LoRA
        adapters are left out.

        Args:
            name: One of `PARTS`.
        """
        if getattr(self, name) is None:
            return None
        return _weights(getattr(self, name), self._earlier(name))

    def variables(self, name) -> list[Any]:
        """Returns the variables that a part uses, a list; a shared table is in each of its parts.

        LoRA adapters are left out.

        Args:
            name: One of `PARTS`.
        """
        part = getattr(self, name)
        output: Any = getattr(part, "weights", None)  # the output weights of a head
        if getattr(output, "is_tied", False):  # of the embedding it uses only the table
            weights = self.weights(name) or {}
            return [*weights.values(), output.layer.table]
        return [] if part is None else [*_weights(part, set()).values()]

    def _earlier(self, name):
        """Returns the variables of the parts before the part `name`, by identity."""
        earlier = [getattr(self, other) for other in PARTS[: PARTS.index(name)]]
        return {id(v) for part in earlier if part for v in _weights(part, set()).values()}


@dataclasses.dataclass(frozen=True)
class Copied:
    """Result of `copy_parts`: copied parts, and parts that keep their initial weights.

    Attributes:
        copied: For each copied part, the name of the part of the other model.
        new: For each other part, the reason why it was not copied.
        layers: For each copied stack with fewer layers than the other model's, the numbers of the
            layers that were copied, counted from 0.
    """

    copied: dict
    new: dict
    layers: dict = dataclasses.field(default_factory=dict)


def stacks_of(model) -> tuple[str, ...]:
    """Returns the names of the stacks of a model, from `STACKS`; none if it has no parts."""
    parts = getattr(model, "parts", None)
    return tuple(name for name in STACKS if getattr(parts, name, None) is not None)


def copy_parts(
    model: "keras.Model", other: "keras.Model", names: Sequence[str] = PARTS, shrink: bool = False
) -> Copied:
    """Copies the weights of the parts that two models have in common.

    A part is copied if all its weights have the same names and shapes in both models. The decoder
    of a language model, which has no cross-attention, can also be copied to an encoder, and an
    encoder to such a decoder.

    Args:
        model: The model to copy weights to.
        other: The model to copy weights from.
        names: Names of the parts to copy, from `PARTS`.
        shrink: Whether a stack with N layers can be copied from one with more: the first, the last
            and N - 2 layers evenly spaced between them, or only the first for N = 1. This follows
            Shleifer and Rush (2020), "Pre-trained Summarization Distillation", whose numbers
            differ from these by one for some N.

    Returns:
        A `Copied`.

    Raises:
        ValueError: If a name is unknown.
    """
    if unknown := [name for name in names if name not in PARTS]:
        raise ValueError(
            f"`names` must be among {', '.join(PARTS)}. Received: {', '.join(map(str, unknown))}."
        )
    copied, new, layers = {}, {}, {}
    for name in PARTS:
        ours = model.parts.weights(name)
        if ours is None:
            continue
        if name not in names:
            new[name] = "not requested"
            continue
        source = source_of(name, other.parts)
        theirs = None if source is None else other.parts.weights(source)
        kept = _kept(ours, theirs) if shrink and theirs else None
        if kept:
            theirs = _of_layers(theirs, kept)
        reason = _difference(ours, theirs)
        if reason or theirs is None:
            new[name] = reason
            continue
        for path, variable in ours.items():
            variable.assign(theirs[path])
        copied[name] = source
        if kept:
            layers[name] = kept
    return Copied(copied, new, layers)


def source_of(name, other) -> str | None:
    """Returns the name of the corresponding part of another model, or `None` if there is none.

    If the other model has only one stack, that stack corresponds to both encoder and decoder.

    Args:
        name: One of `PARTS`.
        other: The `Parts` of the other model, or its `ModelConfig`.
    """
    if getattr(other, name) is not None:
        return name
    swapped = {"encoder": "decoder", "decoder": "encoder"}.get(name)
    return swapped if swapped and getattr(other, swapped) is not None else None


def _kept(ours, theirs):
    """Returns the numbers of the layers to copy, a list; `None` if there are not more of them."""
    here, there = (len({_layer(path) for path in one} - {None}) for one in (ours, theirs))
    return np.linspace(0, there - 1, here).round().astype(int).tolist() if here < there else None


def _of_layers(weights, kept):
    """Returns the weights outside of layers and those of some layers, which are numbered anew."""
    places, chosen = {number: place for place, number in enumerate(kept)}, {}
    for path, variable in weights.items():
        number = _layer(path)
        if number in places:
            chosen[LAYER.sub(rf"\1_{places[number]}/", path, count=1)] = variable
        elif number is None:
            chosen[path] = variable
    return chosen


def _layer(path):
    """Returns the number of the layer of a stack to which a weight belongs, or `None`."""
    match = LAYER.search(path)
    return match and int(match[2])


def _difference(ours, theirs):
    """Returns the reason why weights cannot be copied; empty if they can."""
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
    """Returns the variables of a part, except `left_out` and adapters, by paths from the layer."""
    weights = {}
    for role, layer in getattr(part, "roles", {"": part}).items():  # a stack is one layer
        for variable in layer.weights:
            path = variable.path.partition(f"{layer.name}/")[2]
            if id(variable) not in left_out and variable.name not in ADAPTERS:
                weights[f"{role}/{path}".lstrip("/")] = variable
    return weights
