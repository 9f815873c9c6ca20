"""Training of sparse vectors of texts."""

import keras

from keras_transformer.training.losses.flops import SparseContrastiveLoss
from keras_transformer.training.tasks.text_pairs import TextPairsTraining


class SparseEmbeddingTraining(TextPairsTraining):
    """Training of sparse vectors with a contrastive loss of pairs and the FLOPS regulariser."""

    purpose = "sparse_embedding"

    def loss(self, settings) -> keras.Loss:  # noqa: D102
        self.check_devices()
        head = self.config.head
        return SparseContrastiveLoss(
            head.query_flops,
            head.text_flops,
            head.flops_updates or max(1, settings.updates // 3),
            scale=head.scale,
            symmetric=head.symmetric,
        )
