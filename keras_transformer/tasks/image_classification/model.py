"""Image classification: patches, an encoder, pooling over the patches and a linear classifier."""

from typing import Any

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.labels import LabelLogits
from keras_transformer.models.heads.pooling import Pooling
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.positions import Sinusoidal, SinusoidalGrid
from keras_transformer.tasks.image_classification.config import ImageClassifierConfig
from keras_transformer.tasks.image_classification.layers import (
    ClassAndMean,
    PatchEmbedding,
    check_images,
)
from keras_transformer.tensors import Tensor


class EmbeddedPatches(ModelInput):
    """Rescales pixels `[B, height, width, channels]` and embeds their patches."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        stack = config.encoder
        return {
            # Maps 0 .. 255 to -1 .. 1.
            "rescaling": keras.layers.Rescaling(1 / 127.5, -1.0, dtype=policy, name="rescaling"),
            "embedding": PatchEmbedding(
                config.input.patch_size,
                stack.d_model,
                _position(stack),
                config.leading_tokens,
                stack.embedding_dropout,
                dtype=policy,
                kernels=kernels,
                name="embedding",
            ),
        }

    def symbol(self) -> Tensor:  # noqa: D102
        return keras.Input(self.config.input.shape, dtype="float32", name="images")

    def check(self, inputs, model) -> None:  # noqa: D102
        check_images(inputs, "images", model, self.config.input.shape)

    def __call__(self, inputs, training=None) -> Tensor:  # noqa: D102
        pixels = self.layers["rescaling"](inputs)
        return self.layers["embedding"](pixels, training=training)  # [B, leading_tokens + P, D]


def _position(stack):
    """Returns the `Position` of the embedding; positions in attention belong to the blocks."""
    position = stack.embedded_position
    if isinstance(position, Sinusoidal):
        return SinusoidalGrid(**position.get_config())
    return position


def make_image_pooling(config, policy) -> keras.Layer:
    """Returns the layer for the `pooling` of a head, in which class tokens precede the patches."""
    kind = config.head.pooling
    if kind == "class_mean":
        return ClassAndMean(config.leading_tokens, dtype=policy, name="pooling")
    return Pooling("first" if kind == "class" else kind, dtype=policy, name="pooling")


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
