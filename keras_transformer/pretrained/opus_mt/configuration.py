"""`config.json` of a Marian model as the fields of a `TransformerConfig`."""

import dataclasses

from keras_transformer.checks import is_integer
from keras_transformer.pretrained.opus_mt.settings import EPSILON

# Names of Hugging Face's activations that compute what Keras's of another or the same name do.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "swish": "silu",
    "silu": "silu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "relu6": "relu6",
    "linear": "linear",
}
MOST_POSITIONS = 1 << 16  # of a table of sinusoids, which the file need not hold


@dataclasses.dataclass(frozen=True)
class Architecture:
    """What the files of the settings decide, and the weights do not.

    Attributes:
        fields: Fields of a `TransformerConfig`, by name.
        tied: Whether the output weights are the target embedding.
        shared: Whether source and target have one embedding and one vocabulary.
        learned: Whether positions are learned.
        offset: Rows of a learned table before that of the first position.
    """

    fields: dict
    tied: bool
    shared: bool
    learned: bool
    offset: int


def read_architecture(settings, generation):
    """Returns the `Architecture` that the settings describe.

    Args:
        settings: The `Settings` of `config.json`.
        generation: Those of `generation_config.json`, or `settings` again.

    Raises:
        ValueError: If one is missing, wrong or cannot be expressed; it is named.
    """
    if settings.get("model_type") != "marian":
        raise settings.wrong("model_type", '"marian", a model such as those of OPUS-MT')
    shared = settings.flag("share_encoder_decoder_embeddings", True)
    size = settings.count("vocab_size")
    target_size = size
    if settings.get("decoder_vocab_size") is not None:
        target_size = settings.count("decoder_vocab_size")
    if shared and target_size != size:
        raise settings.wrong("decoder_vocab_size", f"`vocab_size`, {size}, which both sides share")
    _check_expressible(settings)
    static = settings.flag("static_position_embeddings", True)
    if static and settings.count("max_position_embeddings") > MOST_POSITIONS:
        raise settings.wrong("max_position_embeddings", f"at most {MOST_POSITIONS:,} of sinusoids")
    offset = 0 if static else settings.count("extra_pos_embeddings", 0, least=0)
    fields = {
        "vocab_size": size,
        "target_vocab_size": None if shared else target_size,
        **_sizes(settings),
        **_norms(settings),
        **_special(settings, generation, min(size, target_size), target_size),
        "activation": _activation(settings),
        "embedding_scale": None if settings.flag("scale_embedding") else 1.0,
    }
    return Architecture(
        fields, settings.flag("tie_word_embeddings", True), shared, not static, offset
    )


def _sizes(settings):
    return {
        "d_model": settings.count("d_model"),
        "num_layers": settings.count("encoder_layers"),
        "num_decoder_layers": settings.count("decoder_layers"),
        "num_heads": settings.count("encoder_attention_heads"),
        "d_ff": settings.count("encoder_ffn_dim"),
        "max_length": settings.count("max_position_embeddings"),
        "dropout": settings.number("dropout", 0.1),
        "attention_dropout": settings.number("attention_dropout", 0.0),
        "activation_dropout": settings.number("activation_dropout", 0.0),
    }


def _norms(settings):
    return {
        "norm": "pre" if settings.flag("normalize_before") else "post",
        "final_norm": settings.flag("add_final_layer_norm"),
        "embedding_norm": settings.flag("normalize_embedding"),
        "layer_norm_epsilon": settings.number("layer_norm_eps", EPSILON),
    }


def _special(settings, generation, size, target_size):
    """The ids with a meaning of their own; what a generation needs comes from its own file."""
    pad_id = settings.token("pad_token_id", size)
    start = settings.token("decoder_start_token_id", size, default=pad_id)
    eos_id = settings.token("eos_token_id", size)
    return {
        "pad_id": pad_id,
        "bos_id": generation.token("decoder_start_token_id", size, default=start),
        "eos_id": generation.token("eos_token_id", size, default=eos_id),
        **_banned(generation, eos_id, target_size),
        "forced_eos_id": generation.token("forced_eos_token_id", target_size, optional=True),
    }


def _banned(generation, eos_id, size):
    """The tokens of `bad_words_ids`, which may be sequences; those of several are refused.

    Without `renormalize_logits` they keep their probability.
    """
    words = generation.get("bad_words_ids") or []
    single = isinstance(words, list) and all(
        isinstance(word, list) and len(word) == 1 and is_integer(word[0]) and 0 <= word[0] < size
        for word in words
    )
    if not single:
        raise generation.wrong("bad_words_ids", f"a list of lists of one of the {size} token ids")
    # As in `generate`, which takes the end of a sentence out of the list.
    ids = tuple(sorted({word[0] for word in words} - {eos_id}))
    return {"banned_ids" if generation.flag("renormalize_logits") else "silent_ids": ids}


def _check_expressible(settings):
    """Refuses by name what our model has no place for."""
    for name in ("attention_heads", "ffn_dim"):
        ours, other = f"encoder_{name}", f"decoder_{name}"
        if settings.get(other, settings.get(ours)) != settings.get(ours):
            raise settings.wrong(other, f"`{ours}`, {settings.get(ours)}: blocks are of one size")
    for name, only in (
        ("do_blenderbot_90_layernorm", False),
        ("is_encoder_decoder", True),
    ):
        if settings.flag(name, only) is not only:
            raise settings.wrong(name, f"{str(only).lower()}: no other order of the sums is known")


def _activation(settings):
    name = settings.get("activation_function", "gelu")
    if name not in ACTIVATIONS:
        raise settings.wrong("activation_function", f"one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
