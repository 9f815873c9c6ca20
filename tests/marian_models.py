"""Small random models of Marian, with names and shapes written down a second time."""

import functools
import io

import numpy as np
import sentencepiece
import yaml

WORDS = [
    "".join(np.random.default_rng(seed).choice(list("abdeinrstu"), 2 + seed % 5))
    for seed in range(90)
]


@functools.cache
def vocabulary(size=37, seed=0):
    """A SentencePiece model as Marian learns them: end 0, unknown 1, neither pad nor start."""
    rng, out = np.random.default_rng(seed), io.BytesIO()
    lines = [" ".join(rng.choice(WORDS, 5)) for _ in range(300)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=size, eos_id=0, unk_id=1,
        bos_id=-1, pad_id=-1, minloglevel=2,
    )  # fmt: skip
    return out.getvalue()


def sentences(count=7, seed=3):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(count)]


def settings(**changes):
    """The settings of a student: 2 + 1 layers, an SSRU decoder, one table for all."""
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
    """Random weights for settings, with the settings among them."""
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
    weights["decoder_ff_logit_out_b"][0, 0] += 1.0  # outputs that end
    return {**weights, "special:model.yml": as_array(options)}


def as_array(options):
    """Settings as a file holds them."""
    return np.frombuffer(yaml.safe_dump(options).encode() + b"\0", "int8")
