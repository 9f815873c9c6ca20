"""A block without a feed-forward network."""

from __future__ import annotations

from keras_transformer.feed_forwards.network import Network
from keras_transformer.variants import declared


@declared
class NoNetwork(Network):
    """No feed-forward network: a block ends after attention, as before the Transformer.

    The block also lacks the normalisation and the residual connection of the sublayer.

    Reference: Bahdanau et al. (2015), Gehring et al. (2017).
    """

    kind = "none"
    is_sublayer = False
