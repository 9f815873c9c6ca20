"""Extractive question answering: predicts the first and last token of the answer in a passage."""

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.tasks.question_answering.config import SpanPredictorConfig
from keras_transformer.tasks.question_answering.head import SpanLogits


@keras.saving.register_keras_serializable(package="keras_transformer")
class SpanPredictor(EncoderModel):
    """The encoder of Fig. 1 with a linear layer that predicts begin and end of an answer.

    Args:
        config: A `SpanPredictorConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Token ids `[B, S]`, integer: question, `bos_id`, passage, `eos_id`, padding; or the
            other order of `pair_layout`.

    Returns:
        Logits `[B, S, 2]` of the first and the last token of the answer; the position of `bos_id`
        stands for "no answer in the passage". Logits are -1e9 in the question and from `eos_id` on.
        Float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import SpanPredictor, SpanPredictorConfig
        >>> model = SpanPredictor(SpanPredictorConfig.preset("tiny", vocab_size=100))
        >>> tokens = np.array([[7, 2, 8, 9, 3]])  # a question of one token, a passage of two
        >>> (model(tokens).numpy()[0, :, 0] > -1e9).tolist()
        [False, True, True, True, False]

    Differs from the paper, which has no question answering; the blocks, their dropout and the
    embedding are as in the paper (sections 3.1, 3.4, 3.5 and 5.4).

    Reference: Devlin et al. (2019), sections 4.2 and 4.3, where the first token of the input has
    the role of `bos_id`.
    """

    config_class = SpanPredictorConfig
    input_class, head_class = EmbeddedTokens, SpanLogits
    default_name = "span_predictor"
