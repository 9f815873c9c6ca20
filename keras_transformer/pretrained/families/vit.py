"""Vision transformers (ViT) in Hugging Face's format: an encoder of patches, and a head."""

import functools
from collections.abc import Iterator

import numpy as np

from keras_transformer.config import ImageClassifierConfig
from keras_transformer.models.image_classifier import ImageClassifier
from keras_transformer.pretrained.family import Family
from keras_transformer.pretrained.names import Layout, Weight, layers
from keras_transformer.pretrained.settings import ACTIVATIONS, CheckpointSettings

CLASSIFIER = "ViTForImageClassification"
# Models whose heads are not supported here; their encoders are read.
OTHERS = ("ViTModel", "ViTForMaskedImageModeling")
PREPROCESSOR = "preprocessor_config.json"
# What a checkpoint does with an image before the model, with the values that a file may have. A
# setting that is missing has the first of them.
STEPS = {
    "do_rescale": (True, None),
    "do_center_crop": (False, None),
    "do_normalize": (True, False, None),
    "do_resize": (True, False, None),
    "do_convert_rgb": (None, True, False),
}
PIXEL = 1 / 255  # of `do_rescale`
BILINEAR = 2  # of `resample`, Pillow's number
FILTERS = {0: "nearest", 1: "Lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "Hamming"}
EXPRESSIBLE = {"problem_type": (None, "single_label_classification")}
EMBEDDINGS = "embeddings."
PROJECTION = f"{EMBEDDINGS}patch_embeddings.projection"
TABLES = {  # with the number of axes of size 1 before those of ours
    "position_embeddings": ("embedding.positions", 1),
    "cls_token": ("embedding.tokens.0", 2),
}
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


class ViT(Family):
    """A folder with `config.json`, and `preprocessor_config.json` for the values of pixels."""

    name, model_type, task = "vit", "vit", "image_classification"
    reader, model_class = "AutoModelForImageClassification", ImageClassifier
    ignored = (r"(vit\.)?pooler\..*", r"(vit\.)?embeddings\.mask_token", r"decoder\..*")

    def config(self) -> ImageClassifierConfig:  # noqa: D102
        settings, tensors = self.settings, self.tensors
        settings.check(EXPRESSIBLE)
        height, width = self._size(settings, "image_size", 224)
        patch = settings.count("patch_size", 16)
        if height % patch or width % patch:
            raise settings.wrong("patch_size", f"a divisor of {height} and {width}, `image_size`")
        self._check_preprocessor(height, width)
        return ImageClassifierConfig(
            image_height=height,
            image_width=width,
            channels=settings.count("num_channels", 3),
            resize=bool(self._preprocessor.get("do_resize", True)),
            patch_size=patch,
            num_layers=settings.count("num_hidden_layers"),
            d_model=settings.count("hidden_size"),
            num_heads=settings.count("num_attention_heads"),
            d_ff=settings.count("intermediate_size"),
            dropout=settings.number("hidden_dropout_prob", 0.0),
            attention_dropout=settings.number("attention_probs_dropout_prob", 0.0),
            activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
            layer_norm_epsilon=settings.number("layer_norm_eps", 1e-12),
            position="learned",
            norm="pre",
            attention_bias=tensors.has_biases("query", "key", "value"),
            attention_output_bias=True,
            pooling="class",
            labels=self._labels(),
        )

    def sizes(self, config) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: D102
        prefix, width = self._prefix, config.d_model
        last = f"{prefix}encoder.layer.{config.num_layers - 1}.intermediate.dense.weight"
        yield last, (config.d_ff, width)
        patch = config.patch_size, config.patch_size
        yield f"{prefix}{PROJECTION}.weight", (width, config.channels, *patch)
        yield f"{prefix}{EMBEDDINGS}position_embeddings", (1, config.max_length, width)

    def names(self, config) -> Iterator[Weight]:  # noqa: D102
        prefix = self._prefix
        yield from self._projection(config)
        for name, (ours, ones) in TABLES.items():
            yield Weight(f"{prefix}{EMBEDDINGS}{name}", ours, Layout(ones=ones))
        for number in range(config.num_layers):
            theirs, ours = f"{prefix}encoder.layer.{number}.", f"encoder.blocks.{number}."
            yield from layers(BLOCK, theirs, ours)
        yield from layers({"layernorm": "encoder.norm"}, prefix)
        if self._has_labels:
            yield from layers({"classifier": "output_layer"})

    def tokenizers(self, config) -> None:
        """Returns `None`: images have no vocabulary."""
        return None

    def _projection(self, config):
        """The weights of the map of patches, which here gets pixels from -1 to 1.

        A pixel x from 0 to 1 is `(x - mean) / deviation` there and `2 x - 1` here, so that the
        mean and the deviation of each channel go into kernel and bias.
        """
        name, size = f"{self._prefix}{PROJECTION}", config.patch_size
        mean, deviation = self._statistics(config.channels)
        places = size * size  # channels are the fastest axis of our kernel
        factor = np.tile(0.5 / deviation, places)[:, None]  # [P * P * C, 1]
        shift = np.tile((0.5 - mean) / deviation, places)
        layout = Layout(patch=(size, size, config.channels))
        shape = size * size * config.channels, config.d_model
        theirs = self.tensors.read(f"{name}.weight", layout.shape(shape))
        moved = shift @ layout.ours(theirs, shape).astype("float64")  # [D]
        kernel, bias = "embedding.projection.kernel", "embedding.projection.bias"
        yield Weight(f"{name}.weight", kernel, layout, change=lambda values: values * factor)
        yield Weight(f"{name}.bias", bias, change=lambda values: values + moved)

    @functools.cached_property
    def _preprocessor(self):
        path = self.folder.path / PREPROCESSOR
        return CheckpointSettings(self.folder.json(PREPROCESSOR) or {}, path)

    def _check_preprocessor(self, height, width):
        """Refuses image processing that is not supported here; other filters are noted."""
        settings = self._preprocessor
        if self.folder.file(PREPROCESSOR) is None:
            self.notes.append(f"{PREPROCESSOR} is missing, so pixels are scaled to -1 to 1")
        settings.check(STEPS)
        factor = settings.number("rescale_factor", PIXEL)
        if abs(factor - PIXEL) > 1e-9:
            raise settings.wrong("rescale_factor", "1 / 255")
        if settings.get("size") is not None and self._size(settings, "size") != (height, width):
            raise settings.wrong("size", f"{height} x {width}, `image_size` of config.json")
        resample = settings.get("resample", BILINEAR)
        if settings.get("do_resize", True) and resample != BILINEAR:
            name = FILTERS.get(resample, resample) if isinstance(resample, int) else resample
            self.notes.append(
                f"images of another size are resized with a bilinear filter, not {name} "
                f"(`resample` in {PREPROCESSOR})"
            )

    def _size(self, settings, name, default=None):
        """Height and width in a setting: a number, a pair of them, or a dictionary."""
        value = settings.get(name, default)
        if isinstance(value, dict):
            value = [value.get("height"), value.get("width")]
        pair = value if isinstance(value, list) else [value, value]
        counts = [n for n in pair if isinstance(n, int) and not isinstance(n, bool) and n > 0]
        if len(counts) != 2 or len(pair) != 2:
            raise settings.wrong(name, "a height and a width of at least 1")
        return tuple(counts)

    def _statistics(self, channels):
        """Mean and deviation of each channel, where pixels are from 0 to 1."""
        settings = self._preprocessor
        if settings.get("do_normalize", True) is False:
            return np.zeros(channels), np.ones(channels)
        found = []
        for name, lowest in (("image_mean", -np.inf), ("image_std", 1e-6)):
            values = settings.get(name)
            values = [0.5] * channels if values is None else values
            values = [values] * channels if isinstance(values, (int, float)) else values
            try:
                array = np.array(values, "float64")
            except (TypeError, ValueError):
                array = np.zeros(0)
            if array.shape != (channels,) or not np.isfinite(array).all() or array.min() < lowest:
                rule = f"a number for each of {channels} channels"
                raise settings.wrong(name, f"{rule}, above 0" if lowest > 0 else rule)
            found.append(array)
        return found

    @functools.cached_property
    def _prefix(self):
        """Begins the names of the encoder's tensors; of a `ViTModel` alone it is empty."""
        return "vit." if any(name.startswith("vit.") for name in self.tensors.shapes) else ""

    @functools.cached_property
    def _has_labels(self):
        named = self.settings.get("architectures") or ["ViTModel"]
        if named == [CLASSIFIER]:
            return True
        if not isinstance(named, list) or len(named) != 1 or named[0] not in OTHERS:
            raise self.settings.wrong("architectures", f"one of {CLASSIFIER}, {', '.join(OTHERS)}")
        return False

    def _labels(self):
        """The names of the labels, in the order of the logits."""
        if self._has_labels:
            return self.settings.labels("id2label")
        self.notes.append(
            "the checkpoint has no head for labels of images, so the run's head is untrained: "
            'train a new one with `start_from` and `parts = ["input", "encoder"]`'
        )
        return ("0", "1")
