"""A table with one row for each mixer with a state, which the tests of all packages read.

They compare a mixer with its reference, and run it in a block, a search, an export and every way
that TensorFlow and Keras run a layer.
"""

import dataclasses
import functools
from collections.abc import Callable

import reference
from convolutions_in_loops import dilated_convolution, gated_convolution

from keras_transformer.mixers import Mixer


@dataclasses.dataclass(frozen=True)
class MixerRow:
    """Reference and options for the tests of a mixer.

    Attributes:
        reference: A function from weights by path, `x` `[B, T, D]`, the real positions `[B, T]` and
            whether it is causal to the output, in float64.
        model: Other options of a model with the mixer.
        options: Options of the mixer, for small inputs.
    """

    reference: Callable
    model: dict = dataclasses.field(default_factory=dict)
    options: dict = dataclasses.field(default_factory=dict)


DILATIONS = {"dilation": 2, "max_dilation": 4}
MIXERS = {
    "dilated_convolution": MixerRow(
        functools.partial(dilated_convolution, dilation=2), {"norm": "pre"}, DILATIONS
    ),
    "gated_convolution": MixerRow(gated_convolution, {"position": "learned"}, {"width": 4}),
    "gru": MixerRow(reference.gru),
    "lstm": MixerRow(reference.lstm, {"norm": "pre", "position": "none"}),
    "ssru": MixerRow(reference.ssru, {"decoder_start": "zeros"}),
}


def mixer_of(kind):
    """Returns the mixer of a row as a table of options."""
    return {"kind": kind, **MIXERS[kind].options}


def directions(kind):
    """Returns the values of `causal` that a layer of the mixer may have."""
    return (True,) if Mixer.kinds()[kind].is_causal else (True, False)


def stacks_with(kind):
    """Returns the option of an encoder-decoder that names the mixer wherever it can be."""
    return "mixer" if False in directions(kind) else "decoder"


def model_options(kind):
    """Returns the options of an encoder-decoder with the mixer wherever it can be."""
    stacks, mixer = stacks_with(kind), mixer_of(kind)
    return {stacks: mixer if stacks == "mixer" else {"mixer": mixer}, **MIXERS[kind].model}


def models():
    """Returns the options of an encoder-decoder with each mixer, by kind."""
    return {kind: model_options(kind) for kind in MIXERS}
