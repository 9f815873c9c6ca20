"""Ids of pieces that a SentencePiece model does not know but the model's vocabulary has.

SentencePiece cuts characters that it does not know into pieces of their own, one for each run of
them. The vocabulary of a model may have such a piece all the same, such as a letter that only the
other language has. The SentencePiece model then holds it as an unused piece.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.text.sentencepiece_model import unused_pieces

BUCKETS = 2**63 - 1  # of a hash of 64 bits


@dataclasses.dataclass(frozen=True)
class UnknownPieces:
    """The ids of texts that SentencePiece calls unknown.

    Args:
        ids: Dictionary from a text to the model's id; all others are unknown.
        unk_id: The model's id of the unknown.
    """

    ids: dict
    unk_id: int

    @classmethod
    def of(cls, model, table):
        """Returns those of the bytes of a SentencePiece model and a `PieceTable`."""
        places = unused_pieces(model).items()
        ids = {piece: table.ids[place] for piece, place in places if table.ids[place] >= 0}
        return cls(ids, table.unk_id)

    def __bool__(self):
        return bool(self.ids)

    def look_up(self, texts):
        """Returns the ids of texts `[N]`, int32, in the graph and without a resource.

        A text is found by its hash of 64 bits: the chance that another one has the hash of one of
        60,000 pieces is 1 in 10**14.
        """
        with tf.init_scope():
            hashes = tf.strings.to_hash_bucket_fast(list(self.ids), BUCKETS).numpy()
        order = np.argsort(hashes)
        ordered = tf.constant(hashes[order])  # [P]
        ids = tf.constant(np.fromiter(self.ids.values(), np.int32)[order])  # [P]
        hashed = tf.strings.to_hash_bucket_fast(texts, BUCKETS)  # [N]
        places = tf.minimum(tf.searchsorted(ordered, hashed), len(order) - 1)
        return tf.where(
            tf.equal(tf.gather(ordered, places), hashed), tf.gather(ids, places), self.unk_id
        )
