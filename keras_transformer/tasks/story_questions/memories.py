"""Values of a memory network: sums of words, encodings of time, and tied embeddings.

Reference: Sukhbaatar, Szlam, Weston and Fergus (2015), "End-To-End Memory Networks".
"""

from __future__ import annotations

from typing import Any, ClassVar

from keras_transformer.arguments import option
from keras_transformer.checks import Rate
from keras_transformer.lazy_keras import keras, ops
from keras_transformer.tensors import Tensor
from keras_transformer.variants import Variant, declared


class SentenceEncoding(Variant):
    """Base class of sums over the embeddings of a sentence's words."""

    option = "sentence"
    taken_by = "StoryReaderConfig"

    def factors(self, place: Tensor, length: Tensor, size: int) -> Tensor | None:
        """Returns the factors of the embeddings, `[B, S, size]`; `None`: all are 1.

        Args:
            place: Position of each token in its sentence, from 1, floating `[B, S]`.
            length: Number of tokens of its sentence, at least 1, floating `[B, S]`.
            size: Width of an embedding.
        """
        raise NotImplementedError


@declared
class BagOfWords(SentenceEncoding):
    """The sum of the embeddings, which does not depend on the order of the words (section 4.1)."""

    kind = "bag_of_words"

    def factors(self, place: Tensor, length: Tensor, size: int) -> None:  # noqa: D102
        return None


@declared
class PositionEncoding(SentenceEncoding):
    """A sum with a factor for each position j of J and each feature k of d (section 4.1).

    `(1 - j / J) - (k / d) (1 - 2 j / J)`, with j and k counted from 1.
    """

    kind = "position"

    def factors(self, place: Tensor, length: Tensor, size: int) -> Tensor:  # noqa: D102
        share = ops.expand_dims(place / length, -1)  # [B, S, 1], j / J
        feature = ops.arange(1, size + 1, dtype=place.dtype) / size  # [size], k / d
        return (1 - share) - feature * (1 - 2 * share)


class TimeEncoding(Variant):
    """Base class of what a memory knows about the order of its sentences.

    Attributes:
        learned: Whether each place of the memory has a learned vector.
        noise: Rate of empty places in training.
    """

    option = "time"
    taken_by = "StoryReaderConfig"
    learned: ClassVar[bool] = False
    noise: Any = 0.0


@declared
class NoTime(TimeEncoding):
    """The memory is a set: its sentences have no order."""

    kind = "none"


@declared
class Temporal(TimeEncoding):
    """A learned vector for each place, counted from the most recent sentence (section 4.1)."""

    kind = "temporal"
    learned = True

    noise: Rate = option(  # ty: ignore[incompatible-attribute-override]
        0.1,
        """Random noise: probability of an empty place before each sentence in training, so that a
        sentence does not always have the same place (section 4.1).""",
    )


class Tying(Variant):
    """Base class of the ways to share embeddings among hops.

    Attributes:
        untimed: Number of tables, from the first, that are not of a memory.
    """

    option = "tying"
    taken_by = "StoryReaderConfig"
    untimed: ClassVar[int] = 0

    def tables(self, hops: int) -> int:
        """Returns the number of tables of embeddings; the first one is of the question."""
        raise NotImplementedError

    def places(self, hop: int) -> tuple[int, int]:
        """Returns the numbers of the tables with which a hop compares and from which it reads."""
        raise NotImplementedError

    def build(self, layer: keras.Layer) -> None:
        """Adds the weights between hops to a `MemoryHops`."""

    def carried(self, layer: keras.Layer, state: Tensor) -> Tensor:
        """Returns the term of the next state that depends on this one alone, `[B, D]`."""
        return state


@declared
class Adjacent(Tying):
    """A hop reads from the table with which the next one compares; the question has the first."""

    kind = "adjacent"

    def tables(self, hops: int) -> int:  # noqa: D102
        return hops + 1

    def places(self, hop: int) -> tuple[int, int]:  # noqa: D102
        return hop, hop + 1


@declared
class LayerWise(Tying):
    """All hops share two tables, as in a recurrent network, with a linear map between hops."""

    kind = "layer_wise"
    untimed = 1

    def tables(self, hops: int) -> int:  # noqa: D102
        return 3

    def places(self, hop: int) -> tuple[int, int]:  # noqa: D102
        return 1, 2

    def build(self, layer: keras.Layer) -> None:  # noqa: D102
        layer.state_map = layer.add_weight(
            shape=(layer.config.d_model, layer.config.d_model),
            initializer=keras.initializers.RandomNormal(stddev=0.1),
            name="state_map",
        )

    def carried(self, layer: keras.Layer, state: Tensor) -> Tensor:  # noqa: D102
        return ops.matmul(state, ops.transpose(ops.cast(layer.state_map, state.dtype)))
