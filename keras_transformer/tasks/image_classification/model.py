"""Image classification: patches, an encoder, pooling over the patches and a linear classifier."""

import keras

from keras_transformer.config import ImageClassifierConfig
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.labels import ImageLabelLogits
from keras_transformer.tasks.image_classification.input import EmbeddedPatches


@keras.saving.register_keras_serializable(package="keras_transformer")
class ImageClassifier(EncoderModel):
    """The encoder of Fig. 1 over the patches of an image, with a linear classifier.

    Args:
        config: An `ImageClassifierConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Pixels from 0 to 255, floating, `[B, image_height, image_width, channels]`.

    Returns:
        Logits `[B, C]`, one for each of `config.labels`; float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import ImageClassifier, ImageClassifierConfig
        >>> config = ImageClassifierConfig.preset("tiny", labels=("cat", "dog"), image_height=8,
        ...     image_width=8, patch_size=4)
        >>> ImageClassifier(config)(np.zeros((2, 8, 8, 3), "float32")).shape
        TensorShape([2, 2])

    Differs from the paper, which has no images. Differs from the Vision Transformer: by default,
    positions are sinusoids of row and column, and, as in the paper, normalisation follows each
    sublayer.

    Reference: Dosovitskiy et al. (2021), "An Image is Worth 16x16 Words", Eq. 1 to 4.
    """

    config_class = ImageClassifierConfig
    input_class, head_class = EmbeddedPatches, ImageLabelLogits
    default_name = "image_classifier"
