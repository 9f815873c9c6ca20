"""SpecAugment: masks over time and frequency of log-mel frames."""

import tensorflow as tf

from keras_transformer.tensors import Tensor

LARGEST_SHARE = 0.2  # of a recording that one mask over time may cover, the paper's `p`


def num_draws(time_masks: int, frequency_masks: int) -> int:
    """Returns the number of random numbers that `spec_augment` needs for each recording."""
    return 2 * (time_masks + frequency_masks)


def spec_augment(
    draws: Tensor,
    frames: Tensor,
    lengths: Tensor,
    *,
    time_masks: int = 0,
    max_time_mask: int = 100,
    frequency_masks: int = 0,
    max_frequency_mask: int = 27,
) -> Tensor:
    """Masks random parts of recordings, in a graph.

    A mask over time covers from 0 to `max_time_mask` frames, and at most a fifth of a recording; a
    mask over frequency covers from 0 to `max_frequency_mask` filters. Masked values are the mean of
    the recording. They depend on `draws` alone, so that a run which resumes draws the same masks.

    Args:
        draws: Random numbers from 0 to 1, `[B, num_draws(time_masks, frequency_masks)]`, float32.
        frames: Log-mel frames, `[B, T, F]`, floats.
        lengths: Number of frames of each recording, `[B]`, int32; later ones are padding, which
            stays as it is.
        time_masks, frequency_masks: Numbers of masks.
        max_time_mask: Largest width of a mask over time, in frames.
        max_frequency_mask: Largest width of a mask over frequency, in filters.

    Returns:
        The frames with their masks, `[B, T, F]`, of the same dtype.

    Raises:
        ValueError: If `draws` have another number of columns.

    Reference: Park et al. (2019), SpecAugment, section 2. Park et al. (2020), SpecAugment on
        Large Scale Datasets, section 2, for the limit relative to the length.

    Differs from the paper: there is no time warping, which the paper found to help least.
    """
    needed = num_draws(time_masks, frequency_masks)
    if draws.shape[-1] != needed:
        raise ValueError(
            f"`draws` must have {needed} numbers for each recording. Received: {draws.shape[-1]}."
        )
    if not needed:
        return frames
    shape, lengths = tf.shape(frames), tf.cast(lengths, tf.int32)
    real = tf.sequence_mask(lengths, shape[1])  # [B, T]
    share = tf.cast(tf.floor(LARGEST_SHARE * tf.cast(lengths, tf.float32)), tf.int32)
    widest = tf.minimum(max_time_mask, share)
    filters = tf.fill([shape[0]], shape[2])
    widest_filters = tf.minimum(max_frequency_mask, filters)
    over_time = _covered(draws[:, : 2 * time_masks], shape[1], lengths, widest)  # [B, T]
    over_frequency = _covered(draws[:, 2 * time_masks :], shape[2], filters, widest_filters)
    masked = tf.expand_dims(over_time, 2) | tf.expand_dims(over_frequency, 1)
    masked &= tf.expand_dims(real, 2)  # [B, T, F]
    return tf.where(masked, _means(frames, real), frames)


def _covered(draws, size, lengths, widest):
    """Returns the places that masks cover, boolean `[B, size]`.

    Args:
        draws: A random width and a random place for each mask, `[B, 2 * masks]`.
        size: Number of places.
        lengths: Number of places of each row that masks may cover, `[B]`.
        widest: Largest width of a mask for each row, `[B]`.
    """
    widths = _below(draws[:, 0::2], tf.expand_dims(widest + 1, 1))  # [B, masks]
    begins = _below(draws[:, 1::2], tf.expand_dims(lengths, 1) - widths + 1)
    places = tf.reshape(tf.range(size), [1, 1, -1])
    begins, ends = tf.expand_dims(begins, 2), tf.expand_dims(begins + widths, 2)
    return tf.reduce_any((places >= begins) & (places < ends), axis=1)


def _below(draws, limit):
    """Returns whole numbers from 0 to below `limit`."""
    numbers = tf.cast(tf.floor(draws * tf.cast(limit, draws.dtype)), tf.int32)
    return tf.minimum(numbers, limit - 1)  # rounding may reach the limit


def _means(frames, real):
    """Returns the mean of all values of each recording, `[B, 1, 1]`."""
    weights = tf.expand_dims(tf.cast(real, tf.float32), 2)  # [B, T, 1]
    total = tf.reduce_sum(tf.cast(frames, tf.float32) * weights, axis=[1, 2], keepdims=True)
    count = tf.reduce_sum(weights, axis=[1, 2], keepdims=True) * tf.cast(
        tf.shape(frames)[2], tf.float32
    )
    return tf.cast(tf.math.divide_no_nan(total, count), frames.dtype)
