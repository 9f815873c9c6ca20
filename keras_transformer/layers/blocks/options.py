"""Options of a configuration as keyword arguments of a block or a stack."""

import difflib
from collections.abc import Callable, Collection
from dataclasses import Field
from typing import Any

from keras_transformer import activations, positions
from keras_transformer.arguments import redeclared
from keras_transformer.checks import check_count
from keras_transformer.config.stack import StackConfig
from keras_transformer.feed_forwards import Network
from keras_transformer.mixers import (
    AttentionHeads,
    CrossAttention,
    check_given_once,
    has_option,
    short_options,
)
from keras_transformer.mixers.window import of_one_layer
from keras_transformer.variants import Variant

# Options of a `StackConfig` that only affect the embedding before the stack.
OF_EMBEDDING = ("d_model",)
# Options of a stack that a single block does not have.
OF_STACK = ("num_layers", "final_norm", "embedding_norm")
_FIELDS = StackConfig().options()
# In a model, `position` may also be one that the embedding adds, which a layer could not do.
OF_ATTENTION = {
    "position": redeclared(
        _FIELDS["position"],
        "none",
        """Position encoding that acts in self-attention, instead of one that is added to the
        embeddings: `"rotary"` (Su et al., 2021), `"relative"` (Shaw et al., 2018), `"alibi"` (Press
        et al., 2022), `"t5"` (Raffel et al., 2020), `"disentangled"` (He et al., 2021;
        bidirectional self-attention only), or a `Position`, such as `Rotary(base=500_000.0)`.
        `"none"`: order has an effect only if the embeddings have positions, such as those of a
        `PositionalEmbedding`.""",
    ),
    "attention_position": redeclared(
        _FIELDS["attention_position"],
        "none",
        """The same, in addition to positions that are added to the embeddings: `"t5"` in MPNet
        (Song et al., 2020).""",
    ),
}
_ACTIVATION = redeclared(
    _FIELDS["activation"],
    _FIELDS["activation"].default,
    _FIELDS["activation"].metadata["help"],
    accepts=str | Callable[..., Any],
)
OPTIONS = {
    name: {**OF_ATTENTION, "activation": _ACTIVATION}.get(name, field)
    for name, field in _FIELDS.items()
    if name not in OF_EMBEDDING
}


def split_options(
    arguments: dict[str, Any], options: Collection[str] = tuple(OPTIONS)
) -> tuple[StackConfig, dict[str, Any]]:
    """Returns the `StackConfig` that keyword arguments describe, and the remaining arguments.

    Args:
        arguments: Keyword arguments, by name.
        options: Names of the options of the stack and its blocks.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range.
    """
    given = {name: value for name, value in arguments.items() if name in options}
    for name, field in OF_ATTENTION.items():
        given[name] = positions.for_attention(given.get(name, field.default), name)
    if "activation" in given:
        given["activation"] = activations.name_of(given["activation"])
    others = {name: value for name, value in arguments.items() if name not in options}
    if given.get("num_heads") is None:
        given.pop("num_heads", None)
    if Network.make(given.get("feed_forward", "plain")).is_sublayer:
        _require_width(given, others)
    elif given.get("d_ff") is None:
        given.pop("d_ff", None)
    check_given_once(given)
    config = StackConfig.from_flat(d_model=None, **given)
    attention, cross = config.block.attention, given.get("cross_attention")
    if attention is not config.mixer and "cross_attention" not in options:
        _refuse_attention(config, given)
        return config, others
    if attention is not config.mixer and cross is not None:  # the only attention of the block
        for name in {*short_options(type(attention))} & {*given}:
            if not has_option(attention, name, given[name]):
                raise ValueError(
                    f"`{name}` must be given once, in `cross_attention` or beside it. "
                    f"Received: {name}={given[name]!r}, cross_attention={cross!r}."
                )
    _check_heads(config, given)
    return config, others


def _require_width(given, others):
    """Raises an error unless `d_ff` is given; names an argument that was meant as `d_ff`."""
    if given.get("d_ff") is None and (meant := difflib.get_close_matches("d_ff", others, 1)):
        raise TypeError(f"`{meant[0]}` is not an argument: did you mean `d_ff`?")
    check_count("d_ff", given.get("d_ff"))


def _check_heads(config, given):
    """Raises `TypeError` if a block that attends is not given a number of heads."""
    if not isinstance(config.block.attention, AttentionHeads):
        return
    role = "mixer" if config.block.attention is config.mixer else "cross_attention"
    own = given.get(role)
    in_own = own.keys() if isinstance(own, dict) else ()
    if "num_heads" not in {*given, *in_own} and not isinstance(own, Variant):
        raise TypeError(
            f"`num_heads` must be an integer, or an option of `{role}`. Received: num_heads=None."
        )


def _refuse_attention(config, given):
    """Raises `ValueError` for options of attention of a block that has none."""
    fields = short_options(CrossAttention)
    for name in fields.keys() & given.keys():
        if name == "num_heads" or given[name] != fields[name].default:
            raise ValueError(
                f"`{name}` must be left out without attention. "
                f"Received: {name}={given[name]!r}, mixer={config.mixer!r}."
            )


def block_options(*leave_out: str) -> dict[str, Field]:
    """Returns the fields of the options of a single block, by name, except `leave_out`."""
    return {name: field for name, field in OPTIONS.items() if name not in (*OF_STACK, *leave_out)}


def split_block_options(
    arguments: dict[str, Any], options: Collection[str]
) -> tuple[StackConfig, dict[str, Any]]:
    """Returns the result of `split_options` for a single block, which has no norms of a stack.

    Raises:
        TypeError: If a value has a wrong type.
        ValueError: If a value is out of range, or a norm or a window of a stack is given.
    """
    config, others = split_options(arguments, {*options, "final_norm", "embedding_norm"})
    if config.final_norm is not None or config.embedding_norm:
        raise ValueError(
            "`final_norm` and `embedding_norm` have no effect on a block: they are norms at the "
            f"end and the beginning of a stack. Received: final_norm={config.final_norm}, "
            f"embedding_norm={config.embedding_norm}."
        )
    if config.window is not None:
        of_one_layer(config.window)
    return config, others
