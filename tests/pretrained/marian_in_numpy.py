"""Marian in float64 NumPy with the names of the file and loops, as Hugging Face computes it.

It shares no code with the package. Weights are a dictionary of arrays by the names of the file;
settings are the dictionary of `config.json`.
"""

import json
import math

import numpy as np


def read_tensors(path):
    """Reads all tensors of a safetensors file, in float64."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        part = content[start + begin : start + end]
        if entry["dtype"] == "BF16":  # the upper half of a float32
            values = (np.frombuffer(part, "<u2").astype("<u4") << 16).view("<f4")
        else:
            values = np.frombuffer(part, {"F32": "<f4", "F16": "<f2"}[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).astype("float64")
    return tensors


def linear(weights, name, x):
    bias = weights.get(f"{name}.bias", 0)
    return x @ weights[f"{name}.weight"].T + bias


def layer_norm(weights, name, x, epsilon=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def activate(name, x):
    if name == "relu":
        return x * (x > 0)
    if name in ("swish", "silu"):
        return x / (1 + np.exp(-x))
    assert name == "gelu"
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def attention(weights, name, x, memory, allowed, heads):
    """Attention; `allowed` [B, T, S]; a query without allowed keys attends to all equally."""
    query, key, value = (
        linear(weights, f"{name}.{which}_proj", of)
        for which, of in (("q", x), ("k", memory), ("v", memory))
    )
    size = x.shape[-1] // heads
    out = np.zeros_like(query)
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = query[..., part] @ key[..., part].transpose(0, 2, 1) / math.sqrt(size)
        scores = np.where(allowed, scores, -1e30)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        out[..., part] = shares / shares.sum(-1, keepdims=True) @ value[..., part]
    return linear(weights, f"{name}.out_proj", out)


def positions(weights, settings, side, length):
    table = weights.get(f"model.{side}.embed_positions.weight")
    if table is not None:
        offset = 0 if settings.get("static_position_embeddings", True) else 2
        return (
            table[offset : offset + length]
            if len(table) > settings["max_position_embeddings"]
            else table[:length]
        )
    width = settings["d_model"]
    rows = np.zeros((length, width))
    last = width // 2 - 1 if settings.get("fairseq_sinusoids") else width / 2
    first = settings["pad_token_id"] + 1 if settings.get("fairseq_sinusoids") else 0
    for position in range(length):
        for i in range(width // 2):
            angle = (first + position) / 10_000 ** (i / last)
            rows[position, i], rows[position, width // 2 + i] = math.sin(angle), math.cos(angle)
    return rows


def embed(weights, settings, side, tokens):
    name = f"model.{side}.embed_tokens.weight"
    table = weights[name] if name in weights else weights["model.shared.weight"]
    scale = math.sqrt(settings["d_model"]) if settings.get("scale_embedding") else 1.0
    x = table[tokens] * scale + positions(weights, settings, side, tokens.shape[1])
    if settings.get("normalize_embedding"):
        x = layer_norm(weights, f"model.{side}.layernorm_embedding", x)
    return x


def sublayer(weights, settings, norm, x, change):
    if settings.get("normalize_before"):
        return x + change(layer_norm(weights, norm, x))
    return layer_norm(weights, norm, x + change(x))


def stack(weights, settings, side, x, allowed, memory=None, memory_allowed=None):
    heads = settings["encoder_attention_heads"]
    for number in range(settings[f"{side}_layers"]):
        name = f"model.{side}.layers.{number}"

        def attend(x, name=name):
            return attention(weights, f"{name}.self_attn", x, x, allowed, heads)

        def read(x, name=name):
            return attention(weights, f"{name}.encoder_attn", x, memory, memory_allowed, heads)

        def feed(x, name=name):
            inner = activate(settings["activation_function"], linear(weights, f"{name}.fc1", x))
            return linear(weights, f"{name}.fc2", inner)

        x = sublayer(weights, settings, f"{name}.self_attn_layer_norm", x, attend)
        if memory is not None:
            x = sublayer(weights, settings, f"{name}.encoder_attn_layer_norm", x, read)
        x = sublayer(weights, settings, f"{name}.final_layer_norm", x, feed)
    if settings.get("add_final_layer_norm"):
        x = layer_norm(weights, f"model.{side}.layer_norm", x)
    return x


def forward(weights, settings, source, target):
    """Returns encoder states [B, S, D] and logits [B, T, V]; padding may be on either side."""
    real = (source != settings["pad_token_id"])[:, None, :]  # [B, 1, S]
    memory = stack(weights, settings, "encoder", embed(weights, settings, "encoder", source), real)
    past = np.tri(target.shape[1], dtype=bool)[None]
    x = embed(weights, settings, "decoder", target)
    x = stack(weights, settings, "decoder", x, past, memory, real)
    names = ["lm_head.weight", "model.decoder.embed_tokens.weight", "model.shared.weight"]
    table = next(weights[name] for name in names if name in weights)
    return memory, x @ table.T + weights.get("final_logits_bias", 0)
