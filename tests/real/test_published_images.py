"""Labels of photographs by DINOv2, in every form, against NumPy in float64."""

import dinov2_file
import numpy as np
import pytest
import vit_folders
from forms import Forms, command
from packages import DINOV2

from keras_transformer.tasks.image_classification.files import encode_png

pytestmark = [pytest.mark.real, pytest.mark.long]

FORMS = ("run", "saved_model", "litert", "litert_int8", "onnx")
SIDE = 259  # pixels of a part of a photograph, half as many as the model's
# Corners of the parts that have a label each, in two photographs.
CORNERS = [(photo, top, left) for photo in (0, 1) for top, left in ((0, 0), (120, 190), (60, 370))]
SHIFT = 24  # pixels down: another view of each part
STATISTICS = (dinov2_file.STATISTICS["image_mean"], dinov2_file.STATISTICS["image_std"])


def part(photos, photo, top, left):
    """A part of a photograph, each pixel four times, uint8 [2 SIDE, 2 SIDE, 3]."""
    pixels = photos[photo][top : top + SIDE, left : left + SIDE]
    return pixels.repeat(2, axis=0).repeat(2, axis=1)


class Oracle:
    """The encoder in NumPy, and a classifier that names the part which an image resembles most."""

    def __init__(self, photos):
        (path,) = DINOV2.folder().glob("*.onnx")
        stored = dinov2_file.read(path)
        self.labels = [f"part {number}" for number in range(len(CORNERS))]
        self.settings = dinov2_file.settings_of(stored, self.labels)
        self.tensors = dinov2_file.tensors_of(stored)
        self.images = [
            part(photos, photo, top + down, left)
            for down in (0, SHIFT)
            for photo, top, left in CORNERS
        ]
        states = self.states(np.array(self.images))
        centre = states[: len(CORNERS)].mean(0)
        matrix = states[: len(CORNERS)] - centre
        matrix /= np.linalg.norm(matrix, axis=-1, keepdims=True) / 0.3
        matrix = matrix.astype(np.float32)
        bias = (-matrix @ centre).astype(np.float32)
        self.tensors |= {"classifier.weight": matrix, "classifier.bias": bias}
        logits = states @ matrix.T + bias
        self.log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def states(self, images):
        """The state of the class token for each image, [B, D]."""
        weights = {name: values.astype(np.float64) for name, values in self.tensors.items()}
        states, _ = vit_folders.forward(weights, self.settings, images, *STATISTICS)
        return states[:, 0]


@pytest.fixture(scope="module")
def oracle():
    datasets = pytest.importorskip("sklearn.datasets")
    return Oracle(datasets.load_sample_images().images)


@pytest.fixture(scope="module")
def paths(oracle, tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for number, image in enumerate(oracle.images):
        (folder / f"{number}.png").write_bytes(encode_png(image))
    return [folder / f"{number}.png" for number in range(len(oracle.images))]


@pytest.fixture(scope="module")
def forms(oracle, paths, tmp_path_factory):
    checkpoint = tmp_path_factory.mktemp("dinov2")
    dinov2_file.write_hugging_face(checkpoint, oracle.tensors, oracle.settings)
    return Forms(checkpoint, tmp_path_factory.mktemp("forms"), paths)


@pytest.mark.parametrize("form", FORMS)
def test_labels_of_images_are_those_of_the_checkpoint(form, oracle, paths, forms, record_property):
    """Another view of a part has its label, and the same probability as in NumPy."""
    lines = command(
        "predict", forms.path(form), "--scores", text="".join(f"{path}\n" for path in paths)
    ).splitlines()
    scores, labels = zip(*(line.split("\t") for line in lines), strict=True)
    expected = oracle.log_probabilities
    assert list(labels) == [oracle.labels[row.argmax()] for row in expected]
    assert list(labels) == 2 * oracle.labels
    difference = np.abs(np.array(scores, float) - expected.max(-1)).max()
    record_property("largest difference", float(difference))
    assert difference < (0.3 if form == "litert_int8" else 1e-4)
