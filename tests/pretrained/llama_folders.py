"""Folders as Hugging Face writes Llama and Qwen, with random weights, and their arithmetic.

Nothing here is shared with the package.
"""

import json
import math
import unicodedata

import bpe_in_python
import numpy as np
import safetensors.numpy
from bert_in_numpy import ACTIVATIONS as OTHERS
from roberta_folders import MERGES

ACTIVATIONS = {**OTHERS, "silu": lambda x: x / (1 + np.exp(-x))}
BEGIN, END = "<|begin|>", "<|end|>"
PIECES = [*bpe_in_python.vocabulary(MERGES, []), BEGIN, END]
SIZES = {
    "vocab_size": len(PIECES),
    "hidden_size": 24,
    "intermediate_size": 34,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 23,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500.0,
    "tie_word_embeddings": False,
    "bos_token_id": len(PIECES) - 2,
    "eos_token_id": len(PIECES) - 1,
    "pad_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 40,
}
QWEN2 = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "use_sliding_window": False}
QWEN3 = {**QWEN2, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "beta_fast": 6.0,
    "beta_slow": 0.5,
    "original_max_position_embeddings": 40,
}
MISTRAL = {"model_type": "mistral", "architectures": ["MistralForCausalLM"]}
KINDS = {
    "llama3": {**LLAMA, "rope_scaling": LLAMA3, "pattern": "llama3"},
    "smollm": {
        **{**LLAMA, "num_key_value_heads": 6, "tie_word_embeddings": True},
        **{"attention_bias": True, "mlp_bias": True, "pattern": "gpt2_digits"},
        "rope_scaling": {"type": "linear", "factor": 2.5},
    },
    "qwen2": {**QWEN2, "num_key_value_heads": 1, "pattern": "qwen2"},
    "mistral": {**MISTRAL, "head_dim": 8, "sliding_window": 4, "pattern": "gpt2_digits"},
    "nemo": {**MISTRAL, "head_dim": 14, "sliding_window": None, "pattern": "tekken"},
    "yarn": {**LLAMA, "head_dim": 14, "rope_scaling": YARN, "pattern": "llama3"},
    "qwen3": {**QWEN3, "head_dim": 10, "pattern": "qwen2", "tie_word_embeddings": True},
}
TEXTS = ["A dog is", "the film", "", "I'VE 2123 cats ☃", "\n  caf\u0065\u0301 !!\n"]


def tokenizer_json(pattern):
    """The content of a tokenizer.json of each kind, with or without a token at the beginning."""
    begin = {"type": "TemplateProcessing", "special_tokens": {}}
    begin["special_tokens"][BEGIN] = {"id": BEGIN, "ids": [len(PIECES) - 2], "tokens": [BEGIN]}
    begin["single"] = [
        {"SpecialToken": {"id": BEGIN, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
    ]  # fmt: skip
    bytes_of = {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}
    names = (BEGIN, END)
    return {
        "added_tokens": [
            {"id": PIECES.index(name), "content": name, "special": True} for name in names
        ],
        "normalizer": {"type": "NFC"} if pattern == "qwen2" else None,
        "pre_tokenizer": bpe_in_python.pre_tokenizer(pattern),
        "post_processor": {"type": "Sequence", "processors": [bytes_of, begin]}
        if pattern == "llama3"
        else bytes_of,
        "model": {
            "type": "BPE",
            "vocab": {piece: number for number, piece in enumerate(PIECES[:-2])},
            "merges": [list(pair) for pair in MERGES],
            "ignore_merges": pattern == "llama3",
        },
    }


def ids_of(text, pattern):
    """The ids of a text alone."""
    ranks = {pair: number for number, pair in enumerate(MERGES)}
    text = unicodedata.normalize("NFC", text) if pattern == "qwen2" else text
    words = bpe_in_python.words_of(text, pattern)
    return [PIECES.index(t) for word in words for t in bpe_in_python.merge(word, ranks)]


def size_of(settings):
    return settings.get("head_dim") or settings["hidden_size"] // settings["num_attention_heads"]


def tensors_of(settings, prefix="model.", seed=0):
    """Random weights under the names of the file; kernels are `[out, in]`."""
    rng = np.random.default_rng(seed)
    width, inner, size = settings["hidden_size"], settings["intermediate_size"], size_of(settings)
    heads, groups = settings["num_attention_heads"], settings["num_key_value_heads"]
    biased = settings.get("attention_bias", settings["model_type"] == "qwen2")
    tensors = {}

    def add(name, *shape, mean=0.0, scale=None):
        scale = shape[-1] ** -0.5 if scale is None else scale
        tensors[name] = (mean + scale * rng.normal(size=shape)).astype("float32")

    add(f"{prefix}embed_tokens.weight", settings["vocab_size"], width, scale=0.4)
    for number in range(settings["num_hidden_layers"]):
        layer = f"{prefix}layers.{number}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            add(f"{layer}{norm}.weight", width, mean=1.0, scale=0.3)
        if settings["model_type"] == "qwen3":
            for norm in ("q_norm", "k_norm"):
                add(f"{layer}self_attn.{norm}.weight", size, mean=1.0, scale=0.3)
        for name, outputs, inputs, bias in (
            ("self_attn.q_proj", heads * size, width, biased),
            ("self_attn.k_proj", groups * size, width, biased),
            ("self_attn.v_proj", groups * size, width, biased),
            ("self_attn.o_proj", width, heads * size, settings.get("attention_bias")),
            ("mlp.gate_proj", inner, width, settings.get("mlp_bias")),
            ("mlp.up_proj", inner, width, settings.get("mlp_bias")),
            ("mlp.down_proj", width, inner, settings.get("mlp_bias")),
        ):
            add(f"{layer}{name}.weight", outputs, inputs)
            if bias:
                add(f"{layer}{name}.bias", outputs, scale=0.3)
    add(f"{prefix}norm.weight", width, mean=1.0, scale=0.3)
    if not settings["tie_word_embeddings"]:
        add("lm_head.weight", settings["vocab_size"], width)
    return tensors


def write_folder(folder, kind="llama3", more=None, prefix="model.", dtype="float32", **changes):
    """Writes a checkpoint; returns its settings, and its tensors in float64 as the file has them.

    `prefix`: begins the names of the tensors but for the output; those of a body have none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SIZES, **KINDS[kind], **changes}
    pattern = settings.pop("pattern")
    tensors = {k: values.astype(dtype) for k, values in tensors_of(settings, prefix).items()}
    safetensors.numpy.save_file({**tensors, **(more or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(pattern)), "utf-8")
    return settings, {name: values.astype("float64") for name, values in tensors.items()}


def random_rows(settings, lengths=(13, 5), seed=0):
    """Ids of texts, each after the id that begins it, and 0 after them."""
    rng = np.random.default_rng(seed)
    ids = np.zeros((len(lengths), max(lengths)), "int32")
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = rng.integers(0, settings["vocab_size"], length)
        row[0] = settings["bos_token_id"]
    return ids


def rates_of(settings):
    """Radians per position of each pair of features."""
    rope = settings.get("rope_scaling") or settings.get("rope_parameters") or {}
    base, pairs = rope.get("rope_theta") or settings["rope_theta"], size_of(settings) // 2
    kind = rope.get("rope_type", rope.get("type", "default"))
    rates = []
    for pair in range(pairs):
        rate = base ** (-pair / pairs)
        wave = 2 * math.pi / rate
        if kind == "linear":
            rate /= rope["factor"]
        if kind == "llama3":
            length = rope["original_max_position_embeddings"]
            low, high = rope["low_freq_factor"], rope["high_freq_factor"]
            share = (length / wave - low) / (high - low)
            share = min(max(share, 0.0), 1.0)
            rate = (1 - share) * rate / rope["factor"] + share * rate
        if kind == "yarn":
            first, last = (
                size_of(settings)
                * math.log(rope["original_max_position_embeddings"] / (turns * 2 * math.pi))
                / (2 * math.log(base))
                for turns in (rope["beta_fast"], rope["beta_slow"])
            )
            first, last = math.floor(first), math.ceil(last)
            assert 0 <= first < last - 1 < 2 * pairs - 2
            share = min(max((pair - first) / (last - first), 0.0), 1.0)
            rate = share * rate / rope["factor"] + (1 - share) * rate
        rates.append(rate)
    return np.array(rates)


def scale_of(settings):
    """The factor of rotated heads: that of YaRN, section 3.4, or 1."""
    rope = settings.get("rope_scaling") or settings.get("rope_parameters") or {}
    kind = rope.get("rope_type", rope.get("type"))
    return 0.1 * math.log(rope["factor"]) + 1 if kind == "yarn" else 1.0


def rms_norm(weights, name, x, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weights[f"{name}.weight"]


def forward_of_texts(weights, settings, ids, pattern):
    """Results of `forward` for `ids`, of which the first one only begins a text.

    The later ones do not see it, unless the tokenizer puts it in front of a text.
    """
    if pattern == "llama3" or ids.shape[1] == 1:
        return forward(weights, settings, ids)
    pairs = zip(
        forward(weights, settings, ids[:, :1]), forward(weights, settings, ids[:, 1:]), strict=True
    )
    return [np.concatenate(pair, axis=1) for pair in pairs]


def forward(weights, settings, ids):
    """Hidden states `[B, T, D]` and logits `[B, T, V]`, one query of one head at a time."""
    weights = {name.removeprefix("model."): values for name, values in weights.items()}
    epsilon, heads = settings["rms_norm_eps"], settings["num_attention_heads"]
    shared, size = heads // settings["num_key_value_heads"], size_of(settings)
    x = weights["embed_tokens.weight"][ids]
    width = settings.get("sliding_window") or ids.shape[1]
    turns = np.exp(1j * np.arange(ids.shape[1])[:, None] * rates_of(settings))  # [T, K / 2]

    def split(name, normed, count, norm=None):
        projected = _linear(weights, name, normed).reshape(*ids.shape, count, size)
        if norm and f"{norm}.weight" in weights:
            projected = rms_norm(weights, norm, projected, epsilon)
        return projected

    def turned(projected):
        points = projected[..., : size // 2] + 1j * projected[..., size // 2 :]
        points = scale_of(settings) * points * turns[:, None]
        return np.concatenate([points.real, points.imag], axis=-1)

    for number in range(settings["num_hidden_layers"]):
        name = f"layers.{number}.self_attn"
        normed = rms_norm(weights, f"layers.{number}.input_layernorm", x, epsilon)
        query = turned(split(f"{name}.q_proj", normed, heads, f"{name}.q_norm"))
        key = turned(split(f"{name}.k_proj", normed, heads // shared, f"{name}.k_norm"))
        value = split(f"{name}.v_proj", normed, heads // shared)
        out = np.zeros_like(query)
        for b, t, h in np.ndindex(*query.shape[:3]):
            first = max(0, t + 1 - width)
            scores = key[b, first : t + 1, h // shared] @ query[b, t, h] / size**0.5
            scores = np.exp(scores - scores.max())
            out[b, t, h] = scores / scores.sum() @ value[b, first : t + 1, h // shared]
        x = x + _linear(weights, f"{name}.o_proj", out.reshape(*ids.shape, -1))
        normed = rms_norm(weights, f"layers.{number}.post_attention_layernorm", x, epsilon)
        mlp = f"layers.{number}.mlp"
        gate = ACTIVATIONS[settings["hidden_act"]](_linear(weights, f"{mlp}.gate_proj", normed))
        inner = gate * _linear(weights, f"{mlp}.up_proj", normed)
        x = x + _linear(weights, f"{mlp}.down_proj", inner)
    states = rms_norm(weights, "norm", x, epsilon)
    output = weights.get("lm_head.weight", weights["embed_tokens.weight"])
    return states, states @ output.T


def _linear(weights, name, x):
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)
