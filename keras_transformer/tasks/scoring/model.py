"""Scores of pairs of texts: an encoder that reads both, pooling, and one logit."""

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.labels import PooledLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.scoring.config import PairScorerConfig


class ScoreLogit(PooledLogits):
    """Pooling over the encoder's output and a linear map to one logit."""

    def units(self, config) -> int:  # noqa: D102
        return 1


@keras.saving.register_keras_serializable(package="keras_transformer")
class PairScorer(EncoderModel):
    """The encoder of Fig. 1 with one logit for a pair of texts, which it reads as one row.

    Args:
        config: A `PairScorerConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer: `bos_id`, query, `eos_id`, passage, `eos_id`, padding;
            or the other order of `pair_layout`.

    Returns:
        Logits `[B, 1]`; float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import PairScorer, PairScorerConfig
        >>> model = PairScorer(PairScorerConfig.preset("tiny", vocab_size=100))
        >>> model(np.array([[2, 7, 3, 8, 9, 3]])).shape
        TensorShape([1, 1])

    Differs from the paper, which scores no pairs; the blocks, their dropout and the embedding are
    those of the paper (sections 3.1, 3.4, 3.5 and 5.4).

    Reference: Nogueira and Cho (2019), Passage Re-ranking with BERT, section 3.
    """

    config_class = PairScorerConfig
    input_class, head_class = EmbeddedTokens, ScoreLogit
    default_name = "pair_scorer"
