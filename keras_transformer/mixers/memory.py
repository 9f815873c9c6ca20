"""`MemoryReader`, the interface of how a decoder reads the output of the encoder."""

from __future__ import annotations

from keras_transformer.variants import Variant


class MemoryReader(Variant):
    """Base class of the kinds of cross-attention and of what replaces it in a block.

    Attributes:
        attends: Whether it is attention, with heads and weights.
    """

    option, taken_by = "cross_attention", "DecoderBlock"
    package = "keras_transformer.mixers"
    default_kind = "attention"
    attends = True
