"""Folders as Hugging Face writes ELECTRA, with random weights, and its arithmetic in NumPy."""

import json

import bert_folders
import bert_in_numpy
import numpy as np
import safetensors.numpy
from bert_folders import PIECES

SIZES = {
    **bert_folders.SIZES,
    "model_type": "electra",
    "architectures": ["ElectraForSequenceClassification"],
    "embedding_size": 10,
}
TAGGER = {**bert_folders.TAGGER, "architectures": ["ElectraForTokenClassification"]}


def tensors_of(settings, seed=0):
    """Random weights under the names of the file, most of which are BERT's."""
    rng = np.random.default_rng(seed + 1)
    width, narrow = settings["hidden_size"], settings["embedding_size"]
    kind = settings["architectures"][0]
    theirs = bert_folders.tensors_of({**settings, "architectures": ["BertModel"]}, seed)
    base = "" if kind.endswith("Model") else "electra."
    tensors = {
        base + name: values[..., :narrow] if name.startswith("embeddings.") else values
        for name, values in theirs.items() if not name.startswith("pooler")
    }  # fmt: skip

    def add(name, outputs, inputs):
        kernel = rng.normal(size=(outputs, inputs)) * inputs**-0.5
        tensors[f"{name}.weight"] = kernel.astype("float32")
        tensors[f"{name}.bias"] = rng.normal(size=outputs).astype("float32") / 3

    if narrow != width:
        add(f"{base}embeddings_project", width, narrow)
    count = len(settings["id2label"])
    if kind.endswith("SequenceClassification"):
        add("classifier.dense", width, width)
        add("classifier.out_proj", count, width)
    if kind.endswith("TokenClassification"):
        add("classifier", count, width)
    return {name: np.ascontiguousarray(values) for name, values in tensors.items()}


def write_folder(folder, more=None, **changes):
    """Writes a checkpoint, as `bert_folders.write_folder` does."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **changes}
    tensors = tensors_of(settings)
    safetensors.numpy.save_file({**tensors, **(more or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def forward(weights, settings, ids, types):
    """Hidden states `[B, S, D]`, and logits `[B, C]` or `[B, S, C]` of a head, in NumPy."""
    weights = {name.removeprefix("electra."): values for name, values in weights.items()}
    tables = [
        weights[f"embeddings.{n}_embeddings.weight"] for n in ("word", "position", "token_type")
    ]
    x = tables[0][ids] + tables[1][: ids.shape[1]] + tables[2][types]
    x = bert_in_numpy.layer_norm(weights, "embeddings.LayerNorm", x, settings["layer_norm_eps"])
    if "embeddings_project.weight" in weights:
        x = bert_in_numpy.linear(weights, "embeddings_project", x)
    x = bert_in_numpy.blocks(weights, settings, x, ids != settings["pad_token_id"])
    if "classifier.weight" in weights:
        return x, bert_in_numpy.linear(weights, "classifier", x)
    if "classifier.dense.weight" not in weights:
        return x, None
    pooled = bert_in_numpy.gelu(bert_in_numpy.linear(weights, "classifier.dense", x[:, 0]))
    return x, bert_in_numpy.linear(weights, "classifier.out_proj", pooled)
