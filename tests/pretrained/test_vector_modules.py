"""Layers after pooling, and vectors of language models, in folders of sentence-transformers."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import llama_folders
import numpy as np
import pytest
import safetensors.numpy
from sentence_folders import PROMPTS, add_modules, after_pooling, tanh, write_decoder
from test_sentence_encoders import CLS, bert, vectors_of

from keras_transformer import from_pretrained
from keras_transformer.pretrained.read import read_checkpoint

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
IDENTITY = {"activation_function": "torch.nn.modules.linear.Identity"}
NORMALIZE = ("Normalize", None)
# Modules after pooling: those of LaBSE, and several in another order.
MODULES = {
    "labse": [("Dense", tanh(24, 24)), NORMALIZE],
    "several": [
        NORMALIZE,
        ("Dense", {**tanh(24, 7), **IDENTITY, "bias": False}),
        ("LayerNorm", {"dimension": 7}),
        ("Dense", tanh(7, 5, module_input_name="sentence_embedding")),
    ],
}
SAME = {"rtol": 0, "atol": 1e-5}


@pytest.mark.parametrize("name", MODULES)
def test_layers_after_pooling_equal_the_reference(tmp_path, name):
    ids, real, hidden = bert(tmp_path)
    tensors = add_modules(tmp_path, 24, "cls_token", MODULES[name])
    checkpoint = read_checkpoint(tmp_path)
    expected = after_pooling(vectors_of(hidden, real, CLS, False), MODULES[name], tensors)
    np.testing.assert_allclose(checkpoint.model(ids), expected, **SAME)
    assert checkpoint.notes == []


@pytest.mark.parametrize("kind", ["qwen3", "qwen2"])
def test_the_last_token_of_a_language_model_equals_the_reference(tmp_path, kind):
    settings, tensors = write_decoder(tmp_path, kind)
    add_modules(tmp_path, 24, "lasttoken", [NORMALIZE])
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.task == "embedding" and checkpoint.notes == []
    tokenizer, ends = checkpoint.tokenizers.source, settings["eos_token_id"]
    rows = [[*llama_folders.ids_of(text, "qwen2"), ends] for text in llama_folders.TEXTS]
    width = max(map(len, rows))
    for side in (slice(None), slice(None, None, -1)):  # padding after and before the texts
        ids = np.full((len(rows), width), tokenizer.pad_id, "int32")
        for line, row in zip(ids, rows, strict=True):
            line[side][: len(row)] = row[side]
        found = np.array(checkpoint.model(ids))
        for vector, row in zip(found, rows, strict=True):
            states, _ = llama_folders.forward(tensors, settings, np.array([row]))
            expected = states[0, -1] / np.linalg.norm(states[0, -1])
            np.testing.assert_allclose(vector, expected, **SAME)
    text, expected = llama_folders.TEXTS[3], rows[3]
    assert from_pretrained(tmp_path).codec.encode([text])[0]["source"].numpy().tolist() == [
        expected
    ]


def replace(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


BROKEN = {
    "residual": (
        lambda place: replace(place / "config.json", use_residual=True),
        "2_Dense/config.json: `use_residual` must be false. Received: True.",
    ),
    "activation": (
        lambda place: replace(place / "config.json", activation_function="own.Tanh"),
        "`activation_function` must be one of PyTorch's Identity, Tanh, .* Received: 'own.Tanh'.",
    ),
    "tokens": (
        lambda place: replace(place / "config.json", module_input_name="token_embeddings"),
        "`module_input_name` must be 'sentence_embedding' or null. Received: 'token_embeddings'.",
    ),
    "width": (
        lambda place: replace(place / "config.json", out_features=10**9),
        r"`out_features` must be that of linear.weight, \[24, 24\]. Received: 1000000000.",
    ),
    "renamed": (
        lambda place: (place / "model.safetensors").rename(place / "pytorch_model.bin"),
        "2_Dense/pytorch_model.bin is not a file of PyTorch.",
    ),
    "no weights": (
        lambda place: (place / "model.safetensors").unlink(),
        "2_Dense must contain weights in model.safetensors or pytorch_model.bin.",
    ),
    "unused": (
        lambda place: safetensors.numpy.save_file(
            {**safetensors.numpy.load_file(place / "model.safetensors"), "x": np.zeros(2)[:1]
             .astype("float32")}, place / "model.safetensors",
        ),
        "every tensor must be used by the model. Unused: 2_Dense/x.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_damaged_modules_are_refused(tmp_path, case):
    folder = tmp_path / "checkpoint"
    bert(folder)
    add_modules(folder, 24, "cls_token", MODULES["labse"])
    change, message = BROKEN[case]
    change(folder / "2_Dense")
    with pytest.raises(ValueError, match=message) as error:
        read_checkpoint(folder)
    assert "\n" not in str(error.value)


def test_a_layer_of_another_width_is_refused(tmp_path):
    bert(tmp_path)
    add_modules(tmp_path, 24, "cls_token", [("Dense", tanh(7, 5))])
    with pytest.raises(ValueError, match=r"2_Dense/linear.weight must have the shape \[5, 24\]"):
        read_checkpoint(tmp_path)


def test_a_language_model_without_an_end_of_texts_is_refused(tmp_path):
    write_decoder(tmp_path, after=None)
    add_modules(tmp_path, 24, "lasttoken")
    with pytest.raises(ValueError, match="`post_processor` must be one that puts a token after"):
        read_checkpoint(tmp_path)


@functools.cache
def answers():
    """Returns texts, and for each case our pipeline and the vectors of sentence-transformers."""
    probe = [PYTHON, "-c", "import torch, sentence_transformers"]
    if subprocess.run(probe, capture_output=True).returncode:
        return None
    place = pathlib.Path(tempfile.mkdtemp())
    prompts = {"prompts": PROMPTS, "default_prompt_name": None}
    write_decoder(place / "qwen3")
    add_modules(place / "qwen3", 24, "lasttoken", [NORMALIZE], **prompts)
    for name, modules in MODULES.items():
        bert(place / name)
        add_modules(place / name, 24, "cls_token", modules, **prompts)
    texts = [text for text in llama_folders.TEXTS if text.isascii()] + ["the film " * 3]
    cases = {
        str(place / name): {"texts": texts, "prompts": ["", "query"]}
        for name in ("qwen3", *MODULES)
    }
    (place / "cases.json").write_text(json.dumps(cases))
    script = pathlib.Path(__file__).with_name("sentence_transformers_answers.py")
    subprocess.run([PYTHON, script, place], check=True, capture_output=True)
    return texts, json.loads((place / "answers.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3", *MODULES])
def test_vectors_equal_those_of_sentence_transformers(name):
    found = answers()
    if found is None:
        pytest.skip(
            "torch and sentence-transformers are missing: KERAS_TRANSFORMER_TRANSFORMERS names a "
            "Python with them"
        )
    texts, of_cases = found
    (path,) = (path for path in of_cases if pathlib.Path(path).name == name)
    pipeline = from_pretrained(path)
    for prompt, (left, right, alone) in of_cases[path].items():
        vectors = pipeline.embed(texts, prompt=prompt)
        # Positions of BERT are absolute: padding before a text would shift them.
        for expected in (right, alone, *([left] if name == "qwen3" else [])):
            np.testing.assert_allclose(vectors, expected, **SAME)
