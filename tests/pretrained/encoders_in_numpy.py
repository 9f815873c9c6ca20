"""ALBERT, MPNet, DeBERTa and ModernBERT in float64 NumPy, with the names of their files.

Attention computes one score at a time where it depends on the distance. No code is shared with the
package.
"""

import math
import re

import numpy as np
from bert_in_numpy import ACTIVATIONS, gelu, layer_norm, linear


def softmax(scores):
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def heads_of(x, count):
    """Splits `[B, S, D]` into heads `[B, H, S, K]`."""
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def joined(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attend(query, key, value, allowed, bias=0.0):
    """Attention of heads `[B, H, S, K]` whose queries are divided by the scale.

    Queries of padding may have no key near them; what they get is not compared.
    """
    scores = query @ key.swapaxes(2, 3) + bias
    return joined(softmax(np.where(allowed, scores, -1e9)) @ value)


def embedded(weights, settings, ids, types, places):
    x = weights["embeddings.word_embeddings.weight"][ids]
    if places is not None:
        x = x + weights["embeddings.position_embeddings.weight"][places]
    if "embeddings.token_type_embeddings.weight" in weights:
        x = x + weights["embeddings.token_type_embeddings.weight"][types]
    return layer_norm(weights, "embeddings.LayerNorm", x, settings["layer_norm_eps"])


def post_norm(weights, settings, x, attention, names):
    """A block with the names of its layers: output, norm, inner, outer, norm."""
    epsilon, (out, first, inner, outer, last) = settings["layer_norm_eps"], names
    x = layer_norm(weights, first, x + linear(weights, out, attention(x)), epsilon)
    hidden = ACTIVATIONS[settings["hidden_act"]](linear(weights, inner, x))
    return layer_norm(weights, last, x + linear(weights, outer, hidden), epsilon)


def albert(weights, settings, ids, types):
    x = embedded(weights, settings, ids, types, np.arange(ids.shape[1]))
    x = linear(weights, "encoder.embedding_hidden_mapping_in", x)
    count, allowed = settings["num_attention_heads"], (ids != 0)[:, None, None]
    for number in range(settings["num_hidden_layers"]):
        group = number * settings["num_hidden_groups"] // settings["num_hidden_layers"]
        for inner in range(settings["inner_group_num"]):
            name = f"encoder.albert_layer_groups.{group}.albert_layers.{inner}"

            def attention(x, name=name):
                query, key, value = (
                    heads_of(linear(weights, f"{name}.attention.{part}", x), count)
                    for part in ("query", "key", "value")
                )
                return attend(query / math.sqrt(query.shape[-1]), key, value, allowed)

            ends = ("attention.dense", "attention.LayerNorm", "ffn", "ffn_output")
            names = [f"{name}.{end}" for end in (*ends, "full_layer_layer_norm")]
            x = post_norm(weights, settings, x, attention, names)
    return x


def t5_bucket(distance):
    """The bucket of key minus query, of 32."""
    first, far = (16, distance) if distance > 0 else (0, -distance)
    if far < 8:
        return first + far
    return first + min(15, 8 + int(math.log(far / 8) / math.log(128 / 8) * 8))


def mpnet(weights, settings, ids, types):
    real, length = ids != 1, ids.shape[1]
    x = embedded(weights, settings, ids, types, np.where(real, np.cumsum(real, axis=1) + 1, 1))
    table = weights["encoder.relative_attention_bias.weight"]
    bias = np.array(
        [[table[t5_bucket(key - query)] for key in range(length)] for query in range(length)]
    ).transpose(2, 0, 1)
    count, allowed = settings["num_attention_heads"], real[:, None, None]
    for number in range(settings["num_hidden_layers"]):
        name = f"encoder.layer.{number}"

        def attention(x, name=name):
            query, key, value = (
                heads_of(linear(weights, f"{name}.attention.attn.{part}", x), count)
                for part in "qkv"
            )
            return attend(query / math.sqrt(query.shape[-1]), key, value, allowed, bias)

        ends = ("attention.attn.o", "attention.LayerNorm", "intermediate.dense", "output.dense")
        names = [f"{name}.{end}" for end in (*ends, "output.LayerNorm")]
        x = post_norm(weights, settings, x, attention, names)
    return x


def deberta_bucket(distance, span, farthest):
    """The row of the table for query minus key."""
    middle, far = span // 2, abs(distance)
    if far > middle:
        octaves = math.log(far / middle) / math.log((farthest - 1) / middle)
        far = math.ceil(octaves * (middle - 1) - 1e-9) + middle
    return min(max(math.copysign(far, distance) + span, 0), 2 * span - 1)


def deberta(weights, settings, ids, types):
    real, length = ids != 0, ids.shape[1]
    places = np.arange(length) if settings["position_biased_input"] else None
    x = embedded(weights, settings, ids, types, places)
    table, span = weights["encoder.rel_embeddings.weight"], settings["position_buckets"]
    if settings["norm_rel_ebd"] == "layer_norm":
        table = layer_norm(weights, "encoder.LayerNorm", table, settings["layer_norm_eps"])
    farthest = settings["max_relative_positions"]
    farthest = settings["max_position_embeddings"] if farthest < 1 else farthest
    count = settings["num_attention_heads"]
    for number in range(settings["num_hidden_layers"]):
        name = f"encoder.layer.{number}"

        def attention(x, name=name):
            query, key, value = (
                heads_of(linear(weights, f"{name}.attention.self.{part}_proj", x), count)
                for part in ("query", "key", "value")
            )
            of_query, of_key = (
                heads_of(linear(weights, f"{name}.attention.self.{part}_proj", table[None]), count)
                for part in ("query", "key")
            )
            scores = np.zeros((*query.shape[:3], length))
            for b, h, i, j in np.ndindex(*scores.shape):
                row = int(deberta_bucket(i - j, span, farthest))
                q, k = query[b, h, i], key[b, h, j]
                scores[b, h, i, j] = q @ k + q @ of_key[0, h, row] + k @ of_query[0, h, row]
            scores /= math.sqrt(3 * query.shape[-1])
            return joined(softmax(np.where(real[:, None, None], scores, -np.inf)) @ value)

        ends = ("attention.output.dense", "attention.output.LayerNorm", "intermediate.dense")
        names = [f"{name}.{end}" for end in (*ends, "output.dense", "output.LayerNorm")]
        x = post_norm(weights, settings, x, attention, names)
    return x


def rotated(x, base):
    """Heads `[B, H, S, K]`, whose pairs of features are rotated by the position."""
    half, out = x.shape[-1] // 2, np.zeros_like(x)
    for place in range(x.shape[2]):
        for pair in range(half):
            angle = place * base ** (-pair / half)
            one, two = x[:, :, place, pair], x[:, :, place, pair + half]
            out[:, :, place, pair] = one * math.cos(angle) - two * math.sin(angle)
            out[:, :, place, pair + half] = two * math.cos(angle) + one * math.sin(angle)
    return out


def plain_norm(weights, name, x, epsilon):
    """Layer normalisation whose offset may be missing."""
    weights = {f"{name}.bias": 0.0, **weights}
    return layer_norm(weights, name, x, epsilon)


def product(weights, name, x):
    """A linear map whose bias may be missing."""
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)


def modernbert(weights, settings, ids, types):
    epsilon, count = settings["norm_eps"], settings["num_attention_heads"]
    x = weights["embeddings.tok_embeddings.weight"][ids]
    x = plain_norm(weights, "embeddings.norm", x, epsilon)
    real = ids != settings["pad_token_id"]
    far = np.abs(np.subtract.outer(np.arange(ids.shape[1]), np.arange(ids.shape[1])))
    for number in range(settings["num_hidden_layers"]):
        name = f"layers.{number}"
        is_local = number % settings["global_attn_every_n_layers"] > 0
        near = far <= settings["local_attention"] // 2 if is_local else far >= 0
        base = settings["local_rope_theta" if is_local else "global_rope_theta"]
        normed = x if number == 0 else plain_norm(weights, f"{name}.attn_norm", x, epsilon)
        parts = np.split(product(weights, f"{name}.attn.Wqkv", normed), 3, axis=-1)
        query, key, value = (heads_of(part, count) for part in parts)
        query, key = rotated(query, base) / math.sqrt(query.shape[-1]), rotated(key, base)
        mixed = attend(query, key, value, real[:, None, None] & near)
        x = x + product(weights, f"{name}.attn.Wo", mixed)
        inner = product(
            weights, f"{name}.mlp.Wi", plain_norm(weights, f"{name}.mlp_norm", x, epsilon)
        )
        one, two = np.split(inner, 2, axis=-1)
        x = x + product(weights, f"{name}.mlp.Wo", gelu(one) * two)
    return plain_norm(weights, "final_norm", x, epsilon)


STATES = {"albert": albert, "mpnet": mpnet, "deberta-v2": deberta, "modernbert": modernbert}


def forward(weights, settings, ids, types=None):
    """Returns hidden states `[B, S, D]`, and the logits of the head, if there is one."""
    family, kind = settings["model_type"], settings["architectures"][0]
    types = np.zeros_like(ids) if types is None else types
    begin = re.compile(r"(albert|mpnet|deberta|model)\.")
    body = {begin.sub("", name, count=1): values for name, values in weights.items()}
    states = STATES[family](body, settings, ids, types)
    if not kind.endswith(("Classification", "QuestionAnswering")):
        return states, None
    x = states
    if kind.endswith("SequenceClassification"):
        x = x[:, 0]
        if settings.get("classifier_pooling") == "mean":
            real = (ids != settings["pad_token_id"])[..., None]
            x = (states * real).sum(1) / real.sum(1)
    if family == "modernbert":
        x = gelu(product(weights, "head.dense", x))
        x = plain_norm(weights, "head.norm", x, settings["norm_eps"])
    elif kind.endswith("SequenceClassification"):
        if family == "albert":
            x = np.tanh(linear(weights, "albert.pooler", x))
        elif family == "mpnet":
            x = np.tanh(linear(weights, "classifier.dense", x))
        else:
            x = gelu(linear(weights, "pooler.dense", x))
    names = ("qa_outputs", "classifier.out_proj", "classifier")
    return states, linear(weights, next(n for n in names if f"{n}.weight" in weights), x)
