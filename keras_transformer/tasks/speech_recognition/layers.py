"""Frames of sound as the input of an encoder: two convolutions over time, plus positions."""

from typing import Any

import keras
from keras import ops

from keras_transformer import activations, positions
from keras_transformer.checks import check_count
from keras_transformer.layers.call_checks import check_mask_of_positions, described
from keras_transformer.layers.feed_forward import in_training
from keras_transformer.layers.inputs.embedding import PositionedEmbedding
from keras_transformer.tensors import Shape, Tensor


def frame_mask(frames: Tensor, stride: int = 1) -> Tensor:
    """Returns a mask of the frames that are not padding: those with a feature other than 0.

    Args:
        frames: `[B, S, F]`, floating.
        stride: Number of frames for each position of the mask; the first one counts.

    Returns:
        Boolean `[B, 1, ceil(S / stride)]`, the same for every query.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.tasks.speech_recognition.layers import frame_mask
        >>> frame_mask(np.array([[[0.5, 0.0], [0.0, 0.1], [0.0, 0.0]]])).numpy().tolist()
        [[[True, True, False]]]
    """
    real = ops.any(ops.not_equal(frames, 0), axis=-1)  # [B, S]
    return ops.expand_dims(real[:, ::stride], axis=1)


@keras.saving.register_keras_serializable(package="keras_transformer")
class FrameMask(keras.Layer):
    """`frame_mask` as a layer, so that it appears by name in a functional model.

    Args:
        stride: Number of frames for each position of the mask.
        masked: Whether frames of zeros are padding. `False`: the mask is true everywhere.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        frames: `[B, S, F]`, floating.

    Returns:
        Boolean `[B, 1, ceil(S / stride)]`.
    """

    def __init__(self, stride: int = 1, masked: bool = True, **kwargs: Any):
        check_count("stride", stride)
        super().__init__(**kwargs)
        self.stride, self.masked = stride, masked
        self.built = True

    def call(self, frames: Tensor) -> Tensor:  # noqa: D102
        mask = frame_mask(frames, self.stride)
        return mask if self.masked else ops.ones_like(mask)

    def compute_output_shape(self, frames_shape: Shape) -> Shape:  # noqa: D102
        batch, length = frames_shape[:2]
        return batch, 1, None if length is None else -(-length // self.stride)

    def compute_output_spec(self, frames: Tensor) -> Any:  # noqa: D102
        return keras.KerasTensor(self.compute_output_shape(frames.shape), dtype="bool")

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {**super().get_config(), "stride": self.stride, "masked": self.masked}


@keras.saving.register_keras_serializable(package="keras_transformer")
class FrameEmbedding(PositionedEmbedding):
    """Embedding of frames of sound: two convolutions over time, plus positions, with dropout.

    Both convolutions are followed by an activation; the second one has a stride and so shortens the
    sequence. Position t of a convolution is centred on frame `t * stride` whatever the length. What
    lies beyond an end of a recording is 0, also before the second convolution: padding therefore
    never changes the result of a row.

    Args:
        d_model: Width of the model, in features.
        kernel_size: Width of the convolutions, odd.
        stride: Stride of the second convolution.
        activation: Activation after each convolution: its name or the function.
        position: A `Position`, or its name: `"sinusoidal"`, `"learned"` or `"none"`.
        max_length: Number of positions, after the stride, of a learned table, and of a sinusoidal
            one if the length of the input is not known when the graph is built.
        dropout: Dropout rate on the sum of frame and position.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.

    Call arguments:
        frames: `[B, S, F]`, floating.
        padding_mask: Boolean `[B, S]` or `[B, 1, S]`, `True` for frames that are not padding.
            `None`: there is no padding.
        training: Whether dropout is active.

    Returns:
        `[B, ceil(S / stride), D]`.

    Example:
        >>> import numpy as np
        >>> from keras_transformer.layers import FrameEmbedding
        >>> FrameEmbedding(d_model=16)(np.zeros((2, 7, 80), "float32")).shape
        TensorShape([2, 4, 16])

    Reference: Radford et al. (2022), "Robust Speech Recognition via Large-Scale Weak Supervision",
        section 2.2; Dong et al. (2018), "Speech-Transformer".
    """

    def __init__(
        self,
        d_model: int,
        kernel_size: int = 3,
        stride: int = 2,
        activation: str | Any = "gelu",
        position: str | positions.Position = "sinusoidal",
        max_length: int = 1500,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(d_model, position, dropout, **kwargs)
        for name, value in {
            "kernel_size": kernel_size,
            "stride": stride,
            "max_length": max_length,
        }.items():
            check_count(name, value)
        if not kernel_size % 2:
            raise ValueError(f"`kernel_size` must be odd. Received: kernel_size={kernel_size}.")
        self.kernel_size, self.stride, self.max_length = kernel_size, stride, max_length
        self.activation = activations.name_of(activation)
        self.num_features = None
        # Whole windows only: `call` adds what lies beyond both ends. With "same", Keras would shift
        # the windows by one frame if the length is even.
        self.first, self.second = (
            keras.layers.Conv1D(
                d_model,
                kernel_size,
                strides,
                # Keras's default weights halve the variance twice: positions would hide the sound.
                kernel_initializer="he_normal",
                dtype=self.dtype_policy,
                name=name,
            )
            for name, strides in (("conv_0", 1), ("conv_1", stride))
        )
        self.position.check(self)

    def build(self, frames_shape: Shape, padding_mask_shape: Shape | None = None) -> None:  # noqa: D102
        self.num_features = frames_shape[-1]
        self.first.build(frames_shape)
        self.second.build((*frames_shape[:2], self.d_model))
        self.position.build(self)

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:  # noqa: D102
        check_frames(given.get("frames"), "frames", self, self.num_features)
        check_mask_of_positions(given.get("padding_mask"), "padding_mask", self)
        return {}

    def call(  # noqa: D102
        self, frames: Tensor, padding_mask: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        if padding_mask is not None:
            padding_mask = ops.convert_to_tensor(padding_mask)
            flat = (
                padding_mask if len(padding_mask.shape) == 2 else ops.squeeze(padding_mask, axis=1)
            )
            padding_mask = ops.expand_dims(flat, axis=2)  # [B, S, 1]
        activation = in_training(activations.get(self.activation), training)
        x = activation(self.first(self._extended(frames, padding_mask)))  # [B, S, D]
        x = activation(self.second(self._extended(x, padding_mask)))  # [B, ceil(S / stride), D]
        return self.with_position(x, training)

    def _extended(self, x, padding_mask):
        """Returns `[B, S, ...]` with zeros for padding and beyond both ends."""
        margin = self.kernel_size // 2
        x = ops.cast(x, self.compute_dtype)
        if padding_mask is not None:
            x = ops.where(padding_mask, x, ops.zeros_like(x))
        return ops.pad(x, [[0, 0], [margin, margin], [0, 0]])

    def compute_output_shape(  # noqa: D102
        self, frames_shape: Shape, padding_mask_shape: Shape | None = None
    ) -> Shape:
        batch, length, _ = frames_shape
        return batch, None if length is None else -(-length // self.stride), self.d_model

    def get_config(self) -> dict[str, Any]:  # noqa: D102
        return {
            **super().get_config(),
            "kernel_size": self.kernel_size,
            "stride": self.stride,
            "activation": self.activation,
            "max_length": self.max_length,
        }


def check_frames(value, name, layer, num_features=None) -> None:
    """Requires floating frames `[B, S, F]`.

    Args:
        value: A tensor or an array. Anything else is left to Keras.
        name: Name of the argument.
        layer: The layer that is called.
        num_features: Required number of features F. `None`: any statically known number.

    Raises:
        TypeError: If the frames are not floating.
        ValueError: If they have the wrong shape.
    """
    dtype, shape = described(value)
    if shape is None:
        return
    received = f"Received by {layer.name!r}: dtype={dtype}, shape={shape}."
    if not dtype.startswith(("float", "bfloat")):
        raise TypeError(f"`{name}` must be floating: the frames of a `LogMel`. {received}")
    if len(shape) != 3 or shape[-1] is None:
        raise ValueError(
            f"`{name}` must be [batch, frames, features] with a known number of features. "
            f"{received}"
        )
    if num_features not in (None, shape[-1]):
        raise ValueError(f"`{name}` must have frames of {num_features} features. {received}")
