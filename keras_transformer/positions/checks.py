"""Checks that several positions share."""

from keras_transformer.checks import check_count


def check_linear(score) -> None:
    """Raises `ValueError` for a score that does not allow adding relative positions to keys."""
    if not score.is_linear:
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


def check_buckets(buckets, distance) -> None:
    """Checks the options of positions with buckets, T5's and disentangled ones.

    Args:
        buckets: Number of buckets.
        distance: Distance from which on all distances share the last bucket.

    Raises:
        ValueError: If the number of buckets is not a multiple of 4, or the distance is too small.
    """
    check_count("buckets", buckets)
    check_count("distance", distance)
    if buckets % 4 or distance <= buckets // 2:
        raise ValueError(
            "`buckets` must be a multiple of 4, and less than twice `distance`, as half of the "
            f"buckets hold one distance each. Received: buckets={buckets}, distance={distance}."
        )


def check_even(d_model) -> None:
    """Raises `ValueError` for an odd width, which sinusoids could not fill."""
    if d_model % 2:
        raise ValueError(
            "`d_model` must be even for sinusoidal positions, which come in pairs of sine "
            f"and cosine. Received: d_model={d_model}."
        )
