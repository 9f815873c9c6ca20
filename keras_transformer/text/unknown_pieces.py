"""Ids of pieces that SentencePiece cannot encode but that a model's vocabulary has.

SentencePiece turns each run of characters that it does not know into one unknown piece. The
vocabulary of a model may still have an id for that text, such as a letter of the other language.
The SentencePiece model then contains it as an unused piece.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.text.sentencepiece_model import unused_pieces

BUCKETS = 2**63 - 1  # values of the hash


@dataclasses.dataclass(frozen=True)
class UnknownPieces:
    """Table of ids for texts that are unknown to SentencePiece.

    Args:
        ids: Dictionary from a text to the model's id.
        unk_id: The model's id of all other texts.
    """

    ids: dict
    unk_id: int

    @classmethod
    def of(cls, model, table) -> "UnknownPieces":
        """Returns the table for the bytes of a SentencePiece model and a `PieceTable`."""
        places = unused_pieces(model).items()
        ids = {piece: table.ids[place] for piece, place in places if table.ids[place] >= 0}
        return cls(ids, table.unk_id)

    def __bool__(self) -> bool:
        return bool(self.ids)

    def look_up(self, texts) -> Tensor:
        """Returns the ids of texts `[N]`, int32, in the graph and without a resource.

        Texts are compared by a hash of 63 bits. The probability that another text has the hash of
        one of 60,000 pieces is about 1 in 10**14.
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
