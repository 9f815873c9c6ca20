"""Options of positions: which position each one belongs to, and which values fit together."""

from keras_transformer.checks import check_count

# Shaw et al. (2018), section 4.1, base model.
RELATIVE_DISTANCE = 16
# Raffel et al. (2020), section 2.1.
T5_DISTANCE, T5_BUCKETS = 128, 32
# Of a binary position: 65,536 positions.
DIGITS = 16

# Added to embeddings; the others are the work of every self-attention.
EMBEDDED = ("sinusoidal", "learned", "binary", "none")
OPTIONS = {
    "rotary_base": ("rotary",),
    "local_rotary_base": ("rotary",),
    "relative_distance": ("relative", "t5"),
    "relative_buckets": ("t5",),
    "share_positions": ("t5",),
}
# Su et al. (2021), section 3.3.
ROTARY_BASE = 10_000.0


def check_position(stack):
    """Refuses options of positions of a `StackConfig` without effect, or that do not fit together.

    Raises:
        ValueError: If there are any.
    """
    for name, positions in OPTIONS.items():
        value = getattr(stack, name)
        if value is not None and stack.position not in positions:
            raise ValueError(
                f"`{name}` has no effect but for {' and '.join(positions)} positions. "
                f"Received: {name}={value}, position={stack.position!r}."
            )
    if stack.position == "t5":
        check_buckets(
            stack.relative_buckets or T5_BUCKETS,
            stack.relative_distance or T5_DISTANCE,
            "relative_",
        )
    if stack.position == "relative":
        check_linear(stack.block.score != "additive", stack.block.score)


def check_recurrent(config):
    """Refuses options of the self-attention that an SSRU takes the place of.

    Raises:
        ValueError: If the position is the work of a self-attention, or there is a window.
    """
    if config.position not in EMBEDDED:
        raise ValueError(
            f"`position` must be one of {', '.join(EMBEDDED)} where a decoder has SSRUs: others "
            f"are the work of its self-attention. Received: position={config.position!r}."
        )
    if config.window is not None:
        raise ValueError(
            "`window` has no effect on a decoder with SSRUs, which has no self-attention: "
            f"`encoder={{'window': {config.window}}}` is that of the encoder alone. "
            f"Received: window={config.window}."
        )


def check_linear(is_linear, score):
    """Refuses a score with which relative positions cannot be added to keys."""
    if not is_linear:
        raise ValueError(
            "`score` must be a product of query and key with relative positions, whose vectors are "
            f"added to keys. Received: score={score!r}."
        )


def check_buckets(buckets, distance, prefix=""):
    """Refuses a number of buckets, or a distance from which on all share the last, for T5's bias.

    Args:
        buckets: Number of buckets.
        distance: The distance.
        prefix: What stands before the names of both arguments.
    """
    check_count(f"{prefix}buckets", buckets)
    check_count(f"{prefix}distance", distance)
    if buckets % 4 or distance <= buckets // 2:
        raise ValueError(
            f"`{prefix}buckets` must be a multiple of 4, and below twice `{prefix}distance`: half "
            "of them hold one distance each. "
            f"Received: {prefix}buckets={buckets}, {prefix}distance={distance}."
        )


def check_digits(length, d_model):
    """Refuses more positions than have different binary digits."""
    if length > 2 ** min(d_model, DIGITS):
        raise ValueError(
            f"`max_length` must be at most 2 to the power of `d_model`, and at most {2**DIGITS:,}, "
            "for binary positions, which have a digit in each feature. "
            f"Received: {length} positions, d_model={d_model}."
        )
