"""The training of translation (section 5), and of whatever else has pairs of texts."""

from keras_transformer.fields import Tokens
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tasks.task import TextTraining


class TranslationTraining(TextTraining):
    """Pairs of texts; the loss is the smoothed cross-entropy of the target's tokens.

    A batch is ({"source": [B, S], "target": [B, T]}, labels [B, T]), all int32, S = T. A row of
    `target` begins with the id that begins sentences, a row of `labels` is the same sentence one to
    the left and ends in the one that ends them.
    """

    @property
    def fields(self):  # noqa: D102
        return {"source": Tokens(self.tokenizers.source), "target": Tokens(self.tokenizers.target)}

    def assemble(self, source, target):  # noqa: D102
        return {"source": source, "target": self.shifted(target)}, target

    def loss(self, settings):  # noqa: D102
        return LabelSmoothedCrossEntropy(settings.label_smoothing, self.pad_id)
