"""The training of a causal language model."""

from keras_transformer.training.data.packing import unpacked
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tasks.task import TextTraining


class LanguageModellingTraining(TextTraining):
    """Texts; the loss is the smoothed cross-entropy of every token, its predecessors given.

    A batch is (tokens [B, T], labels [B, T]), int32: a row of `tokens` begins with the id that
    begins texts, a row of `labels` is the same text one to the left and ends in the one that ends
    them. With packed rows the inputs are what `unpacked` makes of the labels.
    """

    @property
    def texts(self):  # noqa: D102
        return {0: self.tokenizers.target}

    def assemble(self, text):  # noqa: D102
        if self.packed:
            return unpacked(text, self.bos_id, self.eos_id, self.pad_id), text
        return self.shifted(text), text

    def loss(self, settings):  # noqa: D102
        return LabelSmoothedCrossEntropy(settings.label_smoothing, self.pad_id)
