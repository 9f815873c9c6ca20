"""Predictors of one model: `predictor_of`, their base class, and the entries of their caches."""

import typing
from typing import Any

from keras_transformer.checks import is_integer, require_tensorflow
from keras_transformer.decoding.predictor import Predictor, Vocabulary, count_tokens, pick
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.models.parts import stacks_of
from keras_transformer.tensors import Tensor


class Entries(typing.NamedTuple):
    """Entries of a cache that each hypothesis attends to: its own and those of its ancestors.

    Keys and values do not move in the cache when hypotheses are reordered; only these masks do. A
    cache has slots of N entries, and each step fills one slot.

    Attributes:
        visible: Boolean `[B, N, C]`, `True` where a hypothesis attends to one of the C entries.
            `()` for N = 1, where every hypothesis attends to all earlier positions.
        shift: Number of the slot that a position fills, minus the number of the position: an
            int32 scalar. `()` stands for 0, as long as no entries have been dropped.
    """

    visible: typing.Any
    shift: typing.Any = ()

    @classmethod
    def none_yet(cls, batch, length, width) -> "Entries":
        """Returns the entries of L positions of N hypotheses, none of them computed yet."""
        return cls(() if width == 1 else tf.zeros([batch, width, length * width], tf.bool))

    def slot(self, index) -> Tensor | None:
        """Returns the number of the slot that position `index` fills; `None` if it is `index`."""
        return None if isinstance(self.shift, tuple) else index + self.shift

    def slots(self, index) -> dict[str, Tensor]:
        """Returns the argument `slot` of a model's `step`; none if it is `index`."""
        slot = self.slot(index)
        return {} if slot is None else {"slot": slot}

    def with_position(self, index) -> "Entries":
        """Returns the entries with position `index` added: each hypothesis attends to its own."""
        if self._is_single:
            return self
        slot = self.slot(index)
        own = (index if slot is None else slot) * self.width + tf.range(self.width)  # [N]
        own = tf.equal(tf.range(_count(self.visible)), tf.expand_dims(own, 1))  # [N, C]
        return self._replace(visible=tf.logical_or(self.visible, own))

    def of_parents(self, parents) -> "Entries":
        """Returns the entries of reordered hypotheses: see `Predictor.follow`."""
        return self._replace(visible=pick(self.visible, parents))

    def extended(self, length) -> "Entries":
        """Returns the entries with `length` further slots, none of them computed yet."""
        if self._is_single:
            return self
        more = [[0, 0], [0, 0], [0, length * self.width]]
        return self._replace(visible=tf.pad(self.visible, more))

    def compacted(self, past, length, index) -> tuple["Entries", Tensor]:
        """Returns the entries in use in `past` slots, with `length` empty slots after them.

        Where more are in use, the later ones are dropped.

        Args:
            past: Number of slots P; a Python integer if the shapes must be known.
            length: Number of further slots R.
            index: Number of the position that will fill the first empty slot.

        Returns:
            The new entries, and the numbers of the old entries that fill the P slots, int32
            `[B, P * N]`, arbitrary where there are fewer.
        """
        count, room = _count(self.visible), past * self.width
        places = tf.range(count)  # [C]
        order = tf.where(self.used, -places, -count)  # [B, C]
        missing = max(room - count, 0) if is_integer(room) and is_integer(count) else 0
        _, chosen = tf.math.top_k(order, room - missing)  # [B, P * N], the used entries first
        visible = tf.gather(self.visible, chosen, axis=2, batch_dims=1)  # [B, N, P * N]
        visible = tf.pad(visible, [[0, 0], [0, 0], [0, missing + length * self.width]])
        chosen = tf.pad(chosen, [[0, 0], [0, missing]])
        return Entries(visible, tf.cast(past - index, tf.int32)), chosen

    def recalled(self, count) -> "Entries":
        """Returns the entries with the first `count` positions, those of the first hypothesis."""
        if self._is_single:
            return self
        entries = tf.range(_count(self.visible))  # [C]
        read = tf.equal(entries % self.width, 0) & (entries < count * self.width)
        return self._replace(visible=tf.logical_or(self.visible, read))

    def attention_mask(self) -> Tensor | None:
        """Returns the mask `[B, N, C]` for `MultiHeadSelfAttention.step`; `None` for N = 1."""
        return None if self._is_single else self.visible

    @property
    def used(self) -> Tensor:
        """Which entries any hypothesis of a sentence attends to, boolean `[B, C]`."""
        return tf.reduce_any(self.visible, axis=1)

    @property
    def width(self) -> int:
        """Number N of hypotheses; 1 for a state, which has no positions."""
        return 1 if self._is_single else self.visible.shape[1]

    @property
    def _is_single(self):
        return isinstance(self.visible, tuple)


def _count(visible):
    """Returns the number of entries C, a Python integer if it is known."""
    return tf.shape(visible)[2] if visible.shape[2] is None else visible.shape[2]


class ModelPredictor(Predictor):
    """Base class of the predictors of one model, whose state has a `cache` and `entries`.

    `predictor_of` chooses the subclass whose `stacks` match the model.

    Attributes:
        stacks: The stacks that the model must have, see `stacks_of`.
        example: Name of a class of models with these stacks.
        moves_cache: `True` if reordering hypotheses moves the content of the cache, namely the
            states of a mixer such as an SSRU. Keys and values do not move, see `Entries`.
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
        histories = (block.history() for block in model.decoder.blocks)
        # A subclass with a state of its own may extend it, and does not know of `compact`.
        kind = type(self)
        knows = kind.extend is ModelPredictor.extend or kind.compact is not ModelPredictor.compact
        reads = (getattr(history, "reads_places", True) for history in histories)
        self.compacts = self.grows and knows and not any(reads)

    def places(self, width: int) -> int:
        """Returns the number of hypotheses that `Entries` distinguish; 1 if the cache moves."""
        return 1 if self.moves_cache else width

    def lengths(self, inputs: Any) -> Tensor:  # noqa: D102
        return count_tokens(inputs, self.vocabulary.pad_id)

    def recall(self, state: Any, reading: Any, count: Tensor, unread: Tensor) -> Any:  # noqa: D102
        width = state.entries.width
        cache = self.model.decoder.recalled_cache(state.cache, reading, unread, width)
        return state._replace(cache=cache, entries=state.entries.recalled(count))

    def extend(self, state: Any, length: int) -> Any:  # noqa: D102
        cache = self.model.decoder.extended_cache(state.cache, length, state.entries.width)
        return state._replace(cache=cache, entries=state.entries.extended(length))

    def count_used(self, state: Any) -> Tensor:  # noqa: D102
        return tf.reduce_sum(tf.cast(state.entries.used, tf.int32), axis=1)

    def compact(self, state: Any, past: Any, length: int, index: Tensor) -> Any:  # noqa: D102
        entries, chosen = state.entries.compacted(past, length, index)
        cache = self.model.decoder.compacted_cache(state.cache, chosen, length, entries.width)
        return state._replace(cache=cache, entries=entries)

    def follow(self, state: Any, parents: Tensor) -> Any:  # noqa: D102
        if self.moves_cache:  # one state of fixed size for each hypothesis
            return state._replace(cache=pick(state.cache, parents))
        return state._replace(entries=state.entries.of_parents(parents))


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
