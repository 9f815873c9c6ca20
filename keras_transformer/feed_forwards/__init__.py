"""Feed-forward networks as values (section 3.3): to add one, add a file with its class here."""

from keras_transformer.feed_forwards.gated import Gated
from keras_transformer.feed_forwards.network import Network
from keras_transformer.feed_forwards.none import NoNetwork
from keras_transformer.feed_forwards.plain import Plain

__all__ = ["Gated", "Network", "NoNetwork", "Plain"]
