"""DeiT's folders of Hugging Face's against their arithmetic in NumPy, and what is refused."""

import json

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from image_answers import compare
from vit_folders import IMAGENET, PREPROCESSOR, SIZES, TEACHER, forward, images_of, write_folder

from keras_transformer import from_pretrained
from keras_transformer.export import LiteRTOptions, export_litert, export_saved_model
from keras_transformer.pipelines import ImageClassificationPipeline
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.images.files import ImageSize, encode_png
from keras_transformer.training.converted import write_converted
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.training_run import train

BOTH, ONE, BARE = [TEACHER], ["DeiTForImageClassification"], ["DeiTModel"]
# What DeiT does with images, at a smaller size.
STEPS = {**IMAGENET, "resample": 3, "size": {"height": 15, "width": 15}, "do_center_crop": True}
STEPS["crop_size"] = {"height": 12, "width": 12}
UNCROPPED = {**PREPROCESSOR, "do_center_crop": False}
BASE = {key: SIZES[key] for key in SIZES if key not in ("model_type", "architectures")}
SHAPES = [(12, 12), (15, 15), (40, 31), (25, 60)]
CASES = {
    name: {"model": ("DeiT", head), "config": BASE, "images": STEPS, "sizes": SHAPES}
    for name, head in (
        ("teacher", "ForImageClassificationWithTeacher"),
        ("labels", "ForImageClassification"),
        ("encoder", "Model"),
    )
}


def write(folder, architectures=BOTH, preprocessor=UNCROPPED, **changes):
    changes = {"model_type": "deit", "architectures": architectures, **changes}
    return write_folder(folder, preprocessor=preprocessor, **changes)


@pytest.mark.parametrize("architectures", [BOTH, ONE, BARE])
def test_states_and_logits(architectures, tmp_path):
    settings, tensors = write(tmp_path, architectures)
    images = images_of(settings)
    expected, logits = forward(tensors, settings, images)
    checkpoint = read_checkpoint(tmp_path)
    model, pixels = checkpoint.model, images.astype("float32")
    states = model.encoder(model.parts.input(pixels, training=False), training=False)
    assert states.shape == (3, 2 + 9, 24)
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-5)
    assert ("has no head" in "".join(checkpoint.notes)) == (architectures == BARE)
    if architectures != BARE:
        np.testing.assert_allclose(model(pixels, training=False), logits, rtol=0, atol=1e-5)


def test_settings_that_are_missing_are_those_of_deit(tmp_path):
    """The processor's own defaults: 256 x 256 pixels, bicubic, of which 224 x 224 are used."""
    small = {"num_hidden_layers": 1, "image_size": 224, "patch_size": 112}
    write(tmp_path, preprocessor={"do_normalize": None}, **small)
    size = ImageSize.of(read_checkpoint(tmp_path).model.config)
    assert size == ImageSize(224, 224, 3, True, "bicubic", (256, 256), True)
    write(tmp_path / "none", preprocessor=None)
    checkpoint = read_checkpoint(tmp_path / "none")
    assert ImageSize.of(checkpoint.model.config) == ImageSize(12, 12, 3, True, "bicubic")
    assert "is missing, so pixels are scaled to -1 to 1" in checkpoint.notes[0]


@pytest.mark.parametrize(
    ("settings", "preprocessor", "message"),
    [
        ({"architectures": ["ViTModel"]}, {}, "`architectures` must be one of DeiTForImageClass"),
        ({"architectures": ONE}, {}, "the tensor classifier.weight is missing"),
        ({"image_size": 16}, {"size": 16}, r"embeddings must have the shape \[1, 18, 24\]"),
        ({"id2label": {"0": "a", "1": "b"}}, {}, r"cls_classifier.weight must have the shape \[2,"),
        ({"num_hidden_layers": 10**9}, {}, r"layer\.9+\.intermediate\.dense\.weight is missing"),
        ({}, {"do_center_crop": None}, "`crop_size` must be 12 x 12, `image_size` of config.json"),
    ],
)
def test_files_that_do_not_fit_are_refused(settings, preprocessor, message, tmp_path):
    write(tmp_path, preprocessor={**UNCROPPED, **preprocessor})
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.parametrize(
    ("architectures", "unused"),
    [(ONE, "distillation_classifier.weight"), (BOTH, "deit.embeddings.strange")],
)
def test_tensors_without_a_place_are_named(architectures, unused, tmp_path):
    write(tmp_path, architectures, more={unused: np.zeros((3, 24), "float32")})
    with pytest.raises(ValueError, match=f"Unused: {unused}"):
        read_checkpoint(tmp_path)


def test_a_missing_distillation_token_is_named(tmp_path):
    write(tmp_path)
    tensors = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    del tensors["deit.embeddings.distillation_token"]
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"deit\.embeddings\.distillation_token is missing"):
        read_checkpoint(tmp_path)


@pytest.mark.long
@pytest.mark.slow
def test_a_run_its_exports_and_plots_agree(tmp_path):
    """Images of the model's size and others are resized and cropped everywhere."""
    settings, _ = write(tmp_path / "hf", preprocessor={**PREPROCESSOR, **STEPS})
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    image_classifier = ImageClassificationPipeline.from_run(run.path)
    rng = np.random.default_rng(1)
    images = [rng.integers(0, 256, (*shape, 3)).astype("uint8") for shape in SHAPES]
    expected = from_pretrained(tmp_path / "hf")(images)
    assert image_classifier(images) == expected
    assert image_classifier.attention(images[2])["class"].weights.shape == (2, 3, 3, 3)
    assert export_saved_model(image_classifier, tmp_path / "saved", images)["agreement"] == 1
    files = [encode_png(image) for image in images]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        feed = {signature.inputs["images"].name: files}
        labels = session.run(signature.outputs["label"].name, feed)
    assert [label.decode() for label in labels] == expected
    assert export_litert(image_classifier, tmp_path / "m.tflite", images)["agreement"] == 1
    report = export_litert(
        image_classifier, tmp_path / "i.tflite", images, LiteRTOptions(quantize="int8", max_loss=9)
    )
    assert report["quantize"] == "int8"


@pytest.mark.long
@pytest.mark.slow
def test_a_run_can_be_trained_further(tmp_path):
    """All parts, with their two classifiers, start from the checkpoint."""
    write(tmp_path / "hf", preprocessor={**PREPROCESSOR, **STEPS})
    write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    rng = np.random.default_rng(2)
    for split in ("train", "validation"):
        for label in ("cat", "dog", "tabby, tabby cat"):
            (tmp_path / split / label).mkdir(parents=True)
            for number in range(2):
                image = rng.integers(0, 256, (20, 17, 3)).astype("uint8")
                (tmp_path / split / label / f"{number}.png").write_bytes(encode_png(image))
    config = tmp_path / "fine.toml"
    config.write_text(
        f"""
        [task]
        kind = "image_classification"
        [model]
        start_from = "{tmp_path / "run"}"
        [data]
        source = "images"
        train = "{tmp_path / "train"}"
        validation = "{tmp_path / "validation"}"
        image_size = [12, 12]
        interpolation = "bicubic"
        resize_to = [15, 15]
        [training]
        updates = 2
        """
    )
    train(load_settings(config), tmp_path / "fine")
    ours, theirs = (
        ImageClassificationPipeline.from_run(tmp_path / name) for name in ("fine", "run")
    )
    assert ours.size == theirs.size and ours.model.config.head.classifiers == 2
    for name in ("output_layer", "output_layer_1"):
        weights = [getattr(each.model, name).kernel.numpy() for each in (ours, theirs)]
        assert 0 < np.abs(weights[0] - weights[1]).max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_pixels_states_logits_and_answers_of_hugging_face(name):
    compare(CASES, name)
