"""`Details`, what a graph of a search takes and returns besides texts."""

import typing

import numpy as np

from keras_transformer.decoding import Constraints
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor

# The inputs of graphs, by the names of the fields of `Constraints`.
AXES = {"prefix": 2, "banned_phrases": 2, "terms": 4}  # number of axes of each


class Details(typing.NamedTuple):
    """Inputs and outputs of the graph of a search besides texts.

    Attributes:
        constraints: Names of the fields of `Constraints` that are inputs of the graph.
        word_starts: See `Constraints`, a tuple. `None`: not known.
        token_scores: Whether the graph also returns the tokens and their scores.
    """

    constraints: tuple = ()
    word_starts: tuple | None = None
    token_scores: bool = False

    @property
    def inputs(self) -> "list[tf.TensorSpec]":
        """The `tf.TensorSpec`s of the constraints."""
        return [
            tf.TensorSpec([None] * AXES[name], tf.int32, name=name) for name in self.constraints
        ]

    def asked(self, values: typing.Sequence[Tensor]) -> dict[str, typing.Any]:
        """Returns the fields of `SearchOptions` for values of the `inputs`."""
        asked: dict[str, typing.Any] = {"constraints": None}
        if self.token_scores:
            asked["token_scores"] = True
        if self.constraints:
            given = dict(zip(self.constraints, values, strict=True))
            starts = None if self.word_starts is None else np.array(self.word_starts)
            asked["constraints"] = Constraints(**given, word_starts=starts)
        return asked


PLAIN = Details()
