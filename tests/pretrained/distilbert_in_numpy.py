"""DistilBERT as Hugging Face computes it: float64 NumPy, from the file's own names.

Nothing here is shared with the package.
"""

import math

import numpy as np
from bert_in_numpy import ACTIVATIONS, layer_norm, linear

EPSILON = 1e-12


def attention(weights, name, x, real, heads):
    """`real` [B, S]: which positions may be attended to."""
    query, key, value = (linear(weights, f"{name}.{n}_lin", x) for n in "qkv")
    size, out = x.shape[-1] // heads, np.zeros_like(x)
    for b, h, t in np.ndindex(x.shape[0], heads, x.shape[1]):
        part = slice(h * size, (h + 1) * size)
        scores = key[b, real[b], part] @ (query[b, t, part] / math.sqrt(size))
        scores = np.exp(scores - scores.max())
        out[b, t, part] = scores / scores.sum() @ value[b, real[b], part]
    return linear(weights, f"{name}.out_lin", out)


def forward(weights, settings, ids):
    """Hidden states `[B, S, D]` and, where there is a classifier, logits: `[B, C]` of texts, and
    `[B, S, C]` of tokens, if there is no layer before it.
    """
    weights = {name.removeprefix("distilbert."): values for name, values in weights.items()}
    tables = [weights[f"embeddings.{n}_embeddings.weight"] for n in ("word", "position")]
    x = tables[0][ids] + tables[1][: ids.shape[1]]
    x = layer_norm(weights, "embeddings.LayerNorm", x, EPSILON)
    real = ids != settings["pad_token_id"]
    for number in range(settings["n_layers"]):
        name = f"transformer.layer.{number}"
        heads = attention(weights, f"{name}.attention", x, real, settings["n_heads"])
        x = layer_norm(weights, f"{name}.sa_layer_norm", x + heads, EPSILON)
        inner = ACTIVATIONS[settings["activation"]](linear(weights, f"{name}.ffn.lin1", x))
        inner = linear(weights, f"{name}.ffn.lin2", inner)
        x = layer_norm(weights, f"{name}.output_layer_norm", x + inner, EPSILON)
    if "classifier.weight" not in weights:
        return x, None
    if "pre_classifier.weight" not in weights:
        return x, linear(weights, "classifier", x)
    pooled = np.maximum(linear(weights, "pre_classifier", x[:, 0]), 0)
    return x, linear(weights, "classifier", pooled)
