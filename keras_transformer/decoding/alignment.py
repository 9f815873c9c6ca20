"""What an output attended to in the source, from a chosen layer and head."""

import numbers

import tensorflow as tf


def check_alignment(alignment, config):
    """Raises unless `alignment` is `None` or a layer and a head of the decoder."""
    if alignment is None:
        return
    layers = config.decoder_layers
    is_pair = isinstance(alignment, (tuple, list)) and len(alignment) == 2
    layer, head = alignment if is_pair else (None, None)
    if not _is_index(layer, layers) or not (head is None or _is_index(head, config.num_heads)):
        raise ValueError(
            "`alignment` must be a pair of a decoder layer and a head, or None for the mean of its "
            f"heads. There are {layers} layers and {config.num_heads} heads. "
            f"Received: alignment={alignment!r}."
        )


def _is_index(number, count):
    return isinstance(number, numbers.Integral) and -count <= number < count


def attended(weights, alignment):
    """Picks the weights of a layer and a head.

    Args:
        weights: From `Transformer.step`, a tensor `[B, H, N, S]` for each layer.
        alignment: Layer and head; `None` in place of a head is the mean of all.

    Returns:
        `[B, N, S]`, float32.
    """
    layer, head = alignment
    chosen = tf.cast(weights[layer], tf.float32)  # [B, H, N, S]
    return tf.reduce_mean(chosen, axis=1) if head is None else chosen[:, head]
