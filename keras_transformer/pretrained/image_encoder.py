"""`ImageEncoder`, the base of families of vision transformers with ViT's names."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.config.patches import PatchModelConfig
from keras_transformer.norms import LayerNorm
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.image_steps import PREPROCESSOR, ImageSteps, size_of
from keras_transformer.pretrained.names import Layout, Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS
from keras_transformer.tasks.image_classification.model import ImageClassifier
from keras_transformer.tasks.image_embedding.model import ImageEmbedder

EMBEDDINGS = "embeddings."
PROJECTION = f"{EMBEDDINGS}patch_embeddings.projection"
BLOCK = {
    "attention.attention.query": "self_attention.query",
    "attention.attention.key": "self_attention.key",
    "attention.attention.value": "self_attention.value",
    "attention.output.dense": "self_attention.output_projection",
    "layernorm_before": "self_attention_norm",
    "layernorm_after": "feed_forward_norm",
    "intermediate.dense": "feed_forward.inner",
    "output.dense": "feed_forward.outer",
}


class ImageEncoder(Family):
    """A folder with `config.json`, and `preprocessor_config.json` for the preparation of images.

    Attributes:
        architectures: Dictionary from the names of models to the names of their classifiers, each
            of which reads the output for the class token at the same place. Models without
            classifiers are encoders, or have heads that are not supported here.
        bare: Name of the model that is the encoder alone.
        vectors: Names of the models without a classifier that become models for vectors of images.
        class_tokens: Names of the learned tokens before the patches.
        steps: Settings of the preparation of images, where the file does not have them.
        pooling: What the classifiers read; see `ImageLabelsHead`.
        epsilon: The `epsilon` of normalisations if the settings name none.
        patch_size: Height and width of a patch if the settings name none.
        block: Names of the layers of a block, with their paths in ours.
    """

    reader = "AutoModelForImageClassification"
    ignored = (r"(\w+\.)?pooler\..*", r"(\w+\.)?embeddings\.mask_token", r"decoder\..*")
    architectures = {}
    vectors = ()
    bare = ""
    class_tokens = ("cls_token",)
    steps = {}
    epsilon, patch_size = 1e-12, 16
    pooling = "class"
    block = BLOCK

    @classmethod
    def kinds(cls) -> dict[str, tuple[str, ...]]:  # noqa: D102
        return {
            name: ("image_embedding" if name in cls.vectors else "image_classification",)
            for name in cls.architectures
        }

    @property
    def task(self) -> str:
        """Name of the task of the head."""
        return "image_embedding" if self._has_vectors else "image_classification"

    @property
    def model_class(self) -> type[Any]:  # ty: ignore[incompatible-property-override]
        """Class of the model with the head."""
        return ImageEmbedder if self._has_vectors else ImageClassifier

    @property
    def _has_vectors(self):
        return self._architecture in self.vectors

    def _head(self):
        """Returns the options of the head."""
        if self._has_vectors:
            return {"pooling": "class", "normalize": False}
        self.settings.check_one_label("image")
        classifiers = max(1, len(self._classifiers))
        return {"pooling": self.pooling, "classifiers": classifiers, "labels": self._labels()}

    def config(self) -> PatchModelConfig:  # noqa: D102
        settings, tensors = self.settings, self.tensors
        (height, width), channels = self.image_size, self._channels()
        if not self.image_steps.is_given:
            self.notes.append(f"{PREPROCESSOR} is missing, so pixels are scaled to -1 to 1")
        return self.model_class.config_class(
            image_height=height,
            image_width=width,
            channels=channels,
            **self.image_steps.options(height, width),
            patch_size=self._patch_size(height, width),
            class_tokens=self.count_class_tokens(),
            num_layers=settings.count("num_hidden_layers"),
            d_model=settings.count("hidden_size"),
            num_heads=settings.count("num_attention_heads"),
            dropout=settings.number("hidden_dropout_prob", 0.0),
            attention_dropout=settings.number("attention_probs_dropout_prob", 0.0),
            normalization=LayerNorm(settings.number("layer_norm_eps", self.epsilon)),
            position="learned",
            norm="pre",
            attention_bias=tensors.has_biases("query", "key", "value") or ("output",),
            **self.block_options(),
            **self._head(),
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        prefix, width = self.prefix, config.d_model
        last = f"{prefix}encoder.layer.{config.num_layers - 1}."
        for name, shape in self.block_sizes(config.encoder.block.d_ff, width):
            yield f"{last}{name}", shape
        patch = config.input.patch_size, config.input.patch_size
        yield f"{prefix}{PROJECTION}.weight", (width, config.input.channels, *patch)
        yield self.positions, self.position_layout(config).shape((config.max_length, width))

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix = self.prefix
        tables = f"{prefix}{EMBEDDINGS}"
        yield from self._projection(config)
        yield Weight(self.positions, "embedding.positions", self.position_layout(config))
        for number, name in enumerate(self.class_tokens):
            yield Weight(f"{tables}{name}", f"embedding.tokens.{number}", Layout(ones=2))
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}encoder.layer.{number}.", f"encoder.blocks.{number}."
            yield from self.block_weights(theirs, ours)
        yield from layers({"layernorm": "encoder.norm"}, prefix)
        for number, name in enumerate(self._classifiers):
            yield from layers({name: f"output_layer_{number}" if number else "output_layer"})

    def tokenizers(self, config) -> None:
        """Returns `None`: images have no vocabulary."""
        return None

    def block_options(self) -> dict[str, Any]:
        """Returns the options of the feed-forward networks and of what only some families have."""
        settings = self.settings
        return {
            "d_ff": settings.count("intermediate_size"),
            "activation": settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        }

    def block_sizes(self, d_ff, width) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yields names, after that of the block, and shapes that depend on these two sizes."""
        yield "intermediate.dense.weight", (d_ff, width)

    def block_weights(self, theirs, ours) -> Iterator[Weight]:
        """Yields the `Weight`s of a block.

        Args:
            theirs, ours: Beginnings of their names and of our paths.
        """
        yield from layers(self.block, theirs, ours)

    def position_layout(self, config) -> Any:
        """Returns the `Layout` of the positions."""
        return Layout(ones=1)

    def count_class_tokens(self) -> int:
        """Returns the number of learned tokens before the patches."""
        return len(self.class_tokens)

    @property
    def positions(self) -> str:
        """Name of the positions of tokens and patches."""
        return f"{self.prefix}{EMBEDDINGS}position_embeddings"

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of the images that the model reads."""
        return size_of(self.settings, "image_size", 224)

    def _projection(self, config):
        """The weights of the map of patches, which here gets pixels from -1 to 1.

        A pixel x from 0 to 1 is `(x - mean) / deviation` there and `2 x - 1` here, so that the
        mean and the deviation of each channel go into kernel and bias.
        """
        name, size = f"{self.prefix}{PROJECTION}", config.input.patch_size
        mean, deviation = self.image_steps.statistics(config.input.channels)
        places = size * size  # channels are the fastest axis of our kernel
        factor = np.tile(0.5 / deviation, places)[:, None]  # [P * P * C, 1]
        shift = np.tile((0.5 - mean) / deviation, places)
        layout = Layout(patch=(size, size, config.input.channels))
        shape = size * size * config.input.channels, config.d_model
        theirs = self.tensors.read(f"{name}.weight", layout.shape(shape))
        moved = shift @ layout.ours(theirs, shape).astype("float64")  # [D]
        kernel, bias = "embedding.projection.kernel", "embedding.projection.bias"
        yield Weight(f"{name}.weight", kernel, layout, change=lambda values: values * factor)
        yield Weight(f"{name}.bias", bias, change=lambda values: values + moved)

    @functools.cached_property
    def image_steps(self) -> ImageSteps:
        """The settings of the preparation of images."""
        return ImageSteps(self.folder, self.steps)

    @functools.cached_property
    def _classifiers(self):
        """The names of the checkpoint's classifiers; empty if it has none."""
        return self.architectures[self._architecture]

    @functools.cached_property
    def _architecture(self):
        return self.settings.architecture([*self.architectures], self.bare)

    def _channels(self):
        channels = self.settings.count("num_channels", 3)
        if channels not in (1, 3):  # of the files that can be read
            raise self.settings.wrong("num_channels", "1 or 3")
        return channels

    def _patch_size(self, height, width):
        """Returns the height and width of a patch."""
        size = self.settings.count("patch_size", self.patch_size)
        if height % size or width % size:
            rule = f"a divisor of {height} and {width}, the size of images"
            raise self.settings.wrong("patch_size", rule)
        return size

    def _labels(self):
        """The names of the labels, in the order of the logits."""
        if self._classifiers:
            return self.settings.labels("id2label")
        self.notes.append(
            "the checkpoint has no head for labels of images, so the run's head is untrained: "
            'train a new one with `start_from` and `parts = ["input", "encoder"]`'
        )
        return ("0", "1")
