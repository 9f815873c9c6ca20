"""Options of position encodings: the encodings they apply to, and their checks."""

from keras_transformer.checks import check_count

# Shaw et al. (2018), section 4.1, base model.
RELATIVE_DISTANCE = 16
# Raffel et al. (2020), section 2.1.
T5_DISTANCE, T5_BUCKETS = 128, 32
# Number of digits of binary positions, enough for 65,536 positions.
DIGITS = 16

# Positions that are added to embeddings; the others act in self-attention.
EMBEDDED = ("sinusoidal", "learned", "binary", "none")
OPTIONS = {
    "rotary_base": ("rotary",),
    "local_rotary_base": ("rotary",),
    "rotary_factor": ("rotary",),
    "rotary_short_wave": ("rotary",),
    "rotary_long_wave": ("rotary",),
    "relative_distance": ("relative", "t5"),
    "relative_buckets": ("t5",),
    "share_positions": ("t5",),
}
# Su et al. (2021), section 3.3.
ROTARY_BASE = 10_000.0


def check_position(stack) -> None:
    """Checks the options of positions in a `StackConfig`.

    Raises:
        ValueError: If an option has no effect, or two options do not fit together.
    """
    for name, positions in OPTIONS.items():
        value = getattr(stack, name)
        if value is not None and stack.position not in positions:
            raise ValueError(
                f"`{name}` has an effect only on {' and '.join(positions)} positions. "
                f"Received: {name}={value}, position={stack.position!r}."
            )
    check_waves(stack.rotary_factor, stack.rotary_short_wave, stack.rotary_long_wave, "rotary_")
    if stack.position == "t5":
        check_buckets(
            stack.relative_buckets or T5_BUCKETS,
            stack.relative_distance or T5_DISTANCE,
            "relative_",
        )
    if stack.position == "relative":
        check_linear(stack.block.score != "additive", stack.block.score)


def check_recurrent(config) -> None:
    """Checks that a decoder with SSRUs has no options of self-attention.

    Raises:
        ValueError: If the position acts in self-attention, or there is a window.
    """
    if config.position not in EMBEDDED:
        raise ValueError(
            f"`position` must be one of {', '.join(EMBEDDED)} for a decoder with SSRUs: other "
            f"positions act in self-attention. Received: position={config.position!r}."
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
            "`score` must be a product of query and key with relative positions, whose vectors are "
            f"added to keys. Received: score={score!r}."
        )


def check_waves(factor, short_wave, long_wave, prefix="") -> None:
    """Checks the options that slow rotary positions down.

    Args:
        factor: Number that positions are divided by, or `None`.
        short_wave, long_wave: Wavelengths in positions, or `None`.
        prefix: Prefix of the names of the arguments, for errors.

    Raises:
        ValueError: If only one wavelength is given, the first is not the shorter one, or there is
            no factor that they limit.
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


def check_buckets(buckets, distance, prefix="") -> None:
    """Checks the options of T5's positions.

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
