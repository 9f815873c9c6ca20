"""Image to a class: patches, an encoder, pooling over them and a linear map."""

import keras

from keras_transformer.config import ImageClassifierConfig
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.inputs.patches import PatchEmbedding, check_images
from keras_transformer.layers.positions import Learned
from keras_transformer.layers.positions.grid import SinusoidalGrid
from keras_transformer.models.base import ConfiguredModel, make_logits
from keras_transformer.models.heads import Pooling


@keras.saving.register_keras_serializable(package="keras_transformer")
class ImageClassifier(ConfiguredModel):
    """The encoder of Fig. 1 over the patches of an image, with a linear classifier.

    Args:
        config: An `ImageClassifierConfig`, or the name of a preset.
        dtype: Dtype policy of every layer, for example `"mixed_bfloat16"`. `None`: the global one.
        name: Name of the model.
        kernels: The `Kernels` that the layers compute with; a file does not keep them.

    Call arguments:
        inputs: Pixels from 0 to 255, floating, `[B, image_height, image_width, channels]`.

    Returns:
        Logits `[B, C]`, one for each of `config.labels`; float32 under the mixed policies.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import ImageClassifier, ImageClassifierConfig
        >>> config = ImageClassifierConfig.preset("tiny", labels=("cat", "dog"), image_height=8,
        ...     image_width=8, patch_size=4)
        >>> ImageClassifier(config)(np.zeros((2, 8, 8, 3), "float32")).shape
        TensorShape([2, 2])

    Differs from the paper, which has no images. Differs from the vision transformer's: by default
    sinusoidal positions of row and column and, as in the paper, normalisation after each sublayer.

    Reference: Dosovitskiy et al. (2021), "An Image is Worth 16x16 Words", Eq. 1 to 4.
    """

    config_class = ImageClassifierConfig

    def __init__(self, config="base", dtype=None, name="image_classifier", **kwargs):
        super().__init__(config, dtype, name, **kwargs)

    def __call__(self, inputs, *args, **kwargs):
        """Refuses images of a wrong shape or dtype in one line, and calls the model."""
        check_images(inputs, "images", self, self.config.shape)
        return super().__call__(inputs, *args, **kwargs)

    def _make_inputs(self, config):
        return keras.Input(config.shape, dtype="float32", name="images")

    def _make_layers(self, config, policy, kernels):
        pooling = "first" if config.has_class_token else config.pooling
        return {
            # From -1 to 1.
            "rescaling": keras.layers.Rescaling(1 / 127.5, -1.0, dtype=policy, name="rescaling"),
            "embedding": PatchEmbedding(
                config.patch_size,
                config.d_model,
                _position(config),
                config.has_class_token,
                config.embedding_dropout,
                dtype=policy,
                kernels=kernels,
                name="embedding",
            ),
            "encoder": Encoder.from_stack(
                config.stack, dtype=policy, kernels=kernels, name="encoder"
            ),
            "pooling": Pooling(pooling, dtype=policy, name="pooling"),
            "dropout": Dropout(config.dropout, dtype=policy, name="dropout"),
            "output_layer": keras.layers.Dense(config.num_labels, dtype=policy, name="output"),
            "logits": make_logits(policy),
        }

    def _connect(self, config, layers, inputs):
        x = layers["embedding"](layers["rescaling"](inputs))  # [B, P, D] or [B, 1 + P, D]
        x = layers["dropout"](layers["pooling"](layers["encoder"](x)))  # [B, D]
        return layers["logits"](layers["output_layer"](x))  # [B, C]

    def attention_weights(self, inputs):
        """Returns the weights of every self-attention for images.

        Args:
            inputs: As in a call.

        Returns:
            Dictionary from `"block_0/self_attention"` and so on to `[B, H, S, S]`, where S counts
            the class token, if there is one, and the patches.
        """
        x = self.embedding(self.rescaling(inputs))
        _, weights = self.encoder(x, return_weights=True)
        return weights


def _position(config):
    """The `Position` of the patches; those of every self-attention are the blocks' own."""
    if config.position == "sinusoidal":
        return SinusoidalGrid(
            config.sinusoid_layout, config.sinusoid_endpoint, config.position_offset
        )
    return Learned() if config.position == "learned" else "none"
