"""Training of sentence embeddings."""

import keras

from keras_transformer.training.losses.contrastive import ContrastiveLoss
from keras_transformer.training.tasks.text_pairs import TextPairsTraining


class EmbeddingTraining(TextPairsTraining):
    """Training of vectors of texts with the contrastive loss of their pairs."""

    purpose = "embedding"

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        self.check_devices()
        return ContrastiveLoss(self.config.head.scale, self.config.head.symmetric)
