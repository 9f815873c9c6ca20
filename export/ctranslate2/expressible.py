"""Options of a model in CTranslate2's terms, and refusals of what its layout cannot express."""

from typing import Any

from keras_transformer import activations
from keras_transformer.config.rules import OutputRules
from keras_transformer.export.ctranslate2.engine import load_ctranslate2
from keras_transformer.export.errors import ExportError
from keras_transformer.feed_forwards import Gated, Plain
from keras_transformer.norms import LayerNorm, RMSNorm
from keras_transformer.positions import (
    Alibi,
    LinearScaling,
    Llama3Scaling,
    Relative,
    Rotary,
    T5Bias,
)
from keras_transformer.scores import DotProduct, General, ScaledDotProduct
from keras_transformer.variants import given_options, short

# Our names of activations and CTranslate2's.
ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "silu": "SWISH",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
}
# Positions, with those of their options that the layout expresses.
POSITIONS = {
    **{"sinusoidal": ("layout", "endpoint", "offset"), "learned": (), "binary": (), "none": ()},
    **{"relative": ("distance",), "t5": ("distance", "buckets", "shared")},
    **{"rotary": ("base", "scaling"), "alibi": ()},
}
NORMS = (LayerNorm, RMSNorm)
# Attention scores that are a product of queries and keys.
PRODUCTS = (ScaledDotProduct, DotProduct, General)
# Options of a stack of which the layout expresses at least some values; `_reasons` names the other
# values. Any option that is not listed, such as one that is new, must have its default.
EXPRESSED = {
    *("num_layers", "d_model", "max_length", "final_norm", "embedding_norm", "mixer"),
    *("position", "attends_to_start"),
    *("num_heads", "num_key_value_heads", "d_ff", "d_k", "d_v", "score"),
    *("dropout", "attention_dropout", "activation_dropout"),  # only in training
    *("activation", "feed_forward"),
    *("norm", "normalization"),
    *("attention_bias", "query_key_norm"),
}


def options_of(stack, is_decoder) -> dict[str, Any]:
    """Returns the options of CTranslate2's specification of a stack.

    Args:
        stack: The `StackConfig`.
        is_decoder: Whether it is a decoder, which has more options than an encoder.
    """
    block, position, heads = stack.block, stack.position, stack.block.attention
    options = {
        "num_layers": stack.num_layers,
        "num_heads": heads.num_heads,
        "pre_norm": block.norm.is_before,
        "no_final_norm": not stack.has_final_norm,
        "activation": _activation(block.activation),
        "layernorm_embedding": stack.embedding_norm,
        "ffn_glu": isinstance(block.feed_forward, Gated),
        "rms_norm": isinstance(block.normalization, RMSNorm),
        "relative_position": isinstance(position, Relative),
        "relative_attention_bias": isinstance(position, T5Bias),
        "qk_norm": isinstance(heads.query_key_norm, RMSNorm),
    }
    if _shares_keys(block):
        d_k, d_v = stack.head_sizes
        options |= {"num_heads_kv": heads.num_key_value_heads, "head_dim": max(d_k, d_v)}
    if isinstance(position, Rotary):
        options["rotary_dim"] = stack.head_sizes[0]
        options["rotary_interleave"] = False
        options["rotary_base"] = position.base
        options |= _scaling(position.scaling)
    if is_decoder:
        options["alibi"] = isinstance(position, Alibi)
    return options


def _scaling(scaling):
    """Returns the options of rotary positions that are divided by a factor."""
    if scaling is None:
        return {}
    kinds = load_ctranslate2().specs.attention_spec.RotaryScalingType
    kind = kinds.Linear if isinstance(scaling, LinearScaling) else kinds.Llama3
    return {"rotary_scaling_type": kind, "rotary_scaling_factor": scaling.factor}


def check_run(config, tokenizers, options, origin=None) -> None:
    """Raises an `ExportError` unless CTranslate2 can express a model: see `check_expressible`."""
    check_expressible(config)


def check_expressible(config) -> None:
    """Raises an `ExportError` unless CTranslate2's layout can express a model.

    Args:
        config: The configuration of a model that reads tokens, such as a `TransformerConfig`.
    """
    if not all(stack.has_blocks for stack in config.stacks):
        raise ExportError("The layout for CTranslate2 cannot express a model without blocks.")
    reasons = [reason for stack in config.stacks for reason in _reasons(stack, config)]
    if config.encoder is not None and isinstance(config.encoder.position, Alibi):
        reasons.append("alibi positions of an encoder")
    if getattr(config.input, "embedding_size", None) is not None:
        reasons.append("embeddings with a width of their own (`embedding_size`)")
    both = config.encoder is not None and config.decoder is not None
    if both and config.decoder.block.attention.query_key_norm is not None:
        reasons.append("normalised queries and keys of cross-attention (`query_key_norm`)")
    if len({norm.epsilon for norm in _norms(config) if isinstance(norm, NORMS)}) > 1:
        reasons.append("normalisations that differ in `epsilon`")
    if not both and getattr(config.head, "rules", OutputRules()).suppressed_ids:
        reasons.append("`suppressed_ids` of a model without a source")
    if getattr(config.head, "causal", False):
        reasons.append("an encoder whose tokens attend to earlier ones only (`causal`)")
    if getattr(config.head, "expansion", "none") == "unattended":
        reasons.append('tokens that no other token attends to (`expansion = "unattended"`)')
    if reasons:
        raise ExportError(f"The layout for CTranslate2 cannot express {reasons[0]}.")


def _reasons(stack, config):
    """Returns names of what CTranslate2 cannot express in a stack, a list."""
    if stack.has_state:
        role = "a decoder" if stack is config.decoder else "an encoder"
        return [f"{role} of {type(stack.mixer).__name__}s"]
    block, position, heads = stack.block, stack.position, stack.block.attention
    _activation(block.activation)
    general, sizes = isinstance(heads.score, General), {*stack.head_sizes}
    normed = heads.query_key_norm is not None
    reasons = {
        f"{position} positions": not _is_known(position),
        "yarn's scaling of rotary positions": _has_yarn(position),
        f"{heads.score.kind} scores": type(heads.score) not in PRODUCTS,
        "general scores of rotary positions": general and isinstance(position, Rotary),
        "general scores of normalised queries (`query_key_norm`)": general and normed,
        "normalised heads of two sizes (`query_key_norm`)": normed and len(sizes) > 1,
        "layer normalisation of queries and keys": isinstance(heads.query_key_norm, LayerNorm),
        f"{block.normalization} as a normalisation": not isinstance(block.normalization, NORMS),
        f"{block.feed_forward} as a feed-forward network": not isinstance(
            block.feed_forward, Plain | Gated
        ),
        "local attention": stack.window is not None,
        "a first block without its first norm": not block.norm.first,
        "a final norm after post-norm blocks": stack.has_final_norm and not block.norm.is_before,
    }
    values = short(stack.to_flat())
    others = [
        f"`{name}`"
        for name, field in stack.options().items()
        if name not in EXPRESSED and values.get(name, field.default) != field.default
    ]
    return [*(name for name, is_there in reasons.items() if is_there), *others]


def _shares_keys(block):
    return block.attention.groups != block.attention.num_heads


def _norms(config):
    """Yields the normalisations of a model."""
    for stack in config.stacks:
        yield stack.block.normalization
        yield stack.block.attention.query_key_norm


def _is_known(position):
    """Returns whether the layout expresses a position with all options that are not defaults."""
    expressed = POSITIONS.get(vars(type(position)).get("kind"))
    return expressed is not None and {*given_options(position)} <= {*expressed}


def _has_yarn(position):
    scaling = position.scaling if isinstance(position, Rotary) else None
    return not isinstance(scaling, LinearScaling | Llama3Scaling | None)


def _activation(name):
    # Keras has several names for some activations.
    name = activations.name_of(activations.get(name))
    if name not in ACTIVATIONS:
        raise ExportError(
            f"CTranslate2 can express the activations {', '.join(ACTIVATIONS)}. This model has "
            f"{name}."
        )
    return getattr(load_ctranslate2().specs.Activation, ACTIVATIONS[name])
