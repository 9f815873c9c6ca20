"""Ensembles: one search over the averaged predictions of several models."""

import math
from collections.abc import Sequence
from typing import Any

from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.predictor import Predictor, Step
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


class Ensemble(Predictor):
    """Predictor that averages the next-token probabilities of several models.

    `log p(y) = log(sum_m p_m(y) / M)` for M models, computed in log space throughout. The models
    read the same inputs and have the same output vocabulary; anything else may differ. If all
    members return attention weights, a step returns their mean.

    Args:
        models: `Transformer`s, `LanguageModel`s or predictors, one or more.
        alignment: Layer and head whose attention the steps return, see `EncoderDecoder`; every
            model must have them. `None`: the weights of members that have weights of their own.

    Raises:
        TypeError: If an item of `models` is neither a model with a decoder nor a predictor.
        ValueError: If there are no models, their vocabularies differ, or the layer or head does
            not exist in one of them.

    Example:
        >>> from keras_transformer import Greedy, Transformer, TransformerConfig
        >>> from keras_transformer.decoding import Ensemble
        >>> config = TransformerConfig.preset("tiny", vocab_size=100)
        >>> both = Ensemble([Transformer(config), Transformer(config)])
        >>> Greedy(max_length=5)(both, [[7, 8, 3]]).tokens.shape
        TensorShape([1, 1, 5])
    """

    def __init__(self, models: Sequence[Any], alignment: tuple[int, int | None] | None = None):
        self.models = tuple(models)
        self.members = [predictor_of(model, alignment) for model in self.models]
        if not self.members:
            raise ValueError("`models` must not be empty. Received: models=().")
        vocabulary, *others = (member.vocabulary for member in self.members)
        for other in others:
            reason = vocabulary.difference(other)
            if reason is not None:
                raise ValueError(
                    f"`models` must have the same output vocabulary. Received: {reason}."
                )
        super().__init__(vocabulary, min(member.max_length for member in self.members))
        self.log_sum_exp = self.members[0].log_sum_exp
        self.has_source = self.members[0].has_source
        self.grows = any(member.grows for member in self.members)
        self.compacts = all(member.compacts for member in self.members)

    def sizes(self, inputs: Any) -> tuple[Tensor, Tensor | None]:  # noqa: D102
        batches, positions = zip(*(member.sizes(inputs) for member in self.members), strict=True)
        return batches[0], None if None in positions else positions[0]

    def lengths(self, inputs: Any) -> Tensor | None:  # noqa: D102
        return self.members[0].lengths(inputs)

    def beginning_lengths(self, inputs: Any) -> Tensor | int:  # noqa: D102
        return self.members[0].beginning_lengths(inputs)

    def begin(self, inputs: Any, length: int, width: int = 1) -> tuple[Any, ...]:  # noqa: D102
        return tuple(member.begin(inputs, length, width) for member in self.members)

    def step(self, tokens: Tensor, state: Any, index: Tensor) -> Step:  # noqa: D102
        steps = [
            member.step(tokens, of_member, index)
            for member, of_member in zip(self.members, state, strict=True)
        ]
        weights = [step.weights for step in steps]
        return Step(
            log_mean([step.logits for step in steps]),
            tuple(step.state for step in steps),
            None if any(value is None for value in weights) else tf.add_n(weights) / len(weights),
        )

    def prompts(self, inputs: Any) -> Tensor | None:  # noqa: D102
        first, *others = (member.prompts(inputs) for member in self.members)
        return None if any(prompts is None for prompts in others) else first

    def no_speech(self, state: Any) -> Tensor | None:  # noqa: D102
        members = zip(self.members, state, strict=True)
        probabilities = [member.no_speech(of_member) for member, of_member in members]
        if any(values is None for values in probabilities):
            return None
        return tf.add_n(probabilities) / len(probabilities)

    def read(self, state: Any, tokens: Tensor, count: Tensor) -> tuple[Any, ...]:  # noqa: D102
        return tuple(
            member.read(of_member, tokens, count)
            for member, of_member in zip(self.members, state, strict=True)
        )

    def recall(  # noqa: D102
        self, state: Any, reading: Any, count: Tensor, unread: Tensor
    ) -> tuple[Any, ...]:
        return tuple(
            member.recall(of_member, read, count, unread)
            for member, of_member, read in zip(self.members, state, reading, strict=True)
        )

    def extend(self, state: Any, length: int) -> tuple[Any, ...]:  # noqa: D102
        return tuple(
            member.extend(of_member, length)
            for member, of_member in zip(self.members, state, strict=True)
        )

    def count_used(self, state: Any) -> Tensor:  # noqa: D102
        counts = [
            member.count_used(of_member)
            for member, of_member in zip(self.members, state, strict=True)
        ]
        return tf.reduce_max(tf.stack(counts), axis=0)  # the same for all members of this package

    def compact(self, state: Any, past: Any, length: int, index: Tensor) -> Any:  # noqa: D102
        return tuple(
            member.compact(of_member, past, length, index)
            for member, of_member in zip(self.members, state, strict=True)
        )

    def follow(self, state: Any, parents: Tensor) -> tuple[Any, ...]:  # noqa: D102
        return tuple(
            member.follow(of_member, parents)
            for member, of_member in zip(self.members, state, strict=True)
        )

    def logits(self, inputs: Any, tokens: Tensor) -> Tensor:  # noqa: D102
        return log_mean([member.logits(inputs, tokens) for member in self.members])

    def label_log_probs(self, inputs: Any) -> tuple[Tensor, Tensor]:  # noqa: D102
        log_probs, padding_mask = zip(
            *(member.label_log_probs(inputs) for member in self.members), strict=True
        )
        return log_mean(log_probs), padding_mask[0]

    def predictor(self, alignment: tuple[int, int | None] | None = None) -> "Ensemble":  # noqa: D102
        return self if alignment is None else Ensemble(self.models, alignment)


def joined(predictors) -> Predictor:
    """Returns the only predictor of a list, or the `Ensemble` of several predictors."""
    return predictors[0] if len(predictors) == 1 else Ensemble(predictors)


def log_mean(logits) -> Tensor:
    """Returns the logarithm of the mean of M distributions, `[..., V]`, float32.

    Args:
        logits: List of M tensors of logits, `[..., V]`.
    """
    log_probs = [tf.nn.log_softmax(tf.cast(values, tf.float32)) for values in logits]
    return tf.reduce_logsumexp(tf.stack(log_probs), axis=0) - math.log(len(log_probs))
