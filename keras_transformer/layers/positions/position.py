"""The interface of positions: what an embedding and a self-attention need of them."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_transformer")
class Position:
    """Knows nothing of where a token stands; the base of all ways to know it.

    An embedding adds what `embed` returns. Every self-attention passes its query and key heads
    through `rotate`, adds what `bias` returns to its scores and what `values` returns to its
    values. Each method may do nothing.

    A position holds no weights. One that needs some adds them to the layer that it is given, in
    `build` to the embedding, in `build_attention` to a self-attention, and reads them from there.
    A learned bias for every distance is

        def build_attention(self, attention):
            shape = (self.farthest + 1, attention.num_heads)
            attention.distances = attention.add_weight(shape=shape, name="distances")

        def bias(self, attention, heads, queries, keys):
            far = ops.minimum(ops.abs(distances(queries, keys)), self.farthest)  # [T, S]
            rows = ops.take(attention.distances, far, axis=0)  # [T, S, H]
            return ops.moveaxis(rows, -1, 0)  # [H, T, S]
    """

    @classmethod
    def of_embedding(cls, config):
        """Returns the `Position` of the embeddings that a `TransformerConfig` describes."""
        return cls()

    @classmethod
    def of_attention(cls, config):
        """Returns the `Position` of the self-attentions that a `BlockConfig` describes."""
        return Position()

    def check(self, embedding):
        """Refuses a `PositionalEmbedding` that it does not fit."""

    def build(self, embedding):
        """Adds weights to a `PositionalEmbedding`."""

    def build_attention(self, attention):
        """Adds weights to a `MultiHeadSelfAttention`."""

    def embed(self, embedding, start, tokens):
        """Returns what is added to the embeddings of `tokens` `[B, T]`.

        Args:
            embedding: The `PositionalEmbedding`.
            start: Position of the first token, an integer or a scalar tensor; or integers `[B]`
                or `[B, 1]`, one for each row.
            tokens: Token ids `[B, T]`.

        Returns:
            `[T, D]`, or `[B, T, D]`, in the compute dtype of the layer; `None` for nothing.
        """

    def table(self, length, d_model):
        """Returns what is added to embeddings where that is fixed and not learned.

        Args:
            length: Number of positions T.
            d_model: Width of the model D, in features.

        Returns:
            NumPy array `[T, D]`; `None` where there is none.
        """

    def rotate(self, heads, positions):
        """Returns query or key heads of a self-attention, turned by where they stand.

        Args:
            heads: `[B, H, T, K]`.
            positions: Integers `[T]`, or one for all of them.
        """
        return heads

    def bias(self, attention, heads, queries, keys):
        """Returns what is added to the scores of a self-attention, before its masks.

        Args:
            attention: The `MultiHeadSelfAttention`.
            heads: The query heads as `AttentionScore.compare` takes them, `[B, H, T, K]`: turned,
                and then prepared. Where the queries have one position, T are as many queries there.
            queries: Positions of the queries, integers `[T]`, or one for all of them: see
                `distances`.
            keys: Positions of the keys, integers `[S]`: `0, 1, 2, ...`; in a cache with several
                hypotheses each position is there as often.

        Returns:
            Floating `[B, H, T, S]`, or without B, or with 1 in place of B, H or T; `None` for
            nothing. Scores are in float32 at least, and so may this be.
        """

    def values(self, attention, queries, keys):
        """Returns what is added to the value of a key for a query, the same for all heads.

        Args:
            attention: The `MultiHeadSelfAttention`.
            queries: As for `bias`.
            keys: As for `bias`.

        Returns:
            Floating `[T, S, K]`, with T = 1 where the queries have one position; `None` for
            nothing.
        """

    def get_config(self):
        """Returns the constructor's arguments."""
        return {}

    @classmethod
    def from_config(cls, config):
        """Returns the position that `get_config` described."""
        return cls(**config)


def distances(queries, keys):
    """Returns by how many positions each query comes after each key, `[T, S]`.

    Args:
        queries: Positions `[T]`, or one for all queries, with which T is 1.
        keys: Positions `[S]`.
    """
    return ops.reshape(queries, (-1, 1)) - keys


class AttentionPosition(Position):
    """The base of positions that are the work of every self-attention; embeddings have none.

    Attributes:
        kind: Name in `KINDS`.
    """

    kind = None

    @classmethod
    def of_embedding(cls, config):  # noqa: D102
        return Position()

    @classmethod
    def of_attention(cls, config):  # noqa: D102
        return cls()

    def check(self, embedding):  # noqa: D102
        raise ValueError(
            f"`position` of an embedding must be added to it: {self.kind} positions are the work "
            f'of a self-attention. Give the blocks `position="{self.kind}"`, and the embedding '
            '"none".'
        )
