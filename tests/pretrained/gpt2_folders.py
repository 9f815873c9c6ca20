"""Folders as Hugging Face writes GPT-2, with random weights, and its arithmetic in NumPy.

Nothing here is shared with the package.
"""

import json

import bpe_in_python
import numpy as np
import safetensors.numpy
from bert_in_numpy import ACTIVATIONS, layer_norm
from roberta_folders import MERGES

END = "<|endoftext|>"
PIECES = [*bpe_in_python.vocabulary(MERGES, []), END]
SIZES = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": len(PIECES),
    "n_embd": 24,
    "n_layer": 2,
    "n_head": 3,
    "n_inner": None,
    "n_positions": 23,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "bos_token_id": len(PIECES) - 1,
    "eos_token_id": len(PIECES) - 1,
}
TEXTS = ["A dog is", "the film", "", "I've 2 cats ☃"]


def ids_of(text):
    """The ids of a text alone."""
    ranks = {pair: number for number, pair in enumerate(MERGES)}
    return [PIECES.index(token) for token in bpe_in_python.tokens(text, ranks)]


def tensors_of(settings, prefix="transformer.", seed=0):
    """Random weights under the names of the file; kernels are `[in, out]`."""
    rng = np.random.default_rng(seed)
    width = settings["n_embd"]
    inner = settings["n_inner"] or 4 * width
    tensors = {}

    def add(name, *shape, mean=0.0, scale=None):
        scale = shape[0] ** -0.5 if scale is None else scale
        values = (mean + scale * rng.normal(size=shape)).astype("float32")
        tensors[f"{prefix}{name}"] = values

    add("wte.weight", settings["vocab_size"], width, scale=0.4)
    add("wpe.weight", settings["n_positions"], width, scale=0.4)
    for number in range(settings["n_layer"]):
        for norm in ("ln_1", "ln_2"):
            add(f"h.{number}.{norm}.weight", width, mean=1.0, scale=0.3)
            add(f"h.{number}.{norm}.bias", width, scale=0.3)
        for name, size, outputs in (
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, inner),
            ("mlp.c_proj", inner, width),
        ):
            add(f"h.{number}.{name}.weight", size, outputs)
            add(f"h.{number}.{name}.bias", outputs, scale=0.3)
    add("ln_f.weight", width, mean=1.0, scale=0.3)
    add("ln_f.bias", width, scale=0.3)
    if not settings.get("tie_word_embeddings", True):
        shape = settings["vocab_size"], width
        tensors["lm_head.weight"] = (0.4 * rng.normal(size=shape)).astype("float32")
    return tensors


def write_vocabulary(folder):
    """Writes `vocab.json` and `merges.txt`."""
    ids = {piece: number for number, piece in enumerate(PIECES)}
    (folder / "vocab.json").write_text(json.dumps(ids), "utf-8")
    pairs = "".join(f"{' '.join(pair)}\n" for pair in MERGES)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{pairs}", "utf-8")


def write_folder(folder, more=None, prefix="transformer.", dtype="float32", **changes):
    """Writes a checkpoint; returns its settings, and its tensors in float64 as the file has them.

    `prefix`: begins the names of the tensors; those of the first release have none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **changes}
    tensors = {k: values.astype(dtype) for k, values in tensors_of(settings, prefix).items()}
    safetensors.numpy.save_file({**tensors, **(more or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    write_vocabulary(folder)
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def random_rows(settings, lengths=(13, 5), seed=0):
    """Ids of texts, each after the id that begins it, and 0 after them."""
    rng = np.random.default_rng(seed)
    ids = np.zeros((len(lengths), max(lengths)), "int32")
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = rng.integers(0, settings["vocab_size"], length)
        row[0] = settings["bos_token_id"]
    return ids


def forward(weights, settings, ids):
    """Logits `[B, T, V]`: each position attends to itself and those before it."""
    weights = {name.removeprefix("transformer."): values for name, values in weights.items()}
    epsilon, heads = settings["layer_norm_epsilon"], settings["n_head"]
    x = weights["wte.weight"][ids] + weights["wpe.weight"][: ids.shape[1]]
    size = x.shape[-1] // heads
    for number in range(settings["n_layer"]):
        name = f"h.{number}"
        normed = layer_norm(weights, f"{name}.ln_1", x, epsilon)
        joined = _linear(weights, f"{name}.attn.c_attn", normed)
        query, key, value = np.split(joined, 3, axis=-1)
        out = np.zeros_like(x)
        for b, h, t in np.ndindex(len(x), heads, x.shape[1]):
            part = slice(h * size, (h + 1) * size)
            scores = key[b, : t + 1, part] @ query[b, t, part] / size**0.5
            scores = np.exp(scores - scores.max())
            out[b, t, part] = scores / scores.sum() @ value[b, : t + 1, part]
        x = x + _linear(weights, f"{name}.attn.c_proj", out)
        normed = layer_norm(weights, f"{name}.ln_2", x, epsilon)
        inner = _linear(weights, f"{name}.mlp.c_fc", normed)
        inner = ACTIVATIONS[settings["activation_function"]](inner)
        x = x + _linear(weights, f"{name}.mlp.c_proj", inner)
    output = weights.get("lm_head.weight", weights["wte.weight"])
    return layer_norm(weights, "ln_f", x, epsilon) @ output.T


def _linear(weights, name, x):
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]
