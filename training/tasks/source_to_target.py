"""Training of translation (section 5) and of other tasks with pairs of texts."""

from typing import Any

import tensorflow as tf

from keras_transformer.fields import Tokens
from keras_transformer.fields.distributions import RankedProbabilities, RankedTokens
from keras_transformer.fields.field import Field
from keras_transformer.tensors import Tensor
from keras_transformer.training.data.distributions import Distributions, pair_keys
from keras_transformer.training.losses.teacher import PROBABILITIES, TOKENS
from keras_transformer.training.tasks.task import TextTraining, Training

KEY = "teacher_key"


class SourceToTargetTraining(TextTraining):
    """Training on pairs of texts with the smoothed cross-entropy of the target's tokens.

    A batch is ({"source": [B, S], "target": [B, T]}, labels [B, T]), all int32. A row of `target`
    begins with `bos_id`. A row of `labels` is the same sentence, shifted left by one, and ends in
    `eos_id`.
    """

    @property
    def fields(self) -> dict[str, Field]:  # noqa: D102
        return {"source": Tokens(self.tokenizers.source), "target": Tokens(self.tokenizers.target)}

    def of_train_split(self, settings: Any) -> Training:  # noqa: D102
        folder = getattr(settings, "train_distributions", None)
        if folder is None:
            return self
        return WordLevelTraining(self.tokenizers, self.config, Distributions(folder))

    def assemble(self, source, target) -> tuple:  # noqa: D102
        return {"source": source, "target": self.shifted(target)}, target


class WordLevelTraining(SourceToTargetTraining):
    """Training on pairs of texts with the predictions of teachers for the target's tokens.

    The inputs of a batch also have `teacher_tokens`, int32 `[B, T, K]`, and
    `teacher_probabilities`, float32 `[B, T, K]`, for the loss; the model does not read them.

    Args:
        tokenizers, config: See `Training`.
        distributions: The `Distributions` of the training split.

    Raises:
        ValueError: If the teachers have another vocabulary.
    """

    columns = ("source", "target", KEY, TOKENS, PROBABILITIES)

    def __init__(self, tokenizers: Any, config: Any, distributions: Distributions):
        super().__init__(tokenizers, config)
        distributions.check(self.tokenizers.target)
        self.distributions = distributions

    @property
    def fields(self) -> dict[str, Field]:  # noqa: D102
        k, size = self.distributions.k, self.distributions.vocab_size
        return {
            **super().fields,
            TOKENS: RankedTokens(k, size),
            PROBABILITIES: RankedProbabilities(k),
        }

    def identity(self) -> dict[str, Any]:  # noqa: D102
        return {**super().identity(), "distributions": self.distributions.fingerprint}

    def rows(self, data: Any, split: str, settings: Any) -> tf.data.Dataset:  # noqa: D102
        count = data.count(split)
        if count != self.distributions.rows:
            raise ValueError(
                f"{self.distributions.folder} has predictions for {self.distributions.rows:,} "
                f"pairs, but the training split has {count:,}: repeat `distill`."
            )
        rows = tf.data.Dataset.zip(
            (super().rows(data, split, settings), self.distributions.dataset())
        )
        return rows.map(lambda pair, predictions: (*pair, *predictions))

    def encode(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Encodes a batch; predictions for other pairs become invalid, negative tokens."""
        encoded = super().encode(columns)
        tokens, lengths = encoded[TOKENS], encoded["target"].row_lengths()
        same = tf.equal(columns[KEY], pair_keys(columns["source"], columns["target"]))
        same &= tf.equal(tokens.row_lengths(), lengths)
        same &= tf.equal(encoded[PROBABILITIES].row_lengths(), lengths)
        ids = tf.cast(tokens.flat_values, tf.int32)
        ids = tf.where(tf.repeat(same, tokens.row_lengths())[:, None], ids, -1)
        return {**encoded, TOKENS: tokens.with_flat_values(ids)}

    def assemble(self, source, target, teacher_tokens, teacher_probabilities) -> tuple:  # noqa: D102
        inputs, labels = super().assemble(source, target)
        return {**inputs, TOKENS: teacher_tokens, PROBABILITIES: teacher_probabilities}, labels
