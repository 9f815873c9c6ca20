"""Folders as Hugging Face writes DistilBERT, with random weights and BERT's small vocabulary."""

import json

import numpy as np
import safetensors.numpy
from bert_folders import PIECES, SIZES, TAGGER, tokenizer_json

SIZES = {
    "model_type": "distilbert",
    "architectures": ["DistilBertForSequenceClassification"],
    "vocab_size": len(PIECES),
    "dim": 24,
    "n_layers": 3,
    "n_heads": 2,
    "hidden_dim": 38,
    "max_position_embeddings": 21,
    "activation": "gelu",
    "pad_token_id": 0,
    "id2label": SIZES["id2label"],
}
PLAIN = {"architectures": ["DistilBertModel"]}
TAGGER = {**TAGGER, "architectures": ["DistilBertForTokenClassification"]}


def tensors_of(settings, seed=0):
    """Random weights under the names of the file."""
    rng = np.random.default_rng(seed)
    width, inner = settings["dim"], settings["hidden_dim"]
    base = "" if settings["architectures"] == ["DistilBertModel"] else "distilbert."
    tensors = {}

    def add(name, *shape, mean=0.0, scale=None):
        scale = shape[-1] ** -0.5 if scale is None else scale
        tensors[name] = (mean + scale * rng.normal(size=shape)).astype("float32")

    def add_linear(name, outputs, inputs):
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs, scale=0.3)

    def add_norm(name):
        add(f"{name}.weight", width, mean=1.0, scale=0.3)
        add(f"{name}.bias", width, scale=0.3)

    add(f"{base}embeddings.word_embeddings.weight", settings["vocab_size"], width)
    rows = settings["max_position_embeddings"]
    add(f"{base}embeddings.position_embeddings.weight", rows, width)
    add_norm(f"{base}embeddings.LayerNorm")
    for number in range(settings["n_layers"]):
        name = f"{base}transformer.layer.{number}"
        for projection in ("q_lin", "k_lin", "v_lin", "out_lin"):
            add_linear(f"{name}.attention.{projection}", width, width)
        add_norm(f"{name}.sa_layer_norm")
        add_linear(f"{name}.ffn.lin1", inner, width)
        add_linear(f"{name}.ffn.lin2", width, inner)
        add_norm(f"{name}.output_layer_norm")
    if settings["architectures"] == SIZES["architectures"]:
        add_linear("pre_classifier", width, width)
    if settings["architectures"][0].endswith("QuestionAnswering"):
        add_linear("qa_outputs", 2, width)
    if settings["architectures"][0].endswith("Classification"):
        add_linear("classifier", len(settings["id2label"]), width)
    return tensors


def write_folder(folder, more=None, lines=True, dtype="float32", **changes):
    """Writes a checkpoint, as `bert_folders.write_folder` does."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **changes}
    tensors = {name: values.astype(dtype) for name, values in tensors_of(settings).items()}
    safetensors.numpy.save_file({**tensors, **(more or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    if lines:
        (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    else:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()), "utf-8")
    return settings, {name: values.astype("float64") for name, values in tensors.items()}
