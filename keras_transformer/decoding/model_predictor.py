"""Predictors of one model: `predictor_of`, their base class, and the indices into their caches."""

import typing
from typing import Any

from keras_transformer.checks import require_tensorflow
from keras_transformer.decoding.predictor import Predictor, Vocabulary, count_tokens, pick
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.models.parts import stacks_of
from keras_transformer.tensors import Tensor


class Ancestors(typing.NamedTuple):
    """Indices of the cache entries of each hypothesis.

    Keys and values never move in the cache. When hypotheses are reordered, only L integers of each
    hypothesis move.

    Attributes:
        places: `[B, N, L]`: for position `l` of hypothesis `n`, the beam index from 0 to N - 1
            under which its key and value were cached; -1 for a position not computed yet. `()` for
            N = 1, where the index is always 0.
    """

    places: typing.Any

    @classmethod
    def none_yet(cls, batch, length, width) -> "Ancestors":
        """Returns ancestors for L positions of N hypotheses, none of them computed yet."""
        return cls(() if width == 1 else tf.fill([batch, width, length], -1))

    def with_position(self, index) -> "Ancestors":
        """Returns ancestors with position `index` added: each hypothesis caches its own entry."""
        if self._is_single:
            return self
        width, length = self.places.shape[1], tf.shape(self.places)[2]
        here = tf.equal(tf.range(length), index)  # [L]
        return Ancestors(tf.where(here, tf.expand_dims(tf.range(width), 1), self.places))

    def extended(self, length) -> "Ancestors":
        """Returns ancestors with `length` further positions, none of them computed yet."""
        if self._is_single:
            return self
        return Ancestors(tf.pad(self.places, [[0, 0], [0, 0], [0, length]], constant_values=-1))

    def recalled(self, count) -> "Ancestors":
        """Returns ancestors whose first `count` positions are those of the first hypothesis."""
        if self._is_single:
            return self
        read = tf.range(tf.shape(self.places)[2]) < count  # [L]
        return Ancestors(tf.where(read, 0, self.places))

    def attention_mask(self) -> Tensor | None:
        """Returns the mask `[B, N, L * N]` for `MultiHeadSelfAttention.step`; `None` for N = 1."""
        if self._is_single:
            return None
        width, length = self.places.shape[1:]
        attention_mask = tf.equal(tf.expand_dims(self.places, 3), tf.range(width))  # [B, N, L, N]
        if not length:  # it is not known, or there are no positions yet
            batch, _, length = tf.unstack(tf.shape(self.places))
            return tf.reshape(attention_mask, [batch, width, length * width])
        return tf.reshape(attention_mask, [-1, width, length * width])

    @property
    def width(self) -> int:
        """Number N of hypotheses; 1 for a state, which has no positions."""
        return 1 if self._is_single else self.places.shape[1]

    @property
    def _is_single(self):
        return isinstance(self.places, tuple)


class ModelPredictor(Predictor):
    """Base class of the predictors of one model, whose state has a `cache` and `ancestors`.

    `predictor_of` chooses the subclass whose `stacks` match the model.

    Attributes:
        stacks: The stacks that the model must have, see `stacks_of`.
        example: Name of a class of models with these stacks.
        moves_cache: `True` if reordering hypotheses moves the content of the cache, namely the
            states of a mixer such as an SSRU. Keys and values do not move, see `Ancestors`.
    """

    stacks = ()
    example = ""
    kinds = {}

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        ModelPredictor.kinds.setdefault(cls.stacks, cls)

    def __init__(self, model: Any):
        if stacks_of(model) != self.stacks:
            raise TypeError(
                f"`model` must be a {self.example}. Received: model of type {type(model).__name__}."
            )
        super().__init__(Vocabulary.of(model.config), model.config.max_length)
        self.model = model
        self.log_sum_exp = model.kernels.log_sum_exp
        self.moves_cache = model.config.decoder.has_state
        self.grows = not self.moves_cache

    def places(self, width: int) -> int:
        """Returns the number of hypotheses that `Ancestors` distinguish; 1 if the cache moves."""
        return 1 if self.moves_cache else width

    def lengths(self, inputs: Any) -> Tensor:  # noqa: D102
        return count_tokens(inputs, self.vocabulary.pad_id)

    def recall(self, state: Any, reading: Any, count: Tensor, unread: Tensor) -> Any:  # noqa: D102
        width = state.ancestors.width
        cache = self.model.decoder.recalled_cache(state.cache, reading, unread, width)
        return state._replace(cache=cache, ancestors=state.ancestors.recalled(count))

    def extend(self, state: Any, length: int) -> Any:  # noqa: D102
        cache = self.model.decoder.extended_cache(state.cache, length, state.ancestors.width)
        return state._replace(cache=cache, ancestors=state.ancestors.extended(length))

    def follow(self, state: Any, parents: Tensor) -> Any:  # noqa: D102
        if self.moves_cache:  # one state of fixed size for each hypothesis
            return state._replace(cache=pick(state.cache, parents))
        return state._replace(ancestors=super().follow(state.ancestors, parents))


def predictor_of(model, alignment=None) -> Predictor:
    """Returns the predictor of a model; a predictor is returned as it is.

    Args:
        model: A model with a decoder, or an object with a method `predictor`, such as a
            `Predictor`.
        alignment: Layer and head whose attention to the source each step returns as its weights:
            see `EncoderDecoder`.

    Raises:
        TypeError: If `model` is neither a model with a decoder nor an object with that method.
        ValueError: If the model or predictor does not have this layer and head.
    """
    require_tensorflow("searches")
    if hasattr(model, "predictor"):
        return model.predictor(alignment)
    kinds = ModelPredictor.kinds
    if stacks_of(model) not in kinds:
        names = ", ".join(sorted(kind.example for kind in kinds.values()))
        raise TypeError(
            f"`model` must be one of {names}, or a predictor, such as an Ensemble. "
            f"Received: model of type {type(model).__name__}.{_remedy(model)}"
        )
    return kinds[stacks_of(model)](model, alignment)


def _remedy(model):
    """Returns a sentence for a plain functional model, such as a clone of one of ours."""
    if type(model).__name__ != "Functional":
        return ""
    return (
        " `keras.models.clone_model` returns a plain functional model: copy a model with "
        "`copy = type(model).from_config(model.get_config())` and "
        "`copy.set_weights(model.get_weights())`."
    )
