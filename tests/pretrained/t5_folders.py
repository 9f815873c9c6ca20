"""T5 as Hugging Face writes it, with random weights and a small vocabulary."""

import functools
import io
import json

import numpy as np
import safetensors.numpy
import sentencepiece
from opus_folders import SOURCE_TEXT, TARGET_TEXT

SIZES = {
    "model_type": "t5", "d_model": 12, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 3,
    "d_kv": 5, "d_ff": 17, "n_positions": 31, "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 9, "layer_norm_epsilon": 1e-6, "dropout_rate": 0.1,
    "feed_forward_proj": "relu", "is_encoder_decoder": True, "pad_token_id": 0, "eos_token_id": 1,
    "decoder_start_token_id": 0,
}  # fmt: skip
UNTIED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}


@functools.cache
def spm():
    """Learns a Unigram model with T5's ids of special tokens."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*SOURCE_TEXT, *TARGET_TEXT] * 3),
        model_writer=model,
        vocab_size=60,
        model_type="unigram",
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return model.getvalue()


def write_vocabulary(folder):
    """Writes `spiece.model`; returns the number of tokens with 100 sentinels and 4 more."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spiece.model").write_bytes(spm())
    return sentencepiece.SentencePieceProcessor(model_proto=spm()).vocab_size() + 104


def tensors_of(settings, seed=0):
    """Returns random weights under the names of the file."""
    rng = np.random.default_rng(seed)
    width, inner = settings["d_model"], settings["num_heads"] * settings["d_kv"]
    tensors = {}

    def add(name, *shape, mean=0.0, scale=None):
        scale = shape[-1] ** -0.5 if scale is None else scale
        tensors[f"{name}.weight"] = (mean + scale * rng.normal(size=shape)).astype("float32")

    add("shared", settings["vocab_size"], width, scale=1.0)
    gated = settings["feed_forward_proj"].startswith("gated")
    for side in ("encoder", "decoder"):
        depth = settings["num_layers" if side == "encoder" else "num_decoder_layers"]
        attentions = ["SelfAttention"] + ["EncDecAttention"] * (side == "decoder")
        for number in range(depth):
            name = f"{side}.block.{number}.layer"
            for place, attention in enumerate(attentions):
                for letter in "qkv":
                    add(f"{name}.{place}.{attention}.{letter}", inner, width)
                add(f"{name}.{place}.{attention}.o", width, inner)
                add(f"{name}.{place}.layer_norm", width, mean=1.0, scale=0.3)
            last = f"{name}.{len(attentions)}"
            for letter in ("wi_0", "wi_1") if gated else ("wi",):
                add(f"{last}.DenseReluDense.{letter}", settings["d_ff"], width)
            add(f"{last}.DenseReluDense.wo", width, settings["d_ff"])
            add(f"{last}.layer_norm", width, mean=1.0, scale=0.3)
        table = settings["relative_attention_num_buckets"], settings["num_heads"]
        add(f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias", *table, scale=1.0)
        add(f"{side}.final_layer_norm", width, mean=1.0, scale=0.3)
    if not settings.get("tie_word_embeddings", True):
        add("lm_head", settings["vocab_size"], width)
    return tensors


def write_folder(folder, seed=0, **changes):
    """Writes a whole checkpoint; returns its settings and its tensors in float64."""
    settings = {**SIZES, "vocab_size": write_vocabulary(folder), **changes}
    tensors = tensors_of(settings, seed)
    (folder / "config.json").write_text(json.dumps(settings))
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    return settings, {name: values.astype("float64") for name, values in tensors.items()}
