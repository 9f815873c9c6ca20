"""Token embeddings, positions and the tied output weights (sections 3.4 and 3.5)."""

import math
from typing import Any

import keras
from keras import ops

from keras_transformer import positions
from keras_transformer.checks import check_count, check_positive, check_rate, is_integer
from keras_transformer.layers.call_checks import check_ids, check_kept, check_positions, mark
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.positions.tables import rows_or_nan, token_places
from keras_transformer.tensors import Shape, Tensor
from keras_transformer.variants import plain


class PositionedEmbedding(CompositeLayer):
    """Base class of layers that embed an input and add positions, with dropout on the sum.

    The constructor of a subclass ends with `self.position.check(self)`, which reads its sizes.

    Args:
        d_model: Width of the model, in features.
        position: A `Position`, or its name.
        dropout: Dropout rate on the sum.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Attributes:
        is_linear: Whether the embedding is a linear layer, `projection`.
    """

    is_linear = False

    def __init__(
        self,
        d_model: int,
        position: str | positions.Position,
        dropout: float,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_count("d_model", d_model)
        check_rate("dropout", dropout)
        self.d_model, self.dropout_rate = d_model, dropout
        self.position = positions.for_embedding(position)
        if self.is_linear:
            # Inputs of variance 1 get outputs of variance 1, like token embeddings. With Keras's
            # default weights, outputs of few inputs would be small compared with the positions.
            self.projection = keras.layers.Dense(
                d_model,
                kernel_initializer="lecun_normal",
                dtype=self.dtype_policy,
                name="projection",
            )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Calls the layer, and notes on its output which position it added."""
        outputs = super().__call__(*args, **kwargs)
        mark(outputs, self.position)
        return outputs

    def with_position(self, x: Tensor, training: bool | None = None) -> Tensor:
        """Returns embeddings `[B, T, D]` plus the positions from 0 on, after dropout."""
        position = self.position.embed(self, 0, x)  # [T, D]
        return self.dropout(x if position is None else x + position, training=training)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "position": plain(self.position),
            "dropout": self.dropout_rate,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionalEmbedding(PositionedEmbedding):
    """Token embedding scaled by `sqrt(d_model)`, plus the position, with dropout on the sum.

    Called with `reverse=True`, the same matrix turns hidden states into logits (section 3.4).

    Args:
        vocab_size: Number of tokens V.
        d_model: Width of the model, in features.
        position: A `Position`, such as `Sinusoidal(layout="halves")`, or its name:
            `"sinusoidal"`, `"learned"`, `"binary"` or `"none"`.
        max_length: Number of positions of a learned table, and of any other table if the length of
            the input or `start` is not known when the graph is built. Embeddings of later
            positions are NaN, or an error on devices that check indices.
        dropout: Dropout rate on the sum of embedding and position (section 5.4).
        pad_id: Id of the padding token. The output gets a mask of the tokens that are not padding,
            as from `keras.layers.Embedding(mask_zero=True)`. `None`: no mask.
        scale: Factor of the embeddings. `None`: `sqrt(d_model)`, as in the paper.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        inputs: Token ids `[B, T]`, integer; with `reverse`, hidden states `[B, T, D]`.
        start: Position of the first token, counting from 0: an integer, a scalar tensor, or
            integers `[B]` or `[B, 1]`, one for each row.
        reverse: Whether to map hidden states to logits.
        training: Whether dropout is active.
        places: Position of each token, integer `[B, T]`, below T, for rows that hold several texts.
            `None`: positions are counted from `start`.
        zero_start: Whether the embedding of the token at position 0 is replaced by zeros, for
            models whose outputs do not begin with a token. The position is still added.
        kept: Which embeddings are kept, boolean `[B, T]`; the others are replaced by zeros, to
            which the position is still added (token cutoff). `None`: all.

    Returns:
        `[B, T, D]`; with `reverse`, logits `[B, T, V]`.

    Raises:
        ValueError: If `position` is unknown, `d_model` is odd with sinusoidal positions, or there
            are more tokens than learned positions, or `kept` is not boolean `[B, T]`.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import PositionalEmbedding
        >>> embedding = PositionalEmbedding(vocab_size=100, d_model=16)
        >>> x = embedding(np.array([[7, 4, 3]]))
        >>> x.shape
        TensorShape([1, 3, 16])
        >>> embedding(x, reverse=True).shape
        TensorShape([1, 3, 100])

    Reference: Vaswani et al. (2017), sections 3.4, 3.5 and 5.4; learned positions Table 3, row E.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        position: str | positions.Position = "sinusoidal",
        max_length: int = 512,
        dropout: float = 0.0,
        pad_id: int | None = None,
        scale: float | None = None,
        **kwargs: Any,
    ):
        check_count("vocab_size", vocab_size)
        super().__init__(d_model, position, dropout, **kwargs)
        self.autocast = False  # casting floating ids would round them
        check_count("max_length", max_length)
        _check_pad_id(pad_id, vocab_size)
        self.vocab_size, self.max_length, self.pad_id = vocab_size, max_length, pad_id
        if scale is not None:
            check_positive("scale", scale)
        self.scale = math.sqrt(d_model) if scale is None else scale
        self.widths = {"inputs": d_model}  # of hidden states
        self.position.check(self)

    def build(self, inputs_shape: Shape | None = None) -> None:  # noqa: D102
        # With variance 1 / d_model, scaled embeddings have variance 1, and so have the logits.
        normal = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        self.table = self.add_weight(
            shape=(self.vocab_size, self.d_model),
            initializer=normal,
            autocast=False,  # only the rows are cast, not the whole table
            name="table",
        )
        self.position.build(self)

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        if given.get("reverse"):
            check_positions(given.get("inputs"), "inputs", self, ndim=3)
        else:
            check_ids(given.get("inputs"), "inputs", self, self.vocab_size)
            check_kept(given.get("kept"), given.get("inputs"), self)
        start: Any = given.get("start")
        # Keras would convert a NumPy integer to a tensor, whose value is unknown in a graph.
        return {"start": int(start)} if is_integer(start) else {}

    def call(  # noqa: D102
        self,
        inputs: Any,
        start: Tensor = 0,
        reverse: bool = False,
        training: bool | None = None,
        places: Tensor | None = None,
        zero_start: bool = False,
        kept: Tensor | None = None,
    ) -> Tensor:
        if reverse:
            return self.project(inputs)
        x = self.look_up(inputs) * self.scale  # [B, T, D]
        if zero_start:
            x = x * self._after_start(inputs, start, places)
        if kept is not None:
            x = x * ops.expand_dims(ops.cast(kept, self.compute_dtype), -1)
        position = self.position.embed(self, start, inputs)  # [T, D] or [B, T, D]
        if places is not None and position is not None:
            rows = ops.take(position, places, axis=0)  # [B, T, D]
            position = rows_or_nan(rows, places, ops.shape(inputs)[1])
        return self.dropout(x if position is None else x + position, training=training)

    def _after_start(self, inputs, start, places):
        """Returns 0 at position 0 and 1 elsewhere, `[T, 1]` or `[B, T, 1]`."""
        if places is None:
            places = token_places(start, ops.shape(inputs)[1])  # [T] or [B, T]
        return ops.expand_dims(ops.cast(ops.not_equal(places, 0), self.compute_dtype), -1)

    def project(self, x: Tensor) -> Tensor:
        """Returns the logits `[B, T, V]` of hidden states `[B, T, D]`."""
        return self.kernels.project(self.table, ops.cast(x, self.compute_dtype))

    def look_up(self, tokens: Tensor) -> Tensor:
        """Returns the rows of the table `[B, T, D]` for token ids `[B, T]`, without scaling."""
        return ops.cast(self.kernels.look_up(self.table, tokens), self.compute_dtype)

    def compute_output_shape(self, inputs_shape: Shape) -> Shape:  # noqa: D102
        last = self.vocab_size if len(inputs_shape) == 3 else self.d_model  # hidden states or ids
        return (*inputs_shape[:2], last)

    def compute_mask(self, inputs: Any, previous_mask: Tensor | None = None) -> Tensor | None:  # noqa: D102
        if self.pad_id is None or len(inputs.shape) == 3:  # hidden states
            return previous_mask
        real = ops.not_equal(inputs, self.pad_id)  # [B, T]
        return real if previous_mask is None else ops.logical_and(real, previous_mask)

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "scale": self.scale,
            "max_length": self.max_length,
            "pad_id": self.pad_id,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class OutputBias(keras.Layer):
    """Adds a bias to logits, in the dtype of the logits.

    Differs from the paper, whose output layer has no bias, with tied weights or without.

    Call arguments:
        logits: `[B, T, V]`.
    """

    def build(self, logits_shape) -> None:  # noqa: D102
        shape = (logits_shape[-1],)
        self.bias = self.add_weight(shape=shape, initializer="zeros", name="bias")

    def call(self, logits) -> Tensor:  # noqa: D102
        return ops.add(logits, self.bias)

    def compute_output_shape(self, logits_shape) -> Shape:  # noqa: D102
        return logits_shape


def _check_pad_id(pad_id, vocab_size):
    """Raises `ValueError` unless `pad_id` is `None` or an id of the vocabulary."""
    if pad_id is not None and not (is_integer(pad_id) and 0 <= pad_id < vocab_size):
        raise ValueError(
            "`pad_id` must be an id of the vocabulary, or None. "
            f"Received: pad_id={pad_id!r}, vocab_size={vocab_size}."
        )
