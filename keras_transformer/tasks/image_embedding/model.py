"""Vectors of images: patches, an encoder, pooling and a vector."""

from typing import Any

import keras

from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.direction import Direction
from keras_transformer.models.heads.head import Head, output_dtype
from keras_transformer.models.heads.images import make_image_pooling
from keras_transformer.models.inputs.patches import EmbeddedPatches
from keras_transformer.tasks.image_embedding.config import ImageEmbedderConfig
from keras_transformer.tensors import Tensor


class PooledImage(Head):
    """Pooling over the encoder's output for an image, in float32 from there on."""

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:  # noqa: D102
        head, dtype = config.head, output_dtype(policy)
        return {
            "pooling": make_image_pooling(config, policy),
            "vector": Direction(head.dimensions, head.normalize, dtype=dtype, name="vector"),
        }

    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor:  # noqa: D102
        return self.layers["vector"](self.layers["pooling"](hidden))  # [B, N]

    @property
    def drawn(self) -> tuple[keras.Layer, ...]:  # noqa: D102
        return tuple(self.layers.values())


@keras.saving.register_keras_serializable(package="keras_transformer")
class ImageEmbedder(EncoderModel):
    """The encoder of Fig. 1 over the patches of an image, whose pooled output is a vector.

    Args:
        config: An `ImageEmbedderConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` of the layers; they are not saved with the model.

    Call arguments:
        inputs: Pixels from 0 to 255, floating, `[B, image_height, image_width, channels]`.

    Returns:
        Vectors `[B, D]`, or `[B, N]` with `dimensions=N`; float32 under mixed-precision policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.models import ImageEmbedder, ImageEmbedderConfig
        >>> config = ImageEmbedderConfig.preset("tiny", image_height=8, image_width=8, patch_size=4,
        ...     dimensions=16)
        >>> ImageEmbedder(config)(np.zeros((2, 8, 8, 3), "float32")).shape
        TensorShape([2, 16])

    Differs from the paper, which has no images; see `ImageClassifier`.

    Reference: Oquab et al. (2024), "DINOv2: Learning Robust Visual Features without Supervision".
    """

    config_class = ImageEmbedderConfig
    input_class, head_class = EmbeddedPatches, PooledImage
    default_name = "image_embedder"
