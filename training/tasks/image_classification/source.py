"""Labelled images: folders of files, and the digits that come with scikit-learn."""

import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.installation import install_hint
from keras_transformer.tasks.images.files import SUFFIXES, ImageSize
from keras_transformer.training.data.sources.base import SPLITS, Source

STEPS = ("resize", "interpolation", "resize_to", "center_crop")
TEST_SHARE, VALIDATION_SHARE = 0.2, 0.1


class Images(Source):
    """Labelled images in memory.

    Args:
        splits: Dictionary from a split to a pair: images `[images, H, W, C]`, uint8, and a list of
            the names of their labels.
        description: Content and origin of the data, in one line for users.
        size: The `ImageSize` with the steps that prepared these images and will prepare the inputs
            of the model. `None`: no steps.
        paths: Dictionary from a split to a list of the paths of its images, if they are files.
    """

    def __init__(self, splits, description, size=None, paths=None):
        self.splits = tuple(split for split in SPLITS if split in splits)
        self.description = description
        self._splits, self._size, self._paths = splits, size or ImageSize(), paths or {}

    def metadata(self) -> dict[str, Any]:
        """Returns the options of `PatchInput` for the steps that prepare an image."""
        return {name: getattr(self._size, name) for name in STEPS}

    def rows(self, split) -> tf.data.Dataset:
        """Returns the examples of a split: (image `[H, W, C]` uint8, label string)."""
        self.check_split(split)
        images, labels = self._splits[split]
        with tf.device("CPU:0"):
            return tf.data.Dataset.from_tensor_slices((images, labels))

    def requests(self, split) -> tf.data.Dataset:
        """Returns the examples as a pipeline receives them; files whose centre will be cropped.

        The steps would change an image that has already been resized and cropped a second time.
        """
        if not self._size.resize_to:
            return self.rows(split)
        self.check_split(split)
        with tf.device("CPU:0"):
            paths = [str(path) for path in self._paths[split]]
            return tf.data.Dataset.from_tensor_slices((paths, self._splits[split][1]))

    def count(self, split) -> int:
        self.check_split(split)
        return len(self._splits[split][1])


def open_images(settings) -> Images:
    """Reads the folders that a `[data]` section names.

    Raises:
        ValueError: If a folder is missing or has no images, or a file cannot be read or differs in
            size from the first one. One line that names the folder or file.
    """
    size = ImageSize(channels=settings.channels)
    if settings.image_size is not None:
        to = tuple(settings.resize_to or ())
        steps = True, settings.interpolation, to, bool(to)
        size = ImageSize(*settings.image_size, settings.channels, *steps)
    splits, paths = {}, {}
    for split in SPLITS:
        folder = getattr(settings, split)
        if folder is not None:
            images, labels, paths[split], size = _read(pathlib.Path(folder), size)
            splits[split] = np.stack(images), labels
    return Images(splits, f"the images in {settings.train}", size, paths)


def _read(folder, size):
    """Returns the images below a folder, their labels and paths, and the size of all images."""
    if not folder.is_dir():
        raise ValueError(
            f"{folder}: is not a folder; it must contain a folder of images for each label."
        )
    images, labels, paths = [], [], []
    for below in sorted(path for path in folder.iterdir() if path.is_dir()):
        for path in sorted(below.iterdir()):
            if path.suffix.lower() in SUFFIXES:
                image = size.read(path)
                if size.height is None:
                    size = ImageSize(*image.shape)
                images.append(image)
                labels.append(below.name)
                paths.append(path)
    if not images:
        raise ValueError(
            f"{folder}: must contain a folder for each label, with {', '.join(SUFFIXES)} files. "
            "Received: no such file."
        )
    return images, labels, paths, size


def open_digits(settings) -> Images:
    """Loads the digits that come with scikit-learn, and splits them.

    Raises:
        ValueError: If scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ValueError(
            "The digits need the package scikit-learn. Install it with: " + install_hint("digits")
        ) from None
    digits = load_digits()
    pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)[..., None]  # [1797, 8, 8, 1]
    parts = stratified(digits.target, settings.seed)
    splits = {
        split: (pixels[numbers], [str(label) for label in digits.target[numbers]])
        for split, numbers in parts.items()
    }
    return Images(splits, "the digits of scikit-learn")


def stratified(labels, seed) -> dict[str, np.ndarray]:
    """Draws splits that each have the same share of every label.

    Args:
        labels: Labels of the examples, integers `[examples]`.
        seed: Random seed of the splits.

    Returns:
        Dictionary from a split to the indices of its examples, in rising order.
    """
    rng, parts = np.random.default_rng(seed), {split: [] for split in SPLITS}
    for label in np.unique(labels):
        numbers = rng.permutation(np.flatnonzero(labels == label))
        test, validation = (round(share * len(numbers)) for share in (TEST_SHARE, VALIDATION_SHARE))
        cuts = np.split(numbers, [test, test + validation])
        for split, own in zip(("test", "validation", "train"), cuts, strict=True):
            parts[split].append(own)
    return {split: np.sort(np.concatenate(numbers)) for split, numbers in parts.items()}
