"""DINOv2 in Hugging Face's format: an encoder of patches with layer scales, and a head."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.feed_forwards import Gated
from keras_transformer.pretrained.grid_positions import GridPositions, cubic, smooth_cubic
from keras_transformer.pretrained.image_encoder import EMBEDDINGS, ImageEncoder
from keras_transformer.pretrained.listing import Listing
from keras_transformer.pretrained.names import Layout, Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS

ATTENTION = {
    "attention.attention.query": "self_attention.query",
    "attention.attention.key": "self_attention.key",
    "attention.attention.value": "self_attention.value",
    "attention.output.dense": "self_attention.output_projection",
    "norm1": "self_attention_norm",
    "norm2": "feed_forward_norm",
}
PLAIN = {"mlp.fc1": "feed_forward.inner", "mlp.fc2": "feed_forward.outer"}
GATED = {"mlp.weights_out": "feed_forward.outer"}
JOINED = ("gate", "inner")  # in one weight, in this order
SCALES = {"layer_scale1": "self_attention_scale", "layer_scale2": "feed_forward_scale"}


MOST_TIMES = 8  # the size of images of training


class Register(NamedTuple):
    """The layout of one of the register tokens `[1, R, D]`, with the methods of a `Layout`.

    Attributes:
        number: Its number, counted from 0.
        count: The number R of registers.
    """

    number: int
    count: int

    def shape(self, ours) -> tuple[int, ...]:
        """Returns the shape of the array in the file."""
        return 1, self.count, ours[-1]

    def ours(self, array, shape) -> np.ndarray:
        """Converts the array in the file to our layout."""
        return array[0, self.number].reshape(shape)


class DINOv2(ImageEncoder):
    """A vision transformer that was trained without labels.

    The model reads images of the size that `preprocessor_config.json` prepares, which is mostly
    smaller than the `image_size` of training: positions of patches are interpolated once, during
    the conversion.

    Reference: Oquab et al. (2024), "DINOv2: Learning Robust Visual Features without Supervision".
    """

    name, model_type, base = "dinov2", "dinov2", "dinov2."
    listing = Listing(
        {"dinov2": ("DINOv2",)},
        "pretrained_images.md",
        tried=("DINOv2-small",),
    )
    bare = "Dinov2Model"
    architectures: dict = {"Dinov2ForImageClassification": ("classifier",), bare: ()}
    vectors = (bare,)
    pooling, epsilon, patch_size = "class_mean", 1e-6, 14
    steps: dict = {
        "resample": 3,
        "size": {"shortest_edge": 224},
        "do_center_crop": True,
        "crop_size": 224,
    }
    interpolation: Callable[[int, int], np.ndarray] = staticmethod(cubic)

    def block_options(self) -> dict[str, Any]:  # noqa: D102
        settings = self.settings
        inner = int(settings.count("hidden_size") * settings.number("mlp_ratio", 4))
        options = {"layer_scale": settings.number("layerscale_value", 1.0)}
        if self._is_gated:  # two thirds, rounded up to a multiple of 8
            inner = (int(inner * 2 / 3) + 7) // 8 * 8
            return {**options, "d_ff": inner, "feed_forward": Gated(), "activation": "silu"}
        activation = settings.choice("hidden_act", ACTIVATIONS, "gelu")
        return {**options, "d_ff": inner, "activation": activation}

    def block_sizes(self, d_ff, width) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        if self._is_gated:
            yield "mlp.weights_in.weight", (len(JOINED) * d_ff, width)
        else:
            yield "mlp.fc1.weight", (d_ff, width)

    def block_weights(self, theirs, ours) -> Iterator[Weight]:  # noqa: D102
        yield from layers({**ATTENTION, **(GATED if self._is_gated else PLAIN)}, theirs, ours)
        for name, layer in SCALES.items():
            yield Weight(f"{theirs}{name}.lambda1", f"{ours}{layer}.scale")
        for number, layer in enumerate(JOINED if self._is_gated else ()):
            share, layer = (number, len(JOINED)), f"{ours}feed_forward.{layer}"
            kernel = Layout(transposed=True, share=share)
            yield Weight(f"{theirs}mlp.weights_in.weight", f"{layer}.kernel", kernel)
            yield Weight(f"{theirs}mlp.weights_in.bias", f"{layer}.bias", Layout(share=share))

    def position_layout(self, config) -> GridPositions:  # noqa: D102
        size = config.input.patch_size
        height, width = (edge // size for edge in super().image_size)
        return GridPositions(
            (height, width), config.input.grid, config.input.class_tokens, self.interpolation
        )

    @property
    def image_size(self) -> tuple[int, int]:  # noqa: D102
        trained = super().image_size
        size = self.image_steps.result(trained)
        if any(edge > MOST_TIMES * known for edge, known in zip(size, trained, strict=True)):
            rule = f"at most {MOST_TIMES} times {trained[0]} x {trained[1]}, the size of training"
            raise self.image_steps.settings.wrong("crop_size", rule)
        return size

    @functools.cached_property
    def _is_gated(self):
        return self.settings.flag("use_swiglu_ffn", False)


class DINOv2WithRegisters(DINOv2):
    """DINOv2 with further learned tokens, registers, which have no positions.

    Reference: Darcet et al. (2024), "Vision Transformers Need Registers".
    """

    name = model_type = "dinov2_with_registers"
    listing = Listing(
        {"dinov2": ("DINOv2 with registers",)},
        "pretrained_images.md",
    )
    base, patch_size = "dinov2_with_registers.", 16
    bare = "Dinov2WithRegistersModel"
    architectures = {"Dinov2WithRegistersForImageClassification": ("classifier",), bare: ()}
    vectors = (bare,)
    interpolation = staticmethod(smooth_cubic)

    def count_class_tokens(self) -> int:  # noqa: D102
        return 1 + self.settings.count("num_register_tokens", 4)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        yield from super().names(config)
        name, count = f"{self.prefix}{EMBEDDINGS}register_tokens", config.input.class_tokens - 1
        for number in range(count):
            yield Weight(name, f"embedding.tokens.{number + 1}", Register(number, count))
