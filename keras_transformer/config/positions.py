"""Options of position encodings: the encodings they apply to, and their checks."""

from typing import Any

from keras_transformer.checks import check_count
from keras_transformer.variants import own_class

# Shaw et al. (2018), section 4.1, base model.
RELATIVE_DISTANCE = 16
# Raffel et al. (2020), section 2.1.
T5_DISTANCE, T5_BUCKETS = 128, 32
# DeBERTaV3, He et al. (2023).
DISENTANGLED_DISTANCE, DISENTANGLED_BUCKETS = 512, 512
# Defaults of positions with buckets.
BUCKETS = {
    "t5": (T5_BUCKETS, T5_DISTANCE),
    "disentangled": (DISENTANGLED_BUCKETS, DISENTANGLED_DISTANCE),
}
# Number of digits of binary positions, enough for 65,536 positions.
DIGITS = 16

# Positions that are added to embeddings; the others act in self-attention.
EMBEDDED = ("sinusoidal", "learned", "binary", "none")
# Positions that depend on distances alone.
RELATIVE = ("rotary", "relative", "alibi", "t5", "none")
OPTIONS = {
    "rotary_base": ("rotary",),
    "local_rotary_base": ("rotary",),
    "rotary_factor": ("rotary",),
    "rotary_short_wave": ("rotary",),
    "rotary_long_wave": ("rotary",),
    "rotary_log_ramp": ("rotary",),
    "rotary_scale": ("rotary",),
    "relative_distance": ("relative", *BUCKETS),
    "relative_buckets": (*BUCKETS,),
    "share_positions": (*BUCKETS,),
}
# Su et al. (2021), section 3.3.
ROTARY_BASE = 10_000.0


def check_position(stack) -> None:
    """Checks the options of positions in a `StackConfig`.

    Raises:
        ValueError: If an option has no effect, or two options do not fit together.
    """
    acting = stack.position_in_attention
    if stack.attention_position != "none" and acts_in_attention(stack.position):
        raise ValueError(
            "`attention_position` must be 'none' unless `position` is one of "
            f"{', '.join(EMBEDDED)}: other positions act in self-attention themselves. "
            f"Received: attention_position={acting!r}, position={stack.position!r}."
        )
    for name, positions in OPTIONS.items():
        value = getattr(stack, name)
        shared = name == "share_positions" and own_class("position", acting) is not None
        if value is not None and acting not in positions and not shared:
            names = " and ".join(filter(None, [", ".join(positions[:-1]), positions[-1]]))
            raise ValueError(
                f"`{name}` has an effect only on {names} positions. "
                f"Received: {name}={value}, position={acting!r}."
            )
    waves = stack.rotary_short_wave, stack.rotary_long_wave
    check_waves(stack.rotary_factor, *waves, stack.rotary_log_ramp, "rotary_")
    if isinstance(acting, str) and acting in BUCKETS:
        buckets, distance = BUCKETS[acting]
        check_buckets(
            stack.relative_buckets or buckets, stack.relative_distance or distance, "relative_"
        )
    if acting in ("relative", "disentangled"):
        check_linear(stack.block.score_is("is_linear"), stack.block.score)
    if acting == "disentangled":
        check_one_key_for_each_query(stack.block.num_heads, stack.block.num_key_value_heads)


def acts_in_attention(position: Any) -> bool:
    """Returns whether a position acts in self-attention, perhaps in addition to the embeddings.

    Args:
        position: A name, or a `Position`.
    """
    own = own_class("position", position)
    return position not in EMBEDDED if own is None else own.attends


def check_recurrent(config) -> None:
    """Checks that a decoder with SSRUs has no options of self-attention.

    Raises:
        ValueError: If the position acts in self-attention, or there is a window.
    """
    if acts_in_attention(config.position_in_attention):
        name = "position" if config.attention_position == "none" else "attention_position"
        raise ValueError(
            f"`{name}` must be one of {', '.join(EMBEDDED)} for a decoder with SSRUs: other "
            f"positions act in self-attention. Received: {name}={config.position_in_attention!r}."
        )
    if config.hides_start:
        raise ValueError(
            "`attends_to_start` must be true for a decoder with SSRUs, which has no self-attention."
            " Received: attends_to_start=False."
        )
    if config.window is not None:
        raise ValueError(
            "`window` has no effect on a decoder with SSRUs, which has no self-attention. Set it "
            f"for the encoder alone, `encoder={{'window': {config.window}}}`. "
            f"Received: window={config.window}."
        )


def check_linear(is_linear, score) -> None:
    """Raises `ValueError` for a score that does not allow adding relative positions to keys."""
    if not is_linear:
        raise ValueError(
            "`score` must be a product of query and key with relative or disentangled positions, "
            f"whose vectors are added to keys. Received: score={score!r}."
        )


def check_one_key_for_each_query(num_heads, num_key_value_heads) -> None:
    """Raises `ValueError` if heads share keys, which disentangled positions do not support."""
    if num_key_value_heads not in (None, num_heads):
        raise ValueError(
            "`num_key_value_heads` must be None with disentangled positions, which compare the "
            "keys of each head with a table. "
            f"Received: num_key_value_heads={num_key_value_heads}."
        )


def check_waves(factor, short_wave, long_wave, log_ramp=None, prefix="") -> None:
    """Checks the options that slow rotary positions down.

    Args:
        factor: Number that positions are divided by, or `None`.
        short_wave, long_wave: Wavelengths in positions, or `None`.
        log_ramp: Whether the logarithm of wavelengths between them counts, or `None`.
        prefix: Prefix of the names of the arguments, for errors.

    Raises:
        ValueError: If only one wavelength is given, the first is not the shorter one, there is no
            factor that they limit, or `log_ramp` is given without them.
    """
    waves = (short_wave, long_wave)
    received = (
        f"Received: {prefix}factor={factor}, {prefix}short_wave={short_wave}, "
        f"{prefix}long_wave={long_wave}."
    )
    if waves != (None, None) and factor is None:
        raise ValueError(
            f"`{prefix}short_wave` and `{prefix}long_wave` have no effect without "
            f"`{prefix}factor`. {received}"
        )
    if (short_wave is None) != (long_wave is None) or (short_wave or 0) >= (long_wave or 1):
        raise ValueError(
            f"`{prefix}short_wave` must be below `{prefix}long_wave`, or both must be None. "
            f"{received}"
        )
    if log_ramp is not None and short_wave is None:
        raise ValueError(
            f"`{prefix}log_ramp` has no effect without `{prefix}short_wave` and "
            f"`{prefix}long_wave`. Received: {prefix}log_ramp={log_ramp}."
        )


def check_buckets(buckets, distance, prefix="") -> None:
    """Checks the options of positions with buckets, T5's and disentangled ones.

    Args:
        buckets: Number of buckets.
        distance: Distance from which on all distances share the last bucket.
        prefix: Prefix of the names of both arguments, for errors.

    Raises:
        ValueError: If the number of buckets is not a multiple of 4, or the distance is too small.
    """
    check_count(f"{prefix}buckets", buckets)
    check_count(f"{prefix}distance", distance)
    if buckets % 4 or distance <= buckets // 2:
        raise ValueError(
            f"`{prefix}buckets` must be a multiple of 4, and less than twice `{prefix}distance`, "
            "as half of the buckets hold one distance each. "
            f"Received: {prefix}buckets={buckets}, {prefix}distance={distance}."
        )


def check_digits(length, d_model) -> None:
    """Raises `ValueError` for more positions than can have different binary digits."""
    if length > 2 ** min(d_model, DIGITS):
        raise ValueError(
            f"`max_length` must be at most 2 to the power of `d_model`, and at most {2**DIGITS:,}, "
            "for binary positions, as each feature is one digit. "
            f"Received: {length} positions, d_model={d_model}."
        )
