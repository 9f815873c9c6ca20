"""Small random models of Marian; their names and shapes are written down a second time."""

import functools
import io

import numpy as np
import sentencepiece
import yaml

WORDS = [
    "".join(np.random.default_rng(seed).choice(list("abdeinrstu"), 2 + seed % 5))
    for seed in range(90)
]

# Ids of a vocabulary learned by this package.
IDS = {"end": 3, "unknown": 1, "start": 2, "padding": 0}


@functools.cache
def vocabulary(size=37, seed=0, end=0, unknown=1, start=-1, padding=-1):
    """A SentencePiece model as Marian learns it: end 0, unknown 1, no padding or start."""
    rng, out = np.random.default_rng(seed), io.BytesIO()
    lines = [" ".join(rng.choice(WORDS, 5)) for _ in range(300)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=size, minloglevel=2,
        eos_id=end, unk_id=unknown, bos_id=start, pad_id=padding,
    )  # fmt: skip
    return out.getvalue()


def sentences(count=7, seed=3):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(count)]


def settings(**changes):
    """Returns the settings of a student: 2 + 1 layers, an SSRU decoder, one shared table."""
    return {
        "type": "transformer",
        "dim-vocabs": [37, 37],
        "dim-emb": 16,
        "enc-depth": 2,
        "dec-depth": 1,
        "tied-embeddings-all": True,
        "tied-embeddings": False,
        "tied-embeddings-src": False,
        "transformer-heads": 2,
        "transformer-dim-ffn": 24,
        "transformer-ffn-activation": "relu",
        "transformer-decoder-autoreg": "rnn",
        "dec-cell": "ssru",
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }


def arrays(options, seed=5):
    """Returns random weights for the settings, together with the settings."""
    rng = np.random.default_rng(seed)
    width, inner = options["dim-emb"], options["transformer-dim-ffn"]
    source, target = options["dim-vocabs"]
    shapes = {}

    def norm(name):
        shapes[f"{name}_ln_scale"] = shapes[f"{name}_ln_bias"] = (1, width)

    def attention(name):
        for letter in "qkvo":
            shapes[f"{name}_W{letter}"] = (width, width)
            shapes[f"{name}_b{letter}"] = (1, width)
        norm(f"{name}_Wo")

    def feed_forward(name):
        shapes[f"{name}_ffn_W1"], shapes[f"{name}_ffn_b1"] = (width, inner), (1, inner)
        shapes[f"{name}_ffn_W2"], shapes[f"{name}_ffn_b2"] = (inner, width), (1, width)
        norm(f"{name}_ffn_ffn")

    for layer in range(1, options["enc-depth"] + 1):
        attention(f"encoder_l{layer}_self")
        feed_forward(f"encoder_l{layer}")
    for layer in range(1, options["dec-depth"] + 1):
        name = f"decoder_l{layer}"
        if options["transformer-decoder-autoreg"] == "rnn":
            shapes[f"{name}_rnn_W"] = shapes[f"{name}_rnn_Wf"] = (width, width)
            shapes[f"{name}_rnn_bf"] = (1, width)
            norm(f"{name}_rnn_ffn")
        else:
            attention(f"{name}_self")
        attention(f"{name}_context")
        feed_forward(name)
    shapes["decoder_ff_logit_out_b"] = (1, target)
    if options["tied-embeddings-all"] or options["tied-embeddings-src"]:
        shapes["Wemb"] = (source, width)
    else:
        shapes["encoder_Wemb"], shapes["decoder_Wemb"] = (source, width), (target, width)
    if not (options["tied-embeddings-all"] or options["tied-embeddings"]):
        shapes["decoder_ff_logit_out_Wt"] = (target, width)
    weights = {}
    for name, shape in shapes.items():
        values = rng.normal(size=shape) / shape[0] ** 0.5
        if name.endswith("Wemb") or name.endswith("_Wt"):
            values = rng.normal(size=shape) / shape[1] ** 0.5
        weights[name] = (values + name.endswith("scale")).astype("float32")
    weights["decoder_ff_logit_out_b"][0, 0] += 1.0  # so that outputs end
    return {**weights, "special:model.yml": as_array(options)}


def varied(weights):
    """Scales random weights in place so that outputs depend on their sources; returns them."""
    for name, values in weights.items():
        if name.endswith("ln_bias") or name[-3:-1] == "_b":
            values *= 0.1
        elif name[-3:-1] == "_W" and ("context" in name or name[-1] in "qk"):
            values *= 3
    return weights


def as_array(options):
    """Returns settings as a file stores them."""
    return np.frombuffer(yaml.safe_dump(options).encode() + b"\0", "int8")
