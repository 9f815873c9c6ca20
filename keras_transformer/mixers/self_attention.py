"""Self-attention as a mixer."""

from __future__ import annotations

from keras_transformer.mixers.mixer import Mixer
from keras_transformer.variants import declared


@declared
class SelfAttention(Mixer):
    """The self-attention of the paper, which a `MultiHeadSelfAttention` computes.

    Reference: Vaswani et al. (2017), section 3.2.3.
    """

    kind = "self_attention"
    attends = True
