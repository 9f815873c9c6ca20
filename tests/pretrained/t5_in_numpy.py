"""T5 in float64 NumPy with the names of the file, written from the paper and its code."""

import math

import numpy as np


def rms_norm(weights, name, x, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weights[f"{name}.weight"]


def bucket(distance, settings, causal):
    """The bucket of a distance, key minus query."""
    count, first = settings["relative_attention_num_buckets"], 0
    if not causal:
        count //= 2
        first = count if distance > 0 else 0
    far = -distance if causal else abs(distance)
    far = max(far, 0)
    exact = count // 2
    if far < exact:
        return first + far
    ratio = math.log(far / exact) / math.log(settings["relative_attention_max_distance"] / exact)
    return first + min(exact + int(ratio * (count - exact) + 1e-9), count - 1)


def attention(weights, name, x, memory, allowed, settings, bias):
    heads, size = settings["num_heads"], settings["d_kv"]
    query, key, value = (
        of @ weights[f"{name}.{letter}.weight"].T
        for letter, of in (("q", x), ("k", memory), ("v", memory))
    )
    out = np.zeros_like(query)
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = query[..., part] @ key[..., part].transpose(0, 2, 1) + bias[..., h]
        scores = np.where(allowed, scores, -1e30)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        out[..., part] = shares / shares.sum(-1, keepdims=True) @ value[..., part]
    return out @ weights[f"{name}.o.weight"].T


def activate(kind, x):
    if kind == "relu":
        return x * (x > 0)
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def feed_forward(weights, name, x, settings):
    kind = settings["feed_forward_proj"]
    if kind == "gated-gelu":
        inner = activate("gelu_new", x @ weights[f"{name}.wi_0.weight"].T)
        inner = inner * (x @ weights[f"{name}.wi_1.weight"].T)
    else:
        inner = activate(kind, x @ weights[f"{name}.wi.weight"].T)
    return inner @ weights[f"{name}.wo.weight"].T


def stack(weights, settings, side, x, allowed, memory=None, memory_allowed=None):
    epsilon, length, causal = settings["layer_norm_epsilon"], x.shape[1], side == "decoder"
    table = weights[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    places = [[bucket(s - t, settings, causal) for s in range(length)] for t in range(length)]
    bias = table[np.array(places)]  # [T, S, H]
    depth = settings["num_layers"] if side == "encoder" else settings["num_decoder_layers"]
    for number in range(depth):
        name = f"{side}.block.{number}.layer"
        y = rms_norm(weights, f"{name}.0.layer_norm", x, epsilon)
        x = x + attention(weights, f"{name}.0.SelfAttention", y, y, allowed, settings, bias)
        if memory is not None:
            y = rms_norm(weights, f"{name}.1.layer_norm", x, epsilon)
            args = y, memory, memory_allowed, settings, np.zeros(settings["num_heads"])
            x = x + attention(weights, f"{name}.1.EncDecAttention", *args)
        last = f"{name}.{1 if memory is None else 2}"
        y = rms_norm(weights, f"{last}.layer_norm", x, epsilon)
        x = x + feed_forward(weights, f"{last}.DenseReluDense", y, settings)
    return rms_norm(weights, f"{side}.final_layer_norm", x, epsilon)


def forward(weights, settings, source, target):
    """Returns encoder states [B, S, D] and logits [B, T, V]."""
    table = weights["shared.weight"]
    real = (source != settings["pad_token_id"])[:, None, :]
    memory = stack(weights, settings, "encoder", table[source], real)
    past = np.tri(target.shape[1], dtype=bool)[None]
    x = stack(weights, settings, "decoder", table[target], past, memory, real)
    if settings.get("tie_word_embeddings", True):
        return memory, x * settings["d_model"] ** -0.5 @ table.T
    return memory, x @ weights["lm_head.weight"].T
