"""Predictors of one model: `predictor_of` and their base class."""

from typing import Any

from keras_transformer.checks import require_tensorflow
from keras_transformer.decoding.predictor import Predictor, Vocabulary, count_tokens, pick
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.models.parts import stacks_of
from keras_transformer.tensors import Tensor


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
