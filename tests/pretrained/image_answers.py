"""Comparison of converted vision models with `transformers`, run by another Python."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from keras_transformer import from_pretrained
from keras_transformer.tasks.images.files import encode_png

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("hugging_face_images.py")


@functools.cache
def _computed(cases):
    """Returns the folder with the results of all cases, a JSON text; `None` without torch."""
    probe = [PYTHON, "-c", "import torch, transformers, PIL"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place = pathlib.Path(tempfile.mkdtemp())
    (place / "cases.json").write_text(cases)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, SCRIPT, place], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return place


def compare(cases, name):
    """Compares prepared pixels, hidden states, logits, labels and scores of a case.

    Args:
        cases: All cases of a test file; see `hugging_face_images.py`.
        name: Name of the case.
    """
    folder = _computed(json.dumps(cases))
    if folder is None:
        pytest.skip(
            "torch, transformers or Pillow is missing: KERAS_TRANSFORMER_TRANSFORMERS names a "
            "Python that has them"
        )
    image_classifier, expected = from_pretrained(folder / name), np.load(folder / f"{name}.npz")
    images = [expected[f"image_{number}"] for number in range(len(cases[name]["sizes"]))]
    pixels = np.array([image_classifier.read(image) for image in images])
    np.testing.assert_array_equal(pixels, expected["prepared"])
    model, pixels = image_classifier.model, pixels.astype("float32")
    states = model.encoder(model.parts.input(pixels, training=False), training=False)
    np.testing.assert_allclose(states, expected["states"], rtol=0, atol=1e-5)
    if not expected["logits"].size:
        return
    logits = model(pixels, training=False)
    np.testing.assert_allclose(logits, expected["logits"], rtol=0, atol=1e-5)
    answers = json.loads((folder / f"{name}.json").read_text())
    files = [encode_png(image) for image in images]
    for result, rows in zip(image_classifier.classify(files), answers, strict=True):
        ranked = np.argsort(-result.probabilities)
        assert [image_classifier.labels[n] for n in ranked] == [row["label"] for row in rows]
        scores = [row["score"] for row in rows]
        np.testing.assert_allclose(result.probabilities[ranked], scores, rtol=0, atol=1e-5)
