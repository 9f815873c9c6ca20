"""Llama in a GGUF file, read without the `gguf` package and written as Hugging Face does."""

import json
import struct

import bpe_in_python
import numpy as np
import safetensors.numpy

# Formats of single values and kinds of tensors, by their numbers in the format's specification.
NUMBERS = "BbHhIif?"
TEXT, LIST = 8, 9
LARGE = {10: "Q", 11: "q", 12: "d"}
FLOAT32, Q4_1, Q8_0 = 0, 3, 8
BLOCK = 32  # weights with one scale
BLOCKS = {
    Q4_1: np.dtype([("scale", "<f2"), ("offset", "<f2"), ("halves", "u1", BLOCK // 2)]),
    Q8_0: np.dtype([("scale", "<f2"), ("numbers", "i1", BLOCK)]),
}
CONTROL = 3  # kind of a token that texts do not contain
PARTS = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class Reader:
    """Values one after another."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, letter):
        (value,) = struct.unpack_from(f"<{letter}", self.data, self.at)
        self.at += struct.calcsize(f"<{letter}")
        return value

    def text(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def value(self, kind):
        if kind == TEXT:
            return self.text()
        if kind == LIST:
            kind, count = self.number("I"), self.number("Q")
            return [self.value(kind) for _ in range(count)]
        return self.number(LARGE.get(kind) or NUMBERS[kind])


def weights(data, kind, shape):
    """Returns the weights of a tensor in float32; `data` begins with them."""
    count = int(np.prod(shape))
    if kind == FLOAT32:
        return np.frombuffer(data, "<f4", count).reshape(shape)
    if kind not in BLOCKS:
        raise ValueError(f"Only float32, Q4_1 and Q8_0 are read. Received: kind {kind}.")
    blocks = np.frombuffer(data, BLOCKS[kind], count // BLOCK)
    scale = blocks["scale"].astype(np.float32)[:, None]
    if kind == Q8_0:
        return (scale * blocks["numbers"]).reshape(shape)
    halves = blocks["halves"]
    numbers = np.concatenate([halves & 15, halves >> 4], axis=1)
    return (scale * numbers + blocks["offset"].astype(np.float32)[:, None]).reshape(shape)


def read(path):
    """Returns the metadata and the tensors of a file by their names."""
    reader = Reader(path.read_bytes())
    assert reader.data[:4] == b"GGUF"
    reader.at = 4
    version = reader.number("I")
    assert version == 3
    tensors, values = reader.number("Q"), reader.number("Q")
    metadata = {}
    for _ in range(values):
        name = reader.text()
        metadata[name] = reader.value(reader.number("I"))
    places = {}
    for _ in range(tensors):
        name = reader.text()
        shape = [reader.number("Q") for _ in range(reader.number("I"))][::-1]
        places[name] = (shape, reader.number("I"), reader.number("Q"))
    begin = -(-reader.at // 32) * 32
    data = memoryview(reader.data)
    return metadata, {
        name: weights(data[begin + place :], kind, shape)
        for name, (shape, kind, place) in places.items()
    }


def halves(values, heads):
    """Puts the first numbers of all pairs that turn together in front of the second ones."""
    pairs = values.reshape(heads, -1, 2, values.shape[-1])
    return pairs.swapaxes(1, 2).reshape(values.shape)


def write_hugging_face(path, folder):
    """Writes a Llama with tied weights as Hugging Face's folder."""
    metadata, stored = read(path)
    settings = settings_of(metadata)
    tensors = {
        "model.embed_tokens.weight": stored.pop("token_embd.weight"),
        "model.norm.weight": stored.pop("output_norm.weight"),
    }
    turning = {
        "attn_q": settings["num_attention_heads"],
        "attn_k": settings["num_key_value_heads"],
    }
    for name, values in stored.items():
        _, number, part, _ = name.split(".")
        values = halves(values, turning[part]) if part in turning else values
        tensors[f"model.layers.{number}.{PARTS[part]}.weight"] = values
    tensors = {name: np.ascontiguousarray(values) for name, values in tensors.items()}
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    files = {
        "config": settings,
        "generation_config": {k: v for k, v in settings.items() if k.endswith("token_id")},
        "tokenizer": tokenizer_of(metadata),
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def settings_of(metadata):
    """The content of config.json."""
    model = {name.removeprefix("llama."): value for name, value in metadata.items()}
    special = {
        f"{name}_token_id": metadata[f"tokenizer.ggml.{theirs}_token_id"]
        for name, theirs in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": model["vocab_size"],
        "hidden_size": model["embedding_length"],
        "intermediate_size": model["feed_forward_length"],
        "num_hidden_layers": model["block_count"],
        "num_attention_heads": model["attention.head_count"],
        "num_key_value_heads": model["attention.head_count_kv"],
        "hidden_act": "silu",
        "max_position_embeddings": model["context_length"],
        "rms_norm_eps": round(model["attention.layer_norm_rms_epsilon"], 9),
        "rope_theta": model["rope.freq_base"],
        "tie_word_embeddings": True,
        **special,
    }


def tokenizer_of(metadata):
    """The content of tokenizer.json: GPT-2's tokenizer after a split at digits."""
    assert metadata["tokenizer.ggml.pre"] == "smollm"
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    added = [
        {"id": number, "content": tokens[number], "special": True, "normalized": False}
        for number, kind in enumerate(kinds)
        if kind == CONTROL
    ]
    return {
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": bpe_in_python.pre_tokenizer("gpt2_digits"),
        "post_processor": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "model": {
            "type": "BPE",
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": metadata["tokenizer.ggml.merges"],
        },
    }
