"""Token embeddings, positions and the tied output weights (sections 3.4 and 3.5)."""

import functools
import math
import typing

import keras
import numpy as np
from keras import ops

from keras_transformer.checks import check_choice, check_count, check_rate, is_integer
from keras_transformer.config import Position
from keras_transformer.layers.call_checks import check_ids, check_positions
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.dropout import Dropout


@functools.lru_cache(maxsize=16)
def sinusoids(length, d_model):
    """Returns the sinusoidal positions `0 .. length - 1`.

    `PE(pos, 2i) = sin(pos / 10000^(2i / d_model))`, `PE(pos, 2i + 1)` the cosine of the same angle.

    Computed in float64: in float32 the angle itself is off by 3e-4 at position 5,000, and in
    bfloat16 positions above 256 are no longer distinct.

    Args:
        length: Number of positions.
        d_model: Width of the model, even.

    Returns:
        Read-only NumPy array `[length, d_model]`, float32.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import sinusoids
        >>> np.round(sinusoids(2, 4).astype("float64"), 3).tolist()
        [[0.0, 1.0, 0.0, 1.0], [0.841, 0.54, 0.01, 1.0]]

    Reference: Vaswani et al. (2017), section 3.5.
    """
    position = np.arange(length, dtype=np.float64)[:, None]  # [T, 1]
    rate = 10_000.0 ** (-np.arange(0, d_model, 2, dtype=np.float64) / d_model)  # [D / 2]
    table = np.empty((length, d_model), np.float32)
    table[:, 0::2] = np.sin(position * rate)
    table[:, 1::2] = np.cos(position * rate)
    table.setflags(write=False)  # shared through the cache
    return table


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionalEmbedding(CompositeLayer):
    """Token embedding scaled by `sqrt(d_model)`, plus the position, with dropout on the sum.

    Called with `reverse=True`, the same matrix turns hidden states into logits (section 3.4).

    Args:
        vocab_size: Number of tokens V.
        d_model: Width of the model, in features.
        position: `"sinusoidal"`, `"learned"` or `"none"`.
        max_length: Positions of the learned table, and of the sinusoidal one where the length of
            the input is not known when the graph is built.
        dropout: Rate on the sum of embedding and position (section 5.4).
        pad_id: Id of padding, for which the output gets a mask as from
            `keras.layers.Embedding(mask_zero=True)`. `None`: it gets none.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        inputs: Token ids `[B, T]`, integer; with `reverse`, hidden states `[B, T, D]`.
        start: Position of the first token, counting from 0.
        reverse: Whether to map hidden states to logits.
        training: Whether dropout is active.

    Returns:
        `[B, T, D]`; with `reverse`, logits `[B, T, V]`.

    Raises:
        ValueError: If `position` is unknown, or `d_model` is odd and positions are sinusoidal, or
            there are more tokens than learned positions.

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
        vocab_size,
        d_model,
        position="sinusoidal",
        max_length=512,
        dropout=0.0,
        pad_id=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # ids that arrive as floats would be rounded
        for name, value in (
            ("vocab_size", vocab_size),
            ("d_model", d_model),
            ("max_length", max_length),
        ):
            check_count(name, value)
        check_choice("position", position, typing.get_args(Position))
        check_rate("dropout", dropout)
        _check_pad_id(pad_id, vocab_size)
        if position == "sinusoidal" and d_model % 2:
            raise ValueError(
                "`d_model` must be even for sinusoidal positions, which come in pairs of sine "
                f"and cosine. Received: d_model={d_model}."
            )
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.position = position
        self.max_length = max_length
        self.dropout_rate = dropout
        self.pad_id = pad_id
        self.widths = {"inputs": d_model}  # of hidden states
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, inputs_shape=None):  # noqa: D102
        # Variance 1 / d_model: after the scaling embeddings have variance 1, and so have logits.
        normal = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        self.table = self.add_weight(
            shape=(self.vocab_size, self.d_model),
            initializer=normal,
            autocast=False,  # rows are cast, not the table
            name="table",
        )
        if self.position == "learned":
            self.positions = self.add_weight(
                shape=(self.max_length, self.d_model), initializer=normal, name="positions"
            )

    def checked_arguments(self, given):  # noqa: D102
        if given.get("reverse"):
            check_positions(given.get("inputs"), "inputs", self, ndim=3)
        else:
            check_ids(given.get("inputs"), "inputs", self)
        return {}

    def call(self, inputs, start=0, reverse=False, training=None):  # noqa: D102
        if reverse:
            return self.project(inputs)
        x = self.look_up(inputs) * math.sqrt(self.d_model)  # [B, T, D]
        if self.position != "none":
            x = x + self._positions(start, inputs)
        return self.dropout(x, training=training)

    def project(self, x):
        """Returns the logits `[B, T, V]` of hidden states `[B, T, D]`."""
        # One matrix product over all positions. With the batch as an axis of its own the gradient
        # of the table is a [B, V, D] tensor first: 40 % of a training step of a small model.
        batch, length = ops.shape(x)[:2]
        flat = ops.reshape(x, (-1, self.d_model))  # [B * T, D]
        table = ops.cast(self.table, self.compute_dtype)
        logits = ops.matmul(ops.cast(flat, table.dtype), ops.transpose(table))  # [B * T, V]
        return ops.reshape(logits, (batch, length, self.vocab_size))  # [B, T, V]

    def look_up(self, tokens):
        """Returns the rows of the table for token ids `[B, T]`: `[B, T, D]`."""
        # TensorFlow's gradient of a look-up is a list of rows, in which a token that occurs twice
        # has two; Keras's optimizers square them one by one. That of a reshape is a whole table.
        table = ops.reshape(ops.convert_to_tensor(self.table), (self.vocab_size, self.d_model))
        rows = ops.take(table, ops.cast(tokens, "int32"), axis=0)
        return ops.cast(rows, self.compute_dtype)

    def _positions(self, start, tokens):
        known = tokens.shape[1] + start if isinstance(start, int) and tokens.shape[1] else None
        if self.position == "learned":
            if known is not None and known > self.max_length:
                raise ValueError(
                    "`max_length` learned positions must cover the input. "
                    f"Received: max_length={self.max_length}, {known} positions."
                )
            table = self.positions
        else:  # the formula has no end: a longer table where the length is known
            table = sinusoids(max(self.max_length, known or 0), self.d_model)
        table = ops.cast(table, self.compute_dtype)
        return ops.slice(table, (start, 0), (ops.shape(tokens)[1], self.d_model))  # [T, D]

    def compute_output_spec(self, inputs, start=0, reverse=False, training=None):  # noqa: D102
        last = self.vocab_size if reverse else self.d_model
        return keras.KerasTensor((*inputs.shape[:2], last), dtype=self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):  # noqa: D102
        if self.pad_id is None or len(inputs.shape) == 3:  # hidden states
            return previous_mask
        real = ops.not_equal(inputs, self.pad_id)  # [B, T]
        return real if previous_mask is None else ops.logical_and(real, previous_mask)

    def get_config(self):  # noqa: D102
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "d_model": self.d_model,
            "position": self.position,
            "max_length": self.max_length,
            "dropout": self.dropout_rate,
            "pad_id": self.pad_id,
        }


def _check_pad_id(pad_id, vocab_size):
    """Refuses what is neither `None` nor an id of the vocabulary."""
    if pad_id is not None and not (is_integer(pad_id) and 0 <= pad_id < vocab_size):
        raise ValueError(
            "`pad_id` must be an id of the vocabulary, or None. "
            f"Received: pad_id={pad_id!r}, vocab_size={vocab_size}."
        )
