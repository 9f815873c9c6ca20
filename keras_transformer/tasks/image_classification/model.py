"""Image classification: patches, an encoder, pooling over the patches and a linear classifier."""

from typing import Any

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.images import make_image_pooling
from keras_transformer.models.heads.labels import LabelLogits
from keras_transformer.models.inputs.patches import EmbeddedPatches
from keras_transformer.tasks.image_classification.config import ImageClassifierConfig
from keras_transformer.tensors import Tensor


class ImageLabelLogits(LabelLogits):
    """`LabelLogits` of an image, or the mean logits of several classifiers of class tokens."""

    def make_pooling(self, config, policy) -> keras.Layer:  # noqa: D102
        return make_image_pooling(config, policy)

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        layers = super().make_layers(config, policy, kernels)
        for number in range(1, config.head.classifiers):
            name = f"output_{number}"
            dense = keras.layers.Dense(self.units(config), dtype=policy, name=name)
            layers[f"output_layer_{number}"] = dense
        if config.head.classifiers > 1:
            layers["mean"] = keras.layers.Average(dtype=layers["logits"].dtype_policy, name="mean")
        return layers

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        logits = [super().__call__(hidden, inputs, padding_mask)]  # [B, C]
        for number in range(1, self.config.head.classifiers):  # of the other class tokens
            logits.append(self.classified(hidden[:, number], f"output_layer_{number}"))  # [B, C]
        return logits[0] if len(logits) == 1 else self.layers["mean"](logits)


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
        Logits `[B, C]`, one for each of `config.head.labels`;
        float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import ImageClassifier, ImageClassifierConfig
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
