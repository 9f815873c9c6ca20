"""Stacks of other models against `transformers`, block by block.

The models are Llama, Llama 3.1, Qwen2, Qwen3, GPT-2, T5, Whisper and ModernBERT.
`KERAS_TRANSFORMER_TRANSFORMERS` names a Python with torch and transformers; the default is the
Python of the tests.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from support import weights_of

from keras_transformer import Decoder, Encoder
from keras_transformer.layers import (
    AlternatingWindow,
    LayerNorm,
    Llama3Scaling,
    PreNorm,
    RMSNorm,
    Rotary,
)

pytestmark = pytest.mark.slow
PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("other_models.py")
D, F = 24, 17

PRE = {"num_layers": 2, "num_heads": 4, "d_ff": F, "norm": "pre"}
GATED = {"feed_forward": {"kind": "gated", "bias": False}}
LLAMA = {
    **{**PRE, **GATED, "causal": True, "normalization": RMSNorm(1e-3)},
    **{
        "num_key_value_heads": 2,
        "position": {"kind": "rotary", "base": 500.0},
        "activation": "silu",
    },
}
T5 = {
    **{**PRE, **GATED, "num_heads": 3, "d_k": 7, "d_v": 7, "normalization": "rms"},
    **{"position": {"kind": "t5", "distance": 9, "buckets": 8, "shared": True}},
    **{"score": "dot_product", "activation": "gelu_tanh"},
}
OPTIONS = {
    "llama": LLAMA,
    "qwen2": {**LLAMA, "attention_bias": ["query", "key", "value"]},
    "llama3": {
        **{**LLAMA, "position": Rotary(500.0, Llama3Scaling(8.0, 10.0, 40.0))},
    },
    "qwen3": {**LLAMA, "query_key_norm": RMSNorm(1e-3), "d_k": 10, "d_v": 10},
    "gpt2": {
        **{**PRE, "causal": True, "attention_bias": True, "activation": "gelu_tanh"},
        **{"normalization": LayerNorm(1e-5)},
    },
    "whisper": {
        **{**PRE, "attention_bias": ["query", "value", "output"], "activation": "gelu"},
        **{"normalization": LayerNorm(1e-5)},
    },
    "modernbert": {
        **{
            **PRE,
            **GATED,
            "num_layers": 4,
            "normalization": LayerNorm(1e-3, offset=False),
            "embedding_norm": True,
        },
        **{"norm": PreNorm(first=False), "position": {"kind": "rotary", "base": 500.0}},
        **{"window": AlternatingWindow(3, 3, Rotary(20.0)), "activation": "gelu"},
    },
}
# Their name of a sublayer, and ours. `{}` is the index of a block.
NAMES = {
    "llama": {
        "layers.{}.self_attn.q_proj": "self_attention/query",
        "layers.{}.self_attn.k_proj": "self_attention/key",
        "layers.{}.self_attn.v_proj": "self_attention/value",
        "layers.{}.self_attn.o_proj": "self_attention/output",
        "layers.{}.input_layernorm": "self_attention_norm",
        "layers.{}.mlp.gate_proj": "feed_forward/gate",
        "layers.{}.mlp.up_proj": "feed_forward/inner",
        "layers.{}.mlp.down_proj": "feed_forward/outer",
        "layers.{}.post_attention_layernorm": "feed_forward_norm",
        "norm": "norm",
    },
    "gpt2": {
        "h.{}.attn.c_attn": "self_attention/query,key,value",
        "h.{}.attn.c_proj": "self_attention/output",
        "h.{}.ln_1": "self_attention_norm",
        "h.{}.mlp.c_fc": "feed_forward/inner",
        "h.{}.mlp.c_proj": "feed_forward/outer",
        "h.{}.ln_2": "feed_forward_norm",
        "ln_f": "norm",
    },
    "whisper": {
        "encoder.layers.{}.self_attn.q_proj": "self_attention/query",
        "encoder.layers.{}.self_attn.k_proj": "self_attention/key",
        "encoder.layers.{}.self_attn.v_proj": "self_attention/value",
        "encoder.layers.{}.self_attn.out_proj": "self_attention/output",
        "encoder.layers.{}.self_attn_layer_norm": "self_attention_norm",
        "encoder.layers.{}.fc1": "feed_forward/inner",
        "encoder.layers.{}.fc2": "feed_forward/outer",
        "encoder.layers.{}.final_layer_norm": "feed_forward_norm",
        "encoder.layer_norm": "norm",
    },
    "modernbert": {
        "embeddings.norm": "embedding_norm",
        "layers.{}.attn.Wqkv": "self_attention/query,key,value",
        "layers.{}.attn.Wo": "self_attention/output",
        "layers.{}.attn_norm": "self_attention_norm",
        "layers.{}.mlp.Wi": "feed_forward/gate,inner",
        "layers.{}.mlp.Wo": "feed_forward/outer",
        "layers.{}.mlp_norm": "feed_forward_norm",
        "final_norm": "norm",
    },
}
NAMES["qwen2"] = NAMES["llama3"] = NAMES["llama"]
NAMES["qwen3"] = {
    **NAMES["llama"],
    "layers.{}.self_attn.q_norm": "self_attention/query_norm",
    "layers.{}.self_attn.k_norm": "self_attention/key_norm",
}


def t5_names(stack):
    sublayers = ["SelfAttention", "DenseReluDense"]
    sublayers[1:1] = ["EncDecAttention"] * (stack == "decoder")
    ours = {"SelfAttention": "self_attention", "EncDecAttention": "cross_attention"}
    names = {f"{stack}.final_layer_norm": "norm"}
    for number, sublayer in enumerate(sublayers):
        theirs, name = f"{stack}.block.{{}}.layer.{number}", ours.get(sublayer, "feed_forward")
        names[f"{theirs}.layer_norm"] = f"{name}_norm"
        maps = {"q": "query", "k": "key", "v": "value", "o": "output"}
        if name == "feed_forward":
            maps = {"wi_0": "gate", "wi_1": "inner", "wo": "outer"}
        names |= {f"{theirs}.{sublayer}.{key}": f"{name}/{own}" for key, own in maps.items()}
    return names


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """The arrays that the script wrote for each model."""
    wanted = "import torch, transformers"
    if subprocess.run([PYTHON, "-c", wanted], capture_output=True).returncode:
        pytest.skip(f"{PYTHON} has no torch and transformers")
    folder = tmp_path_factory.mktemp("models")
    done = subprocess.run([PYTHON, SCRIPT, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}


def fill(stack, names, theirs):
    """Copies the weights of another project into a stack; every weight must get a value."""
    gain = "scale" if stack.config.block.normalization.kind == "rms" else "gamma"
    values = {}
    for name, ours in names.items():
        for number in range(stack.num_layers) if "{}" in name else [None]:
            own = ours if number is None else f"block_{number}/{ours}"
            weight, bias = (
                theirs.get(f"{name.format(number)}.{kind}") for kind in ("weight", "bias")
            )
            if weight is not None and weight.ndim == 2:
                is_stored_as_ours = ".c_" in name  # for GPT-2
                values |= split(own, "kernel", weight if is_stored_as_ours else weight.T)
            elif weight is not None:
                values[f"{own}/{gain}"] = weight
            if bias is not None:
                values |= split(own, "beta" if weight.ndim == 1 else "bias", bias)
    if stack.config.position.shared:
        side = next(iter(names)).partition(".")[0]
        table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        values["block_0/self_attention/distance_bias"] = theirs[table]
    assert set(weights_of(stack)) == set(values)
    for weight in stack.weights:
        weight.assign(values[weight.path.removeprefix(stack.name + "/")])


def split(name, kind, value):
    """Splits a weight of theirs into ours; `attention/query,key,value` may be one matrix."""
    parent, _, sublayers = name.rpartition("/")
    parts = np.split(value, len(sublayers.split(",")), axis=-1)
    return {
        f"{parent}/{sublayer}/{kind}".removeprefix("/"): part
        for sublayer, part in zip(sublayers.split(","), parts, strict=True)
    }


@pytest.mark.parametrize("name", OPTIONS)
def test_an_encoder(arrays, name):
    theirs = arrays[name]
    encoder = Encoder(**OPTIONS[name], dropout=0.0)
    encoder.build((None, None, D))
    fill(encoder, NAMES[name], theirs)
    np.testing.assert_allclose(encoder(theirs["x"]), theirs["out"], rtol=0, atol=1e-5)


def test_an_encoder_and_decoder_of_t5(arrays):
    theirs = arrays["t5"]
    encoder, decoder = Encoder(**T5, dropout=0.0), Decoder(**T5, dropout=0.0)
    encoder.build((None, None, D))
    decoder.build((None, None, D), (None, None, D))
    for stack, side in ((encoder, "encoder"), (decoder, "decoder")):
        fill(stack, t5_names(side), theirs)
    out = decoder(theirs["x"], encoder(theirs["memory"]))
    np.testing.assert_allclose(out, theirs["out"], rtol=0, atol=1e-5)
