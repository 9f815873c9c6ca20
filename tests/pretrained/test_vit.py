"""ViT's folders of Hugging Face's against their arithmetic in NumPy, and what is refused."""

import json

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from image_answers import compare
from marks import slow, slow_except
from vit_folders import IMAGENET, PLAIN, PREPROCESSOR, SIZES, forward, images_of, write_folder

from keras_transformer import from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pipelines import ImageClassificationPipeline, Run
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.images.files import encode_png
from keras_transformer.training.converted import write_converted

BASE = {key: SIZES[key] for key in SIZES if key not in ("model_type", "architectures")}
KINDS = {
    "labels": {},
    "no file for images": {"preprocessor": None},
    "ImageNet's mean": {"preprocessor": {**PREPROCESSOR, **IMAGENET}},
    "one size": {"preprocessor": {**PREPROCESSOR, "size": 12}},
    "values from 0 to 1": {"preprocessor": {**PREPROCESSOR, "do_normalize": False}},
    "no biases": {"qkv_bias": False},
    "float16": {"dtype": "float16"},
    "without a head": PLAIN,
}
CROP = {"do_center_crop": True, "crop_size": {"height": 12, "width": 12}}
CENTER = {"center_crop": True}
SHAPES = [(12, 12), (12, 12), (40, 31), (25, 60), (7, 9)]
LABELS = ("ViT", "ForImageClassification")
CASES = {
    "labels": {"model": LABELS, "config": BASE, "images": {}, "sizes": SHAPES},
    "mean": {
        "model": LABELS,
        "config": {**BASE, "qkv_bias": False},
        "images": {**IMAGENET, "resample": 3},
        "sizes": SHAPES,
    },
    "larger": {
        "model": LABELS,
        "config": {**BASE, "image_size": 32, "patch_size": 8, "num_hidden_layers": 6},
        "images": {
            "image_mean": [0.1, 0.5, 0.9],
            "image_std": [0.2, 0.3, 0.4],
            "resample": 1,
            "size": {"shortest_edge": 36},
            "do_center_crop": True,
        },
        "sizes": [(32, 32), (36, 50), (90, 41)],
    },
    "encoder": {"model": ("ViT", "Model"), "config": BASE, "images": {}, "sizes": SHAPES},
}


@pytest.mark.parametrize(
    "kind", slow_except(KINDS, "no file for images", "one size", "no biases", "without a head")
)
def test_states_and_logits(kind, tmp_path):
    settings, tensors = write_folder(tmp_path, **KINDS[kind])
    images = images_of(settings)
    statistics = {}
    if kind == "ImageNet's mean":
        statistics = {"mean": IMAGENET["image_mean"], "deviation": IMAGENET["image_std"]}
    if kind == "values from 0 to 1":
        statistics = {"mean": 0.0, "deviation": 1.0}
    expected, logits = forward(tensors, settings, images, **statistics)
    checkpoint = read_checkpoint(tmp_path)
    model, pixels = checkpoint.model, images.astype("float32")
    states = model.encoder(model.parts.input(pixels, training=False), training=False)
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-5)
    assert ("has no head" in "".join(checkpoint.notes)) == (logits is None)
    if logits is not None:
        np.testing.assert_allclose(model(pixels, training=False), logits, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_images_get_the_labels_of_the_checkpoint_in_a_run_as_well(tmp_path):
    settings, tensors = write_folder(tmp_path / "hf")
    image_classifier = from_pretrained(tmp_path / "hf")
    assert isinstance(image_classifier, ImageClassificationPipeline)
    images = list(images_of(settings, 5))
    _, logits = forward(tensors, settings, np.array(images))
    expected = [settings["id2label"][str(row.argmax())] for row in logits]
    assert image_classifier(images) == expected
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert Run(run.path).task() == "image_classification" and not Run(run.path).vocabulary()
    assert ImageClassificationPipeline.from_run(run.path)(images) == expected
    (tmp_path / "a.png").write_bytes(encode_png(images[0]))
    done = CliRunner().invoke(cli, ["predict", str(run.path)], input=f"{tmp_path / 'a.png'}\n")
    assert done.exit_code == 0 and done.stdout.splitlines() == expected[:1], done.output
    with pytest.raises(ValueError, match="`max_length` has no effect on a model for image_class"):
        from_pretrained(tmp_path / "hf", max_length=3)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        slow({}, {"resize": True, "interpolation": "bilinear"}),
        ({"resample": None}, {"resize": True, "interpolation": "bilinear"}),
        slow({"resample": 0, "size": None}, {"resize": True, "interpolation": "nearest"}),
        ({"resample": 1, "do_resize": False}, {}),
        slow({"do_resize": False, **CROP}, {"center_crop": True}),
        ({"resample": 3, **CROP}, {"resize": True, "interpolation": "bicubic"}),
        slow(
            {"resample": 3, "size": {"height": 15, "width": 12}, **CROP},
            {"resize": True, "interpolation": "bicubic", "resize_to": (15, 12), **CENTER},
        ),
        (
            {"resample": 1, "size": {"shortest_edge": 13}, **CROP},
            {"resize": True, "interpolation": "lanczos", "resize_to": (13,), **CENTER},
        ),
    ],
)
def test_images_are_prepared_as_the_file_says(changes, expected, tmp_path):
    write_folder(tmp_path, preprocessor={**PREPROCESSOR, **changes})
    checkpoint = read_checkpoint(tmp_path)
    config = checkpoint.model.config
    none = {"resize": False, "interpolation": None, "resize_to": (), "center_crop": False}
    assert {name: getattr(config.input, name) for name in none} == {**none, **expected}
    assert not checkpoint.notes


def change_json(path, changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["ViTForOther"]}, "`architectures` must be one of ViTForImageClass"),
        ({"problem_type": "regression"}, "is a model of numbers, not of labels"),
        ({"problem_type": "multi_label_classification"}, "with several labels per image"),
        ({"id2label": {"0": "a"}}, "is a model with one logit"),
        ({"hidden_act": "gelu_fast"}, "`hidden_act` must be one of relu, "),
        ({"id2label": {"0": "a", "1": "a"}}, "`id2label` must be names of two labels or more"),
        ({"image_size": "12"}, "`image_size` must be a height and a width of at least 1"),
        ({"patch_size": 5}, "`patch_size` must be a divisor of 12 and 12, the size of images"),
        ({"patch_size": 6}, r"projection\.weight must have the shape \[24, 3, 6, 6\]"),
        ({"image_size": 8}, "`size` must be 8 x 8, `image_size` of config.json"),
        ({"num_hidden_layers": 10**9}, r"layer\.9+\.intermediate\.dense\.weight is missing"),
        ({"intermediate_size": 10**11}, r"dense\.weight must have the shape \[10+, 24\]"),
        ({"image_size": 4 * 10**9}, "`size` must be 4000000000 x 4000000000"),
        ({"layer_norm_eps": 10**400}, "`layer_norm_eps` must be a number"),
        ({"num_channels": 4}, "`num_channels` must be 1 or 3"),
    ],
)
def test_settings_that_cannot_be_expressed_are_named(changes, message, tmp_path):
    write_folder(tmp_path)
    change_json(tmp_path / "config.json", changes)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"do_center_crop": True}, "`crop_size` must be a height and a width of at least 1"),
        ({"do_center_crop": True, "crop_size": 9}, "`crop_size` must be 12 x 12, `image_size` of"),
        ({"do_center_crop": "yes"}, "`do_center_crop` must be false or true"),
        ({"do_pad": True}, "`do_pad` must be false"),
        ({"do_rescale": False}, "`do_rescale` must be true"),
        ({"resample": 6}, "`resample` must be one of 0 .nearest., 1 .lanczos., "),
        ({"resample": "bicubic"}, "`resample` must be one of 0 .nearest., "),
        ({"size": {"height": 20, "width": 20}}, "`size` must be 12 x 12, `image_size` of config"),
        ({**CROP, "size": {"height": 20, "width": 11}}, "`size` must be at least 12 x 12, `crop_"),
        ({**CROP, "size": {"shortest_edge": 11}}, "`size` must be at least 12 x 12, `crop_size`"),
        ({**CROP, "size": {"shortest_edge": 10**9}}, "`size` must be at most 65535 pixels"),
        ({**CROP, "size": {"shortest_edge": 0}}, "`size` must be height and width, or one shor"),
        (
            {**CROP, "size": {"shortest_edge": 14, "longest_edge": 20}},
            "`size` must be height and width, or one shortest edge above 0",
        ),
        (
            {**CROP, "size": {"height": 14, "width": 14, "longest_edge": 20}},
            "`size` must be a height and a width of at least 1",
        ),
        ({"rescale_factor": 1.0}, "`rescale_factor` must be 1 / 255"),
        ({"rescale_factor": 10**400}, "`rescale_factor` must be a number"),
        ({"image_mean": 10**400}, "`image_mean` must be a number for each of 3 channels"),
        ({"image_mean": True}, "`image_mean` must be a number for each of 3 channels"),
        ({"size": {"shortest_edge": 12}}, "`size` must be 12 x 12, `image_size` of config.json"),
        ({"image_mean": [0.5]}, "`image_mean` must be a number for each of 3 channels"),
        ({"image_mean": "half"}, "`image_mean` must be a number for each of 3 channels"),
        ({"image_std": [0.5, 0.5, 0.0]}, "`image_std` must be a number .* channels, above 0"),
        (
            {"image_processor_type": "LevitImageProcessor"},
            "`image_processor_type` must be a processor of ViT, DeiT or BiT. Received: 'LevitIma",
        ),
        (
            {"image_processor_type": None, "feature_extractor_type": "CLIPFeatureExtractor"},
            "`feature_extractor_type` must be a processor of ViT, DeiT or BiT. Received: 'CLIP",
        ),
        (
            {"image_processor_type": 7},
            "`image_processor_type` must be a processor of ViT, DeiT or BiT",
        ),
    ],
)
def test_preparations_that_cannot_be_expressed_are_named(changes, message, tmp_path):
    write_folder(tmp_path)
    change_json(tmp_path / "preprocessor_config.json", changes)
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(tmp_path)
    assert "preprocessor_config.json" in str(error.value)


def test_tensors_without_a_place_are_named(tmp_path):
    write_folder(tmp_path, more={"vit.strange": np.zeros(3, "float32")})
    with pytest.raises(ValueError, match=r"Unused: vit\.strange\."):
        read_checkpoint(tmp_path)


@pytest.mark.long
@pytest.mark.slow
def test_a_saved_model_of_files_and_a_tflite_file_of_pixels(tmp_path):
    """Both are kept only if they answer as the model in memory does."""
    settings, _ = write_folder(tmp_path / "hf", preprocessor={**PREPROCESSOR, **IMAGENET})
    image_classifier, images = from_pretrained(tmp_path / "hf"), list(images_of(settings, 4))
    assert export_saved_model(image_classifier, tmp_path / "saved", images)["agreement"] == 1
    files = [encode_png(image) for image in images]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        feed = {signature.inputs["images"].name: files}
        labels = session.run(signature.outputs["label"].name, feed)
    assert [label.decode() for label in labels] == image_classifier(images)
    assert export_litert(image_classifier, tmp_path / "m.tflite", images)["agreement"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_pixels_states_logits_and_answers_of_hugging_face(name):
    compare(CASES, name)
