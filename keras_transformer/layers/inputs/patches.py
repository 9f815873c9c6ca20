"""Images as sequences of patches: cutting, linear projection and positions."""

from typing import Any

import keras
from keras import ops

from keras_transformer import positions
from keras_transformer.checks import check_choice, check_count
from keras_transformer.layers.call_checks import described
from keras_transformer.layers.inputs.embedding import PositionedEmbedding
from keras_transformer.positions.grid import SinusoidalGrid
from keras_transformer.positions.position import Position
from keras_transformer.tensors import Shape, Tensor

KINDS = {"sinusoidal": SinusoidalGrid, "learned": positions.Learned, "none": Position}


def cut_patches(images: Tensor, patch_size: int) -> Tensor:
    """Returns the patches of images, in row-major order.

    Args:
        images: `[B, R * patch_size, Q * patch_size, C]`, with known height, width and channels.
        patch_size: Height and width of a patch.

    Returns:
        `[B, R * Q, patch_size * patch_size * C]`: for each patch its pixels in row-major order, and
        for each pixel its channels.
    """
    height, width, channels = images.shape[1:]
    rows, columns = height // patch_size, width // patch_size
    strips = ops.reshape(images, (-1, rows, patch_size, columns, patch_size * channels))
    patches = ops.transpose(strips, (0, 1, 3, 2, 4))  # [B, R, Q, patch_size, patch_size * C]
    return ops.reshape(patches, (-1, rows * columns, patch_size * patch_size * channels))


@keras.saving.register_keras_serializable(package="keras_transformer")
class PatchEmbedding(PositionedEmbedding):
    """Embedding of the patches of an image, plus their positions, with dropout on the sum.

    `x_i = W patch_i + b + p_i`, with patches in row-major order; learned class tokens can precede
    them.

    Args:
        patch_size: Height and width of a patch, in pixels.
        d_model: Width of the model, in features.
        position: `"sinusoidal"`, sinusoids of row and column (`SinusoidalGrid`); `"learned"`, one
            vector for each patch; `"none"`; or a `Position`.
        class_tokens: Number of learned vectors before the patches.
        dropout: Dropout rate on the sum of patch and position.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        images: `[B, R * patch_size, Q * patch_size, C]`, floating; height, width and channels must
            be those of the first call.
        training: Whether dropout is active.

    Returns:
        `[B, class_tokens + R * Q, D]`.

    Raises:
        ValueError: If height or width is not a multiple of `patch_size`, or positions do not fit.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.layers import PatchEmbedding
        >>> PatchEmbedding(patch_size=4, d_model=16)(np.zeros((2, 8, 12, 3), "float32")).shape
        TensorShape([2, 7, 16])

    Reference: Dosovitskiy et al. (2021), "An Image is Worth 16x16 Words", Eq. 1.
    """

    is_linear = True

    def __init__(
        self,
        patch_size: int,
        d_model: int,
        position: str | Position = "sinusoidal",
        class_tokens: int = 1,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        check_count("patch_size", patch_size)
        check_count("class_tokens", class_tokens, least=0)
        if isinstance(position, str):
            check_choice("position", position, KINDS)
            position = KINDS[position]()
        super().__init__(d_model, position, dropout, **kwargs)
        self.patch_size, self.class_tokens = patch_size, class_tokens
        self.position.check(self)

    def build(self, images_shape: Shape) -> None:  # noqa: D102
        self._shape = tuple(images_shape[1:])
        height, width, channels = self._shape
        if height % self.patch_size or width % self.patch_size:
            raise ValueError(
                "`patch_size` must divide the height and the width of the images. Received: "
                f"patch_size={self.patch_size}, images of {height} x {width} pixels."
            )
        self.grid = height // self.patch_size, width // self.patch_size
        patches = self.grid[0] * self.grid[1]
        self.max_length = patches + self.class_tokens
        self.projection.build((None, patches, self.patch_size * self.patch_size * channels))
        self.tokens = [self._make_token(number) for number in range(self.class_tokens)]
        self.position.build(self)

    def _make_token(self, number):
        normal = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        name = f"class_token_{number}" if number else "class_token"
        return self.add_weight(shape=(self.d_model,), initializer=normal, name=name)

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_images(given.get("images"), "images", self, getattr(self, "_shape", None))
        return {}

    def call(self, images: Tensor, training: bool | None = None) -> Tensor:  # noqa: D102
        patches = cut_patches(ops.cast(images, self.compute_dtype), self.patch_size)
        x = self.projection(patches)  # [B, P, D]
        if self.tokens:
            nothing = ops.zeros_like(x[:, :1])  # [B, 1, D]
            tokens = [nothing + ops.cast(token, x.dtype) for token in self.tokens]
            x = ops.concatenate([*tokens, x], axis=1)  # [B, class_tokens + P, D]
        return self.with_position(x, training)

    def compute_output_shape(self, images_shape: Shape) -> Shape:  # noqa: D102
        batch, height, width, _ = images_shape
        patches = (height // self.patch_size) * (width // self.patch_size)
        return batch, patches + self.class_tokens, self.d_model

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "patch_size": self.patch_size,
            "class_tokens": self.class_tokens,
        }


def check_images(value, name, layer, shape=None) -> None:
    """Requires floating images `[B, height, width, channels]`.

    Args:
        value: A tensor or an array. Anything else is left to Keras.
        name: Name of the argument.
        layer: The layer that is called.
        shape: Required height, width and channels. `None`: any statically known sizes.

    Raises:
        TypeError: If the images are not floating.
        ValueError: If they have the wrong shape.
    """
    dtype, received_shape = described(value)
    if received_shape is None:
        return
    received = f"Received by {layer.name!r}: dtype={dtype}, shape={received_shape}."
    if not dtype.startswith(("float", "bfloat")):
        raise TypeError(f"`{name}` must be floating: cast the pixels to float32. {received}")
    if len(received_shape) != 4 or None in received_shape[1:]:
        raise ValueError(
            f"`{name}` must be [batch, height, width, channels], with known height, width and "
            f"channels. {received}"
        )
    if shape is not None and tuple(received_shape[1:]) != tuple(shape):
        expected = " x ".join(map(str, shape))
        raise ValueError(f"`{name}` must have height x width x channels of {expected}. {received}")
