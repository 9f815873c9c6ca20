"""Marian's settings as a `TransformerConfig`, and back; what either cannot express by name."""

import dataclasses

from keras_transformer.config import TransformerConfig
from keras_transformer.pretrained.marian.gelu import EXACT_SINCE
from keras_transformer.pretrained.marian.gelu import OURS as WRITTEN_HERE

EPSILON = 1e-6  # of Marian's layer normalisation
ACTIVATIONS = {"relu": "relu", "swish": "silu", "gelu": "gelu"}  # Marian's names and Keras's
OURS = {"self-attention": "self_attention", "rnn": "ssru"}  # of what reads earlier positions
# Settings that change what a model computes, with the values that a `Transformer` has. A setting
# that is missing has the first of them.
EXPRESSIBLE = {
    "transformer-preprocess": ("", "d"),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("", "d"),
    "transformer-ffn-activation": tuple(ACTIVATIONS),
    "transformer-decoder-autoreg": tuple(OURS),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-attention-mask": ("default",),
    "transformer-tied-layers": ([],),
    "input-types": ([], ["sequence", "sequence"]),
    "factors-dim-emb": (0,),
    "lemma-dim-emb": (0,),
} | {
    name: (False,)
    for name in (
        "transformer-no-projection",
        "transformer-no-bias",
        "transformer-no-affine",
        "transformer-pool",
        "transformer-rnn-projection",
        "transformer-train-position-embeddings",
        "transformer-disable-position-embeddings",
        "transformer-alibi-shift",
        "transformer-alibi-trainable",
        "layer-normalization",
        "right-left",
        "ulr",
    )
}
FLAGS = ("tied-embeddings-all", "tied-embeddings", "tied-embeddings-src", "output-omit-bias")
NEEDED = {
    "dim-emb": int,
    "dim-vocabs": list,
    "enc-depth": int,
    "dec-depth": int,
    "transformer-heads": int,
    "transformer-dim-ffn": int,
}


def check_settings(settings, path):
    """Refuses settings that a `Transformer` does not have.

    Raises:
        ValueError: With the name of the setting.
    """
    if settings.get("type") != "transformer":
        raise ValueError(
            f"{path}: `type` must be transformer. Received: type={settings.get('type')!r}."
        )
    for name, values in EXPRESSIBLE.items():
        value = settings.get(name, values[0])
        if value not in values:
            choices = " or ".join(map(repr, values))
            raise ValueError(f"{path}: `{name}` must be {choices}. Received: {name}={value!r}.")
    for name in FLAGS:
        value = settings.get(name, False)
        if not isinstance(value, bool):
            raise ValueError(f"{path}: `{name}` must be true or false. Received: {name}={value!r}.")
    for name, kind in NEEDED.items():
        value = settings.get(name)
        if not isinstance(value, kind) or value in (0, []):
            raise ValueError(f"{path}: `{name}` must be there. Received: {name}={value!r}.")
    _check_decoder(settings, path)


def _check_decoder(settings, path):
    cell = settings.get("dec-cell", "ssru")
    if settings.get("transformer-decoder-autoreg") == "rnn" and cell != "ssru":
        raise ValueError(f"{path}: `dec-cell` must be 'ssru'. Received: dec-cell={cell!r}.")
    inner = settings.get("transformer-decoder-dim-ffn", 0)
    if inner not in (0, settings["transformer-dim-ffn"]):
        raise ValueError(
            f"{path}: `transformer-decoder-dim-ffn` must be 0 or that of the encoder. "
            f"Received: {inner!r}."
        )
    sizes = settings["dim-vocabs"]
    if len(sizes) != 2 or not all(isinstance(size, int) and size > 1 for size in sizes):
        raise ValueError(
            f"{path}: `dim-vocabs` must be the sizes of two vocabularies. Received: {sizes!r}."
        )


def to_config(settings, path, eos_id, unk_id, **changes):
    """Returns the `TransformerConfig` of a Marian model.

    Marian starts an output with nothing and pads with nothing. One more entry after both
    vocabularies is `pad_id` and `bos_id`; it has no text, and the model gives it no probability.

    Args:
        settings: The settings of the file.
        path: The file, for errors.
        eos_id: Id of the end in the vocabulary, Marian's 0.
        unk_id: Id of the unknown piece, Marian's 1, which no search emits.
        **changes: Fields that Marian does not know, such as `max_length` and `dropout`.

    Raises:
        ValueError: If it cannot be expressed; with the name of the setting.
    """
    check_settings(settings, path)
    source, target = settings["dim-vocabs"]
    silent = max(source, target)
    tie = _tie(settings)
    if tie == "all" and source != target:
        raise ValueError(
            f"{path}: `dim-vocabs` must be equal with `tied-embeddings-all`. "
            f"Received: {source} and {target}."
        )
    return TransformerConfig(
        vocab_size=silent + 1,
        pad_id=silent,
        bos_id=silent,
        eos_id=eos_id,
        silent_ids=(unk_id,),
        tie=tie,
        output_bias=True,
        num_layers=settings["enc-depth"],
        num_decoder_layers=settings["dec-depth"],
        d_model=settings["dim-emb"],
        d_ff=settings["transformer-dim-ffn"],
        num_heads=settings["transformer-heads"],
        activation=ACTIVATIONS[settings.get("transformer-ffn-activation", "relu")],
        decoder=OURS[settings.get("transformer-decoder-autoreg", "self-attention")],
        decoder_start="zeros",
        layer_norm_epsilon=EPSILON,
        attention_bias=True,
        sinusoid_layout="halves",
        sinusoid_endpoint=True,
        **changes,
    )


def _tie(settings):
    if settings.get("tied-embeddings-all", False):
        return "all"
    return "target" if settings.get("tied-embeddings", False) else "none"


def from_config(config, sizes):
    """Returns Marian's settings for a `TransformerConfig`.

    Args:
        config: One that `unexpressed` has nothing against.
        sizes: Entries of both vocabularies, as Marian has them.
    """
    to_marian = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    autoregression = {ours: theirs for theirs, ours in OURS.items()}
    return {
        **{name: values[0] for name, values in EXPRESSIBLE.items()},
        "type": "transformer",
        "version": _version(config),
        "dim-vocabs": list(sizes),
        "dim-emb": config.d_model,
        "dim-rnn": 1024,
        "enc-depth": config.num_layers,
        "dec-depth": config.decoder_layers,
        "enc-type": "bidirectional",
        "enc-cell": "gru",
        "enc-cell-depth": 1,
        "dec-cell": "ssru",
        "dec-cell-base-depth": 2,
        "dec-cell-high-depth": 1,
        "skip": False,
        "tied-embeddings": config.tie == "target",
        "tied-embeddings-all": config.tie == "all",
        "tied-embeddings-src": False,
        "output-omit-bias": False,
        "transformer-heads": config.num_heads,
        "transformer-dim-ffn": config.d_ff,
        "transformer-decoder-dim-ffn": 0,
        "transformer-ffn-activation": to_marian[config.activation],
        "transformer-decoder-autoreg": autoregression[config.decoder],
        "transformer-dim-aan": 2048,
        "transformer-aan-depth": 2,
        "transformer-aan-activation": "swish",
        "transformer-aan-nogate": False,
        "transformer-guided-alignment-layer": "last",
        "bert-train-type-embeddings": True,
        "bert-type-vocab-size": 2,
        "factors-combine": "sum",
        "lemma-dependency": "",
        "separator-symbol": "[eos]",
        "ulr-dim-emb": 0,
        "ulr-trainable-transformation": False,
    }


def minimum_version(config):
    """Returns the oldest version of Marian that computes the exported model, `None` for any."""
    return ".".join(map(str, EXACT_SINCE)) if config.activation == "gelu" else None


def _version(config):
    minimum = minimum_version(config)
    return WRITTEN_HERE if minimum is None else f"v{minimum} {WRITTEN_HERE}"


def unexpressed(config):
    """Returns the first field of a `TransformerConfig` that Marian does not have, and what it must
    be; `None` if it has all.
    """
    wanted = {
        "norm": "post",
        "position": "sinusoidal",
        "sinusoid_layout": "halves",
        "sinusoid_endpoint": True,
        "position_offset": 0,
        "score": "scaled_dot_product",
        "decoder_start": "zeros",
        "layer_norm_epsilon": EPSILON,
        "embedding_scale": None,
        "d_k": None,
        "d_v": None,
        "forced_eos_id": None,
        "embedding_norm": False,
        "final_norm": None,
    }
    plain = dataclasses.asdict(config)
    for name, value in wanted.items():
        if plain.get(name, value) != value:
            return name, repr(value)
    if config.activation not in ACTIVATIONS.values():
        return "activation", " or ".join(map(repr, ACTIVATIONS.values()))
    return None
