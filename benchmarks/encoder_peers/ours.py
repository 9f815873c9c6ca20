"""keras_transformer: the folder that `keras-transformer export saved-model` writes.

Uses the signature from token ids, which ignores padding by itself.
"""

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers operations of the SavedModel)
from encoder_files import path_of
from encoder_task import Encoder

from encoder_peers.batches import Batches


def make(order):
    """Loads the SavedModel."""
    encoder = Encoder(**order["encoder"])
    loaded = tf.saved_model.load(str(path_of(order["folder"], "saved-model", "none") / "1"))
    signature = loaded.signatures["tokens"]

    # The default argument keeps `loaded` alive: a signature does not keep its variables.
    def answer(ids, mask, loaded=loaded):
        return signature(source=tf.constant(ids))[encoder.output].numpy()

    return Batches(answer, order)
