"""ViT's folders of Hugging Face's against their arithmetic in NumPy, and what is refused."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from vit_folders import IMAGENET, PLAIN, PREPROCESSOR, SIZES, forward, images_of, write_folder

from keras_transformer import ImageRecognizer, Run, from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.export import export_litert, export_saved_model
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.images.files import encode_png
from keras_transformer.training.converted import write_converted

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("hugging_face_vit.py")
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
CASES = {
    "labels": {"config": BASE, "images": {}},
    "mean": {"config": {**BASE, "qkv_bias": False}, "images": IMAGENET},
    "larger": {
        "config": {**BASE, "image_size": 32, "patch_size": 8, "num_hidden_layers": 6},
        "images": {"image_mean": [0.1, 0.5, 0.9], "image_std": [0.2, 0.3, 0.4]},
    },
}


@pytest.mark.parametrize("kind", KINDS)
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
    recognizer = from_pretrained(tmp_path / "hf")
    assert isinstance(recognizer, ImageRecognizer)
    images = list(images_of(settings, 5))
    _, logits = forward(tensors, settings, np.array(images))
    expected = [settings["id2label"][str(row.argmax())] for row in logits]
    assert recognizer(images) == expected
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    assert Run(run.path).task() == "image_classification" and not Run(run.path).vocabulary()
    assert ImageRecognizer.from_run(run.path)(images) == expected
    (tmp_path / "a.png").write_bytes(encode_png(images[0]))
    done = CliRunner().invoke(cli, ["predict", str(run.path)], input=f"{tmp_path / 'a.png'}\n")
    assert done.exit_code == 0 and done.stdout.splitlines() == expected[:1], done.output
    with pytest.raises(ValueError, match="`max_length` has no effect on a model for image_class"):
        from_pretrained(tmp_path / "hf", max_length=3)


def test_another_filter_is_noted(tmp_path):
    write_folder(tmp_path, preprocessor={**PREPROCESSOR, "resample": 3})
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.notes == [
        "images of another size are resized with a bilinear filter, not bicubic "
        "(`resample` in preprocessor_config.json)"
    ]
    assert checkpoint.model.config.resize
    write_folder(tmp_path, preprocessor={**PREPROCESSOR, "resample": 3, "do_resize": False})
    checkpoint = read_checkpoint(tmp_path)
    assert not checkpoint.notes and not checkpoint.model.config.resize


def change_json(path, changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["ViTForOther"]}, "`architectures` must be one of ViTForImageClass"),
        ({"problem_type": "regression"}, "`problem_type` must be null or 'single_label_cl"),
        ({"hidden_act": "gelu_fast"}, "`hidden_act` must be one of relu, "),
        ({"id2label": {"0": "a", "1": "a"}}, "`id2label` must be names of two labels or more"),
        ({"image_size": "12"}, "`image_size` must be a height and a width of at least 1"),
        ({"patch_size": 5}, "`patch_size` must be a divisor of 12 and 12, `image_size`"),
        ({"patch_size": 6}, r"projection\.weight must have the shape \[24, 3, 6, 6\]"),
        ({"image_size": 8}, "`size` must be 8 x 8, `image_size` of config.json"),
        ({"num_hidden_layers": 10**9}, r"layer\.9+\.intermediate\.dense\.weight is missing"),
        ({"intermediate_size": 10**11}, r"dense\.weight must have the shape \[10+, 24\]"),
        ({"image_size": 4 * 10**9}, "`size` must be 4000000000 x 4000000000"),
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
        ({"do_center_crop": True}, "`do_center_crop` must be false"),
        ({"do_rescale": False}, "`do_rescale` must be true"),
        ({"rescale_factor": 1.0}, "`rescale_factor` must be 1 / 255"),
        ({"size": {"shortest_edge": 12}}, "`size` must be a height and a width of at least 1"),
        ({"image_mean": [0.5]}, "`image_mean` must be a number for each of 3 channels"),
        ({"image_mean": "half"}, "`image_mean` must be a number for each of 3 channels"),
        ({"image_std": [0.5, 0.5, 0.0]}, "`image_std` must be a number .* channels, above 0"),
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


@pytest.mark.slow
def test_a_saved_model_of_files_and_a_tflite_file_of_pixels(tmp_path):
    """Both are kept only if they answer as the model in memory does."""
    settings, _ = write_folder(tmp_path / "hf", preprocessor={**PREPROCESSOR, **IMAGENET})
    recognizer, images = from_pretrained(tmp_path / "hf"), list(images_of(settings, 4))
    assert export_saved_model(recognizer, tmp_path / "saved", images)["agreement"] == 1
    files = [encode_png(image) for image in images]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path / "saved/1"))
        signature = meta.signature_def["serving_default"]
        feed = {signature.inputs["images"].name: files}
        labels = session.run(signature.outputs["label"].name, feed)
    assert [label.decode() for label in labels] == recognizer(images)
    assert export_litert(recognizer, tmp_path / "m.tflite", images)["agreement"] == 1


@functools.cache
def folder():
    """All cases, computed once by the other Python."""
    probe = [PYTHON, "-c", "import torch, transformers, PIL"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place = pathlib.Path(tempfile.mkdtemp())
    (place / "cases.json").write_text(json.dumps(CASES))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, SCRIPT, place], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return place


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_logits_and_answers_of_hugging_face(name):
    if folder() is None:
        pytest.skip(
            "torch, transformers or Pillow is missing: KERAS_TRANSFORMER_TRANSFORMERS names a "
            "Python that has them"
        )
    recognizer = from_pretrained(folder() / name)
    expected = np.load(folder() / f"{name}.npz")
    pixels = expected["images"].astype("float32")
    ours = recognizer.model(pixels, training=False)
    np.testing.assert_allclose(ours, expected["logits"], rtol=0, atol=1e-5)
    theirs = json.loads((folder() / f"{name}.json").read_text())
    for found, rows in zip(recognizer.classify(list(expected["images"])), theirs, strict=True):
        ranked = np.argsort(-found.probabilities)
        assert [recognizer.labels[n] for n in ranked] == [row["label"] for row in rows]
        scores = [row["score"] for row in rows]
        np.testing.assert_allclose(found.probabilities[ranked], scores, rtol=0, atol=1e-5)
