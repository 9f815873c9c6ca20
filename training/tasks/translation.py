"""Training of translation (section 5) and of other tasks with pairs of texts."""

import keras

from keras_transformer.fields import Tokens
from keras_transformer.fields.field import Field
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tasks.task import TextTraining


class TranslationTraining(TextTraining):
    """Training on pairs of texts with the smoothed cross-entropy of the target's tokens.

    A batch is ({"source": [B, S], "target": [B, T]}, labels [B, T]), all int32. A row of `target`
    begins with `bos_id`. A row of `labels` is the same sentence, shifted left by one, and ends in
    `eos_id`.
    """

    @property
    def fields(self) -> dict[str, Field]:  # noqa: D102
        return {"source": Tokens(self.tokenizers.source), "target": Tokens(self.tokenizers.target)}

    def assemble(self, source, target) -> tuple:  # noqa: D102
        return {"source": source, "target": self.shifted(target)}, target

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        return LabelSmoothedCrossEntropy(settings.label_smoothing, self.pad_id)
