"""`Position`, the interface of position encodings to embeddings and self-attention layers."""

from __future__ import annotations

from typing import Any

from keras_transformer.lazy_keras import keras, np, ops
from keras_transformer.tensors import Tensor
from keras_transformer.variants import Variant, short

# The methods by which a position acts on embeddings, and in self-attention.
OF_EMBEDDINGS = ("embed",)
OF_ATTENTION = ("rotate", "bias", "key_bias", "values")
OF_KEYS = ("bias", "key_bias", "values")  # those that need the positions of all keys in every step


class Position(Variant):
    """Base class of position encodings; by itself it encodes no positions.

    An embedding adds the result of `embed`. Each self-attention passes its query and key heads
    through `rotate`, adds the results of `bias` and `key_bias` to its scores and the result of
    `values` to its values. Each method may do nothing. A position may act in both places; a layer
    refuses one that cannot act in it.

    In self-attention, a position must depend on distances alone if rows of a batch hold several
    texts, as in the training of language models.

    A subclass needs a `kind`, its name in configurations, and may be a dataclass whose fields are
    its options; see `declared`. A position holds no weights. If it needs weights, it adds them to
    the layer that it is given, in `build` to the embedding or in `build_attention` to a
    self-attention, and reads them from there. For example, a learned bias for each distance is

        def build_attention(self, attention):
            shape = (self.farthest + 1, attention.num_heads)
            attention.distances = attention.add_weight(shape=shape, name="distances")

        def bias(self, attention, heads, queries, keys):
            far = ops.minimum(ops.abs(distances(queries, keys)), self.farthest)  # [T, S]
            rows = ops.take(attention.distances, far, axis=0)  # [T, S, H]
            return ops.moveaxis(rows, -1, 0)  # [H, T, S]

    Attributes:
        embeds: Whether it acts on embeddings: its class overrides `embed`.
        attends: Whether it acts in self-attention: its class overrides one of the other methods.
        reads_keys: Whether attention needs the positions of all keys in every step, and not only
            once to rotate them: its class overrides `bias`, `key_bias` or `values`.
        is_relative: Whether it depends on distances alone.
        by_row: Whether its methods take the positions of several texts, queries `[B, 1, 1]` in
            `rotate`, and queries `[B, 1, 1, 1]` and keys `[B, 1, 1, S]` in `bias`, so that texts of
            different lengths can take a step together. A class that overrides a method of attention
            must declare it.
        shared: Whether the blocks of a stack share its weights, which the first one holds.
    """

    option = "position"
    package = "keras_transformer.positions"
    kind = "none"
    embeds = attends = reads_keys = False
    is_relative = False
    by_row = True
    shared = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.embeds = any(
            getattr(cls, name) is not getattr(Position, name) for name in OF_EMBEDDINGS
        )
        cls.attends = any(
            getattr(cls, name) is not getattr(Position, name) for name in OF_ATTENTION
        )
        cls.reads_keys = any(getattr(cls, name) is not getattr(Position, name) for name in OF_KEYS)
        if "by_row" not in cls.__dict__:
            cls.by_row = not cls.attends

    def within(self, max_length: int) -> Position:
        """Returns the position for texts of at most `max_length` positions."""
        return self

    def check_stack(self, stack: Any) -> None:
        """Raises `ValueError` if it does not fit a `StackConfig`, whose `d_model` may be `None`."""

    def check(self, embedding: keras.Layer) -> None:
        """Raises `ValueError` if it does not fit a `PositionalEmbedding`."""

    def build(self, embedding: keras.Layer) -> None:
        """Adds weights to a `PositionalEmbedding`."""

    def build_attention(self, attention: keras.Layer) -> None:
        """Adds weights to a `MultiHeadSelfAttention`."""

    def embed(self, embedding: keras.Layer, start: Tensor, tokens: Tensor) -> Tensor | None:
        """Returns the encoding to add to the embeddings of `tokens` `[B, T]`.

        Args:
            embedding: The `PositionalEmbedding`.
            start: Position of the first token, an integer or a scalar tensor; or integers `[B]`
                or `[B, 1]`, one for each row.
            tokens: Token ids `[B, T]`.

        Returns:
            `[T, D]`, or `[B, T, D]`, in the compute dtype of the layer; `None`: nothing is added.
        """

    def table(self, length: int, d_model: int) -> np.ndarray | None:
        """Returns the encoding added to embeddings, if it is fixed rather than learned.

        Args:
            length: Number of positions T.
            d_model: Width of the model D, in features.

        Returns:
            NumPy array `[T, D]`; `None` if there is no fixed encoding.
        """

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        """Returns query or key heads of a self-attention, rotated according to their positions.

        Args:
            heads: `[B, H, T, K]`.
            positions: Integers `[T]`, or one position for all heads; or if it is `by_row`, integers
                `[B, 1, 1]`.
        """
        return heads

    def bias(
        self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor
    ) -> Tensor | None:
        """Returns the term to add to the scores of a self-attention, before masking.

        Args:
            attention: The `MultiHeadSelfAttention`.
            heads: The query heads `[B, H, T, K]` in the form that `AttentionScore.compare` takes:
                rotated, and then prepared. T may be several queries at one position.
            queries: Positions of the queries, integers `[T]`, or one for all of them; see
                `distances`.
            keys: Positions of the keys, integers `[S]`: `0, 1, 2, ...`; in a cache of N hypotheses
                each position occurs N times.

        Returns:
            Floating `[B, H, T, S]`, in which B, H or T may be 1 and B may be missing; `None`:
            nothing is added. It may be float32 whatever the dtype of `heads`, as scores are at
            least float32.
        """

    def key_bias(
        self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor
    ) -> Tensor | None:
        """Returns a term to add to the scores that depends on the keys, in bidirectional attention.

        Args:
            attention: The `MultiHeadSelfAttention`.
            heads: The key heads `[B, G, S, K]` in the form that `AttentionScore.compare` takes.
            queries: Positions of the queries, integers `[T]`.
            keys: Positions of the keys, integers `[S]`.

        Returns:
            Floating `[B, H, T, S]`; `None`: nothing is added.
        """

    def values(self, attention: keras.Layer, queries: Tensor, keys: Tensor) -> Tensor | None:
        """Returns the vectors to add to the values, one for each query and key, for all heads.

        Args:
            attention: The `MultiHeadSelfAttention`.
            queries: See `bias`.
            keys: See `bias`.

        Returns:
            Floating `[T, S, K]`, with T = 1 if the queries share a position; `None`: nothing is
            added.
        """

    def shared_with(self, block: Any) -> Position:
        """Returns the position of another block that uses the weights of this one.

        Args:
            block: The `Block` that this position belongs to. It must be built before the result is
                used.
        """
        return SharedPosition(block)


def acting(position: Position, place: str) -> Position:
    """Returns a position, or one that does nothing if it does not act in a place.

    Args:
        position: The `Position`.
        place: `"embeds"` or `"attends"`.
    """
    return position if getattr(position, place) else Position()


def distances(queries, keys) -> Tensor:
    """Returns the signed distances `query - key`, positive for keys before the query, `[T, S]`.

    Args:
        queries: Positions `[T]`, or one position for all queries (T = 1); or of further axes, the
            last of which is 1, `[..., T, 1]`.
        keys: Positions `[S]`; then `[..., 1, S]`.
    """
    return column(queries) - keys


def column(queries) -> Tensor:
    """Returns positions of queries as a column `[T, 1]`, or `[..., T, 1]` as they are."""
    return queries if len(getattr(queries, "shape", ())) > 2 else ops.reshape(queries, (-1, 1))


class SharedPosition(Position):
    """Delegates to the position of another block, including its weights, as in T5.

    Args:
        block: The `Block` whose self-attention holds the weights. It must be built before this
            position is used.
    """

    def __init__(self, block: Any):
        self.block = block

    def bias(  # noqa: D102
        self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor
    ) -> Tensor | None:
        owner = self.block.self_attention
        return owner.position.bias(owner, heads, queries, keys)

    def key_bias(  # noqa: D102
        self, attention: keras.Layer, heads: Tensor, queries: Tensor, keys: Tensor
    ) -> Tensor | None:
        owner = self.block.self_attention
        return owner.position.key_bias(owner, heads, queries, keys)

    def values(self, attention: keras.Layer, queries: Tensor, keys: Tensor) -> Tensor | None:  # noqa: D102
        owner = self.block.self_attention
        return owner.position.values(owner, queries, keys)

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:  # noqa: D102
        return self.block.self_attention.position.rotate(heads, positions)


def for_embedding(value: Any) -> Position:
    """Returns the `Position` of an embedding.

    Args:
        value: A `Position`, the name of a kind, or a table; see `Position.make`.

    Raises:
        ValueError: If it acts in self-attention alone.
    """
    position = Position.make(value)
    if position.attends and not position.embeds:
        written = _written(position)
        raise ValueError(
            f"`position` of an embedding must be added to it, but {written} acts in "
            f"self-attention. Give it to the blocks, `position={written}`, and give "
            'the embedding `position="none"`.'
        )
    return position


def for_attention(value: Any, name: str = "position") -> Position:
    """Returns the `Position` of a self-attention.

    Args:
        value: A `Position`, the name of a kind, or a table; see `Position.make`.
        name: Name of the argument.

    Raises:
        ValueError: If it acts on embeddings alone.
    """
    position = Position.make(value, name)
    if position.embeds and not position.attends:
        written = _written(position)
        raise ValueError(
            f"`{name}` of a block or a self-attention must act in self-attention, but {written} is "
            "added to embeddings. Leave it out here, and give it to the embedding: "
            f"`PositionalEmbedding(..., position={written})`."
        )
    return position


def _written(position):
    """Returns a position as it is written as an argument."""
    name = short(position)
    return f'"{name}"' if isinstance(name, str) else repr(position)
