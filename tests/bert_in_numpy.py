"""BERT in float64 NumPy with the names of the file and loops over heads, as in Hugging Face.

It shares no code with the package.
"""

import math

import numpy as np


def linear(weights, name, x):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def layer_norm(weights, name, x, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    scale = weights.get(f"{name}.weight", weights.get(f"{name}.gamma"))
    shift = weights.get(f"{name}.bias", weights.get(f"{name}.beta"))
    return centred / deviation * scale + shift


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_new(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {"gelu": gelu, "gelu_new": gelu_new, "relu": lambda x: x * (x > 0)}


def attention(weights, name, x, real, heads):
    """Self-attention; `real` [B, S] marks the positions that may be attended to."""
    query, key, value = (linear(weights, f"{name}.self.{n}", x) for n in ("query", "key", "value"))
    size, out = x.shape[-1] // heads, np.zeros_like(x)
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = query[..., part] @ key[..., part].transpose(0, 2, 1) / math.sqrt(size)
        scores = np.where(real[:, None], scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        out[..., part] = scores / scores.sum(-1, keepdims=True) @ value[..., part]
    return linear(weights, f"{name}.output.dense", out)


def forward(weights, settings, ids, types):
    """Returns hidden states `[B, S, D]` and the logits of a classifier, if there is one.

    The logits are `[B, C]`, or `[B, S, C]` for a model without a pooler.
    """
    weights = {name.removeprefix("bert."): values for name, values in weights.items()}
    tables = [
        weights[f"embeddings.{n}_embeddings.weight"] for n in ("word", "position", "token_type")
    ]
    x = tables[0][ids] + tables[1][: ids.shape[1]] + tables[2][types]
    x = layer_norm(weights, "embeddings.LayerNorm", x, settings["layer_norm_eps"])
    x = blocks(weights, settings, x, ids != settings["pad_token_id"])
    if "classifier.weight" not in weights:
        return x, None
    if "pooler.dense.weight" not in weights:
        return x, linear(weights, "classifier", x)
    pooled = np.tanh(linear(weights, "pooler.dense", x[:, 0]))
    return x, linear(weights, "classifier", pooled)


def blocks(weights, settings, x, real):
    """Returns the output `[B, S, D]` of all blocks; `real`: see `attention`."""
    epsilon, heads = settings["layer_norm_eps"], settings["num_attention_heads"]
    for number in range(settings["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        x = x + attention(weights, f"{name}.attention", x, real, heads)
        x = layer_norm(weights, f"{name}.attention.output.LayerNorm", x, epsilon)
        inner = linear(weights, f"{name}.intermediate.dense", x)
        inner = ACTIVATIONS[settings["hidden_act"]](inner)
        x = x + linear(weights, f"{name}.output.dense", inner)
        x = layer_norm(weights, f"{name}.output.LayerNorm", x, epsilon)
    return x
