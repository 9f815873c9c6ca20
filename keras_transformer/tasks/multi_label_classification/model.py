"""Classification with several labels: an encoder, pooling over the tokens, a logit per label."""

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.labels import LabelLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.multi_label_classification.config import MultiLabelClassifierConfig


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiLabelClassifier(EncoderModel):
    """The encoder of Fig. 1 with a logit for each label over its pooled output.

    The sigmoid of a logit is the probability that a text has the label, whatever others it has.

    Args:
        config: A `MultiLabelClassifierConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer, each text ending in `eos_id` and then padding.

    Returns:
        Logits `[B, C]`, one for each of `config.head.labels`;
        float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import MultiLabelClassifier, MultiLabelClassifierConfig
        >>> labels = ("sports", "politics", "science")
        >>> config = MultiLabelClassifierConfig.preset("tiny", vocab_size=100, labels=labels)
        >>> MultiLabelClassifier(config)(np.ones((2, 7), "int32")).shape
        TensorShape([2, 3])

    Differs from the paper, which has no classifier; the blocks, their dropout and the embedding are
    those of the paper (sections 3.1, 3.4, 3.5 and 5.4).
    """

    config_class = MultiLabelClassifierConfig
    input_class, head_class = EmbeddedTokens, LabelLogits
    default_name = "multi_label_classifier"
