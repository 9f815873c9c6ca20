"""Marian's settings for a `TransformerConfig`, and the fields that they cannot express."""

from typing import Any

from keras_transformer.feed_forwards import Plain
from keras_transformer.norms import LayerNorm, PostNorm
from keras_transformer.positions import Sinusoidal
from keras_transformer.pretrained.families.marian import ACTIVATIONS, EPSILON, EXPRESSIBLE, OURS
from keras_transformer.pretrained.files.marian.gelu import EXACT_SINCE
from keras_transformer.pretrained.files.marian.gelu import OURS as WRITTEN_HERE
from keras_transformer.scores import ScaledDotProduct


def from_config(config, sizes) -> dict[str, Any]:
    """Returns Marian's settings for a `TransformerConfig`.

    Args:
        config: A `TransformerConfig` for which `unexpressed` returns `None`.
        sizes: Sizes of both vocabularies in Marian.
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
        "tied-embeddings": config.head.tie == "target",
        "tied-embeddings-all": config.head.tie == "all",
        "tied-embeddings-src": False,
        "output-omit-bias": False,
        "transformer-heads": config.encoder.block.attention.num_heads,
        "transformer-dim-ffn": config.encoder.block.d_ff,
        "transformer-decoder-dim-ffn": 0,
        "transformer-ffn-activation": to_marian[config.encoder.block.activation],
        "transformer-decoder-autoreg": autoregression[config.decoder.mixer.kind],
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


def minimum_version(config) -> str | None:
    """Returns the oldest version of Marian that computes the model correctly; `None` for any."""
    return ".".join(map(str, EXACT_SINCE)) if config.encoder.block.activation == "gelu" else None


def _version(config):
    minimum = minimum_version(config)
    return WRITTEN_HERE if minimum is None else f"v{minimum} {WRITTEN_HERE}"


def unexpressed(config) -> tuple[str, Any, str] | None:
    """Returns the first field of a `TransformerConfig` that Marian cannot express.

    Returns:
        The name of the field, its value and its allowed values as a text; `None` if Marian can
        express all.
    """
    wrong = _unexpressed_mixer(config)
    if wrong is not None:
        return wrong
    wanted = {
        "norm": PostNorm(),
        "position": Sinusoidal("halves", endpoint=True),
        "score": ScaledDotProduct(),
        "decoder_start": "zeros",
        "normalization": LayerNorm(EPSILON),
        "embedding_scale": None,
        "d_k": None,
        "d_v": None,
        "forced_bos_id": None,
        "forced_eos_id": None,
        "language_codes": "none",
        "no_repeat_ngram": 0,
        "end_ids": (),
        "embedding_norm": False,
        "layer_scale": None,
        "final_norm": None,
        "num_key_value_heads": None,
        "window": None,
    }
    flat = config.to_flat()
    for name, value in wanted.items():
        if flat.get(name) != value:
            return name, flat.get(name), repr(value)
    for stack in config.stacks:
        bias = stack.block.attention.use_bias
        if not isinstance(bias, bool):
            return "attention_bias", bias, "True or False"
    for name, value in flat.get("decoder", {}).items():
        if name not in ("num_layers", "mixer"):
            return name, value, f"{flat.get(name)!r}, as in the encoder"
    feed_forward, activation = config.encoder.block.feed_forward, config.encoder.block.activation
    if not isinstance(feed_forward, Plain):
        return "feed_forward", feed_forward, "Plain()"
    if activation not in ACTIVATIONS.values():
        return "activation", activation, " or ".join(map(repr, ACTIVATIONS.values()))
    return None


def _unexpressed_mixer(config):
    """Returns the same as `unexpressed` for the mixers of a model."""
    mixer = config.encoder.mixer.kind
    if mixer != OURS["self-attention"]:
        return "mixer", mixer, f"{OURS['self-attention']!r} in the encoder"
    mixer = config.decoder.mixer.kind
    if mixer not in OURS.values():
        return "mixer", mixer, " or ".join(map(repr, OURS.values()))
    return None
