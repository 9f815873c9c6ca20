"""Preparation of images as `preprocessor_config.json` describes it."""

import re
from typing import Any

import numpy as np

from keras_transformer.checks import is_finite, is_integer
from keras_transformer.config.patches import LARGEST_EDGE
from keras_transformer.pretrained.settings import CheckpointSettings

PREPROCESSOR = "preprocessor_config.json"
# Steps with the values that can be expressed; a setting that is missing has the first of them.
STEPS = {
    "do_rescale": (True,),
    "do_normalize": (True, False),
    "do_resize": (True, False),
    "do_center_crop": (False, True),
    "do_convert_rgb": (True, False),
    "do_pad": (False,),
}
# Classes that take these steps; others resize to another size or reverse the channels, say.
TYPES = "image_processor_type", "feature_extractor_type"  # the second one in older files
PROCESSORS = re.compile("(ViT|DeiT|Bit)(FeatureExtractor|ImageProcessor(Fast|Pil)?)")
PIXEL = 1 / 255  # of `do_rescale`
# Values of `resample`, the numbers of Pillow.
FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
BILINEAR = 2


class ImageSteps:
    """The checked settings of `preprocessor_config.json`.

    Args:
        folder: A `CheckpointFolder`.
        defaults: Values of settings that the file does not have or that are null, a dictionary.

    Attributes:
        is_given: Whether the folder contains the file. Without it, images are only resized.
    """

    def __init__(self, folder, defaults):
        content = folder.json(PREPROCESSOR)
        self.is_given = content is not None
        given = _without_nulls(content or {})
        without_file = {"resample": defaults.get("resample", BILINEAR)}
        content = {**defaults, **given} if self.is_given else without_file
        self.settings = CheckpointSettings(content, folder.path / PREPROCESSOR)

    def result(self, default) -> tuple[int, int]:
        """Returns height and width of prepared images; `default` if the steps do not change it."""
        if self.settings.get("do_center_crop", False):
            return size_of(self.settings, "crop_size", default)
        if self.is_given and self.settings.get("do_resize", True):
            return self._size(default)
        return default

    def options(self, height, width) -> dict[str, Any]:
        """Returns options of `PatchInput` for images of this size.

        Raises:
            ValueError: If a step cannot be expressed; the error names its setting.
        """
        settings = self.settings
        self._check_processor()
        settings.check(STEPS)
        factor = settings.number("rescale_factor", PIXEL)
        if abs(factor - PIXEL) > 1e-9:
            raise settings.wrong("rescale_factor", "1 / 255")
        resize, crop = settings.get("do_resize", True), settings.get("do_center_crop", False)
        target = f"{height} x {width}, `image_size` of config.json"
        if crop and size_of(settings, "crop_size") != (height, width):
            raise settings.wrong("crop_size", target)
        if not resize:
            return {"resize": False, "center_crop": bool(crop)}
        options = {"resize": True, "interpolation": self._interpolation()}
        size = self._size((height, width))
        if size == (height, width):
            return options
        if not crop:
            raise settings.wrong("size", target)
        least = (height, width) if len(size) == 2 else (max(height, width),)
        if any(edge < fewest for edge, fewest in zip(size, least, strict=True)):
            raise settings.wrong("size", f"at least {height} x {width}, `crop_size`")
        if max(size) > LARGEST_EDGE:
            raise settings.wrong("size", f"at most {LARGEST_EDGE} pixels")
        return {**options, "resize_to": size, "center_crop": True}

    def _check_processor(self):
        """Refuses a file of another class of `transformers`, if it names one."""
        for name in TYPES:
            value = self.settings.get(name)
            if value is not None:
                if not isinstance(value, str) or not PROCESSORS.fullmatch(value):
                    raise self.settings.wrong(name, "a processor of ViT, DeiT or BiT")
                return

    def _interpolation(self):
        """Returns the filter for resizing."""
        number = self.settings.get("resample", BILINEAR)
        if not is_integer(number) or number not in FILTERS:
            choices = ", ".join(f"{number} ({name})" for number, name in FILTERS.items())
            raise self.settings.wrong("resample", f"one of {choices}")
        return FILTERS[number]

    def _size(self, default):
        """Returns the size of resized images: height and width, or only the shorter edge."""
        value = self.settings.get("size")
        if value is None:
            return default
        if isinstance(value, dict) and value.get("shortest_edge") is not None:
            edge = value["shortest_edge"]
            if not is_integer(edge) or edge < 1 or len(_without_nulls(value)) > 1:
                raise self.settings.wrong("size", "height and width, or one shortest edge above 0")
            return (edge,)
        return size_of(self.settings, "size")

    def statistics(self, channels) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and deviation of each channel, where pixels are from 0 to 1."""
        if not self.settings.get("do_normalize", True):
            return np.zeros(channels), np.ones(channels)
        mean = self._channels("image_mean", channels, -np.inf)
        return mean, self._channels("image_std", channels, 1e-6)

    def _channels(self, name, channels, lowest):
        """Returns a number for each channel."""
        values = self.settings.get(name, 0.5)
        values = values if isinstance(values, list) else [values] * channels
        valid = len(values) == channels and all(map(is_finite, values))
        if not valid or min(values) < lowest:
            rule = f"a number for each of {channels} channels"
            raise self.settings.wrong(name, f"{rule}, above 0" if lowest > 0 else rule)
        return np.array(values, "float64")


def size_of(settings, name, default=None) -> tuple[int, int]:
    """Returns height and width in a setting: a number, a pair of them, or a dictionary."""
    value = settings.get(name, default)
    if isinstance(value, dict):
        value = _without_nulls(value)
        value = [value.get(key) for key in dict.fromkeys(["height", "width", *value])]
    pair = value if isinstance(value, list) else [value, value]
    counts = [n for n in pair if is_integer(n) and n > 0]
    if len(counts) != 2 or len(pair) != 2:
        raise settings.wrong(name, "a height and a width of at least 1")
    return tuple(counts)


def _without_nulls(content):
    """Returns a dictionary without the names whose value is `None`, which counts as missing."""
    return {name: value for name, value in content.items() if value is not None}
