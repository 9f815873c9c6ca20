"""Converted BERTs against Hugging Face's own, with torch, in a process of its own.

`KERAS_TRANSFORMER_TRANSFORMERS` names the Python with torch and transformers; the default is the
Python of the tests.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from bert_folders import PIECES, SIZES

from keras_transformer.pretrained.read import read_checkpoint

pytestmark = pytest.mark.slow
PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("hugging_face_bert.py")
BASE = {key: value for key, value in SIZES.items() if key not in ("model_type", "architectures")}
LARGE = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 12,
         "num_attention_heads": 4}  # fmt: skip
CASES = {
    "labels": {"class": "BertForSequenceClassification", "config": BASE},
    "relu": {"class": "BertForSequenceClassification", "config": {**BASE, "hidden_act": "relu"}},
    "tanh form": {
        "class": "BertForSequenceClassification",
        "config": {**BASE, "hidden_act": "gelu_new"},
    },
    "12 layers": {"class": "BertForSequenceClassification", "config": {**BASE, **LARGE}},
    "float16": {"class": "BertModel", "config": BASE, "dtype": "float16"},
    "bfloat16": {"class": "BertModel", "config": BASE, "dtype": "bfloat16"},
    "masked": {"class": "BertForMaskedLM", "config": BASE},
    "pretraining": {"class": "BertForPreTraining", "config": BASE},
}


@functools.cache
def folder():
    """Returns the folder of all cases, computed once by the other Python."""
    probe = [PYTHON, "-c", "import torch, transformers"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place = pathlib.Path(tempfile.mkdtemp())
    (place / "cases.json").write_text(json.dumps(CASES))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([PYTHON, SCRIPT, place], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    for name in CASES:
        (place / name / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    return place


@pytest.mark.parametrize("name", CASES)
def test_states_and_logits(name):
    if folder() is None:
        pytest.skip(
            "torch and transformers are missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python "
            "that has them"
        )
    model = read_checkpoint(folder() / name).model
    expected = np.load(folder() / f"{name}.npz")
    ids = expected["ids"].astype("int32")
    tokens, real = model.parts.input, ids != 0
    states = model.encoder(tokens(ids, training=False), tokens.allowed(ids), training=False)
    np.testing.assert_allclose(states.numpy()[real], expected["states"][real], rtol=0, atol=1e-5)
    if "logits" in expected:
        logits = model(ids, training=False)
        np.testing.assert_allclose(logits, expected["logits"], rtol=0, atol=1e-5)
        assert model.config.labels == ("NEGATIVE", "NEUTRAL", "POSITIVE")
