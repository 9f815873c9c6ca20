"""A question and a passage to the first and the last token of the answer."""

import keras

from keras_transformer.config import SpanPredictorConfig
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.spans import SpanLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens


@keras.saving.register_keras_serializable(package="keras_transformer")
class SpanPredictor(EncoderModel):
    """The encoder of Fig. 1 with a linear map to the begin and the end of an answer.

    Args:
        config: A `SpanPredictorConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` that the layers compute with; a file does not keep them.

    Call arguments:
        inputs: Token ids `[B, S]`, integer: those of a question, `bos_id`, those of a passage,
            `eos_id`; padding comes after it.

    Returns:
        Logits `[B, S, 2]` of the first and the last token of the answer, both those of `bos_id` if
        the passage does not hold it; -1e9 in the question and from `eos_id` on; float32 under the
        mixed policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import SpanPredictor, SpanPredictorConfig
        >>> model = SpanPredictor(SpanPredictorConfig.preset("tiny", vocab_size=100))
        >>> tokens = np.array([[7, 2, 8, 9, 3]])  # a question of one token, a passage of two
        >>> (model(tokens).numpy()[0, :, 0] > -1e9).tolist()
        [False, True, True, True, False]

    Differs from the paper: it has no answers; the blocks, their dropout and the embedding are the
    paper's (sections 3.1, 3.4, 3.5 and 5.4).

    Reference: Devlin et al. (2019), sections 4.2 and 4.3, where the first token is what `bos_id` is
    here.
    """

    config_class = SpanPredictorConfig
    input_class, head_class = EmbeddedTokens, SpanLogits
    default_name = "span_predictor"
