"""Labels of photographs by DINOv2, in every form, against NumPy in float64."""

import dinov2_file
import dinov2_folders
import numpy as np
import pytest
import safetensors.numpy
import vit_folders
from forms import Forms, command
from packages import DINOV2

from keras_transformer import from_pretrained
from keras_transformer.pipelines import NearestNeighbors
from keras_transformer.tasks.images.files import encode_png

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


LABELS = [f"part {number}" for number in range(len(CORNERS))]


def views(photos):
    """Two views of each part: first one of all parts, then the other one."""
    return [
        part(photos, photo, top + down, left) for down in (0, SHIFT) for photo, top, left in CORNERS
    ]


def stored_weights():
    (path,) = DINOV2.folder().glob("*.onnx")
    return dinov2_file.read(path)


class Oracle:
    """The encoder in NumPy, and a classifier that names the part which an image resembles most."""

    def __init__(self, photos):
        stored, self.labels = stored_weights(), LABELS
        self.settings = dinov2_file.settings_of(stored, self.labels)
        self.tensors = dinov2_file.tensors_of(stored)
        self.images = views(photos)
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
def photos():
    return pytest.importorskip("sklearn.datasets").load_sample_images().images


@pytest.fixture(scope="module")
def oracle(photos):
    return Oracle(photos)


@pytest.fixture(scope="module")
def paths(photos, tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    images = views(photos)
    for number, image in enumerate(images):
        (folder / f"{number}.png").write_bytes(encode_png(image))
    return [folder / f"{number}.png" for number in range(len(images))]


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


def test_vectors_of_images_and_their_neighbors(paths, tmp_path, record_property):
    """The published layout, with its layer scales and interpolated positions, against NumPy."""
    weights = stored_weights()
    dinov2_file.write_vectors(tmp_path, weights)
    embedder = from_pretrained(tmp_path)
    vectors = embedder.embed(paths)
    settings = {**dinov2_file.settings_of(weights, LABELS), "model_type": "dinov2"}
    stored = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    tensors = {name: values.astype(np.float64) for name, values in stored.items()}
    pixels = np.array([embedder.read(path) for path in paths[:2]])
    expected, _ = dinov2_folders.forward(tensors, settings, pixels)
    difference = np.abs(vectors[:2] - expected[:, 0]).max()
    record_property("largest difference", float(difference))
    assert difference < 1e-4
    nearest = NearestNeighbors(vectors[: len(CORNERS)], LABELS, neighbors=1)
    found = nearest.classify(vectors[len(CORNERS) :])
    assert [result.label for result in found] == LABELS
