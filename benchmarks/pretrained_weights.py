"""Checkpoints of T5 and GPT-2 in Hugging Face's format, with random weights.

Outputs never end: the embeddings of special tokens are zero, and so are their tied output weights,
which leaves them far below the most probable of thousands of tokens. The signs of the last
normalisation are random, because otherwise every token would be followed by itself.
"""

import itertools
import json

import numpy as np
from decoding_task import EOS_ID, PAD_ID, vocabulary

SPECIAL = {PAD_ID: "<|pad|>", EOS_ID: "<|endoftext|>"}  # of GPT-2
FIRST = EOS_ID + 1  # id of the first token that is not special
SPREAD = 0.5  # standard deviation of the logarithms of the lengths of embeddings
BUCKETS, DISTANCE = 32, 128  # of T5's positions


class Random:
    """Random tensors by their names in a file.

    Args:
        seed: Seed of all tensors.

    Attributes:
        tensors: Dictionary of arrays in float32.
    """

    def __init__(self, seed):
        self._random, self.tensors = np.random.default_rng(seed), {}

    def normal(self, name, *shape, scale):
        """Adds normally distributed numbers."""
        self.tensors[name] = (scale * self._random.standard_normal(shape)).astype("float32")

    def table(self, name, *shape, scale):
        """Adds embeddings of different lengths; those of special tokens are zero.

        If all were equally long, many tokens would be almost equally probable, and rounding would
        choose among them.
        """
        self.normal(name, *shape, scale=scale)
        self.tensors[name] *= np.exp(SPREAD * self._random.standard_normal((shape[0], 1)))
        self.tensors[name][:FIRST] = 0

    def ones(self, name, width):
        """Adds the factors of a normalisation."""
        self.tensors[name] = np.ones(width, "float32")

    def signs(self, name, width):
        """Adds the factors of the last normalisation, 1 and -1."""
        self.tensors[name] = self._random.choice([-1, 1], width).astype("float32")


def write_t5(model, folder):
    """Writes a folder like T5's, with the ids of `decoding_task.vocabulary`."""
    random = Random(model.seed)
    random.table("shared.weight", model.vocab_size, model.d_model, scale=1.0)
    for side in ("encoder", "decoder"):
        for number in range(model.num_layers):
            _t5_block(random, model, side, f"{side}.block.{number}.layer")
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        random.normal(bias, BUCKETS, model.num_heads, scale=1.0)
    random.ones("encoder.final_layer_norm.weight", model.d_model)
    random.signs("decoder.final_layer_norm.weight", model.d_model)
    ids = {"pad_token_id": PAD_ID, "eos_token_id": EOS_ID, "decoder_start_token_id": PAD_ID}
    settings = {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_ff": model.d_ff,
        "vocab_size": model.vocab_size, "d_model": model.d_model, "num_layers": model.num_layers,
        "num_decoder_layers": model.num_layers, "num_heads": model.num_heads,
        "d_kv": model.d_model // model.num_heads, "n_positions": 512, "dropout_rate": 0.1,
        "relative_attention_num_buckets": BUCKETS, "relative_attention_max_distance": DISTANCE,
        "layer_norm_epsilon": 1e-6, "feed_forward_proj": "relu", "is_encoder_decoder": True,
        "tie_word_embeddings": True, **ids,
    }  # fmt: skip
    (folder / "spiece.model").write_bytes(vocabulary(model))
    _write(folder, random.tensors, settings, ids)


def _t5_block(random, model, side, name):
    """Adds the tensors of a block."""
    width, sublayers = model.d_model, ["SelfAttention"]
    if side == "decoder":
        sublayers.append("EncDecAttention")
    for place, attention in enumerate(sublayers):
        for letter in "qkvo":
            # T5 does not scale its scores: the queries contain the factor.
            factor = (width // model.num_heads) ** -0.5 if letter == "q" else 1.0
            weight = f"{name}.{place}.{attention}.{letter}.weight"
            random.normal(weight, width, width, scale=factor * width**-0.5)
        random.ones(f"{name}.{place}.layer_norm.weight", width)
    last = f"{name}.{len(sublayers)}"
    random.normal(f"{last}.DenseReluDense.wi.weight", model.d_ff, width, scale=width**-0.5)
    random.normal(f"{last}.DenseReluDense.wo.weight", width, model.d_ff, scale=model.d_ff**-0.5)
    random.ones(f"{last}.layer_norm.weight", width)


def write_gpt2(model, folder):
    """Writes a folder like GPT-2's; its special tokens have the ids of `decoding_task`.

    It has fewer positions, because the check of an export generates that many tokens.
    """
    random, width = Random(model.seed), model.d_model
    random.table("transformer.wte.weight", model.vocab_size, width, scale=0.4)
    random.normal("transformer.wpe.weight", model.max_length, width, scale=0.4)
    for number in range(model.num_layers):
        name = f"transformer.h.{number}"
        for norm in ("ln_1", "ln_2"):
            random.ones(f"{name}.{norm}.weight", width)
            random.normal(f"{name}.{norm}.bias", width, scale=0.02)
        for layer, size, outputs in (
            ("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
            ("mlp.c_fc", width, model.d_ff), ("mlp.c_proj", model.d_ff, width),
        ):  # fmt: skip
            random.normal(f"{name}.{layer}.weight", size, outputs, scale=size**-0.5)
            random.normal(f"{name}.{layer}.bias", outputs, scale=0.02)
    random.signs("transformer.ln_f.weight", width)
    random.normal("transformer.ln_f.bias", width, scale=0.02)
    ids = {"pad_token_id": PAD_ID, "bos_token_id": EOS_ID, "eos_token_id": EOS_ID}
    settings = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": width,
        "vocab_size": model.vocab_size, "n_layer": model.num_layers, "n_head": model.num_heads,
        "n_inner": model.d_ff, "n_positions": model.max_length, "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5, **ids,
    }  # fmt: skip
    pieces, merges = byte_pieces(model.vocab_size)
    (folder / "vocab.json").write_text(json.dumps({p: n for n, p in enumerate(pieces)}), "utf-8")
    lines = "".join(f"{first} {second}\n" for first, second in merges)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{lines}", "utf-8")
    _write(folder, random.tensors, settings, ids)


def byte_pieces(size):
    """Returns the tokens of a byte-level vocabulary of pairs of bytes, and its merges."""
    from keras_transformer.text.byte_pairs import CHARACTERS

    special = [SPECIAL.get(number, f"<|{number}|>") for number in range(FIRST)]
    count = size - len(special) - len(CHARACTERS)
    merges = list(itertools.islice(itertools.product(CHARACTERS, repeat=2), count))
    return [*special, *CHARACTERS, *(first + second for first, second in merges)], merges


def _write(folder, tensors, settings, generation):
    import safetensors.numpy

    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    for name, value in (("config", settings), ("generation_config", generation)):
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1), "utf-8")
