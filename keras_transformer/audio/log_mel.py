"""Log-mel spectrograms as matrix products, as Whisper computes them."""

import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.tensors import Tensor

FLOOR = 1e-10  # smallest power whose logarithm is taken
RANGE = 8.0  # decades of power below the loudest value of a recording; lower values are raised
SETTINGS = ("sample_rate", "window", "hop", "num_filters")


class LogMel:
    """Samples of sound to log-mel frames: the features of Whisper, with other sizes as options.

    Frame t is centred on sample `t * hop`; both ends of a recording are continued by reflection,
    and there are `length // hop` frames. Each frame is weighted by a Hann window; the powers of its
    discrete Fourier transform are added up by triangular filters on Slaney's mel scale. Of the
    decimal logarithms, values more than 8 below the largest one of the recording are raised to that
    limit; the result is `(x + 4) / 4`.

    The transform is a product with a matrix of cosines and one of sines, so that a `.tflite` file
    needs built-in operators only. Reading, framing and products work eagerly, in a `tf.function`
    and in LiteRT.

    Args:
        sample_rate: Samples per second.
        window: Length of a frame in samples, which is also the length of the Fourier transform.
            Even.
        hop: Distance of two frames in samples, at most `window`.
        num_filters: Number of mel filters, F. Whisper has 80 or 128.

    Call arguments:
        samples: Sound from -1 to 1, `[B, N]`, float32.
        lengths: Number of samples of each row, `[B]`, int32; those after it are ignored. `None`:
            all rows have N samples.

    Returns:
        Frames `[B, T, F]`, float32, with `T = N // hop`; 0 after the end of a row. A row has the
        same frames in every batch.

    Raises:
        TypeError: If an option is not an integer.
        ValueError: If an option is out of its range.

    Reference: Radford et al. (2022), Robust Speech Recognition via Large-Scale Weak Supervision,
        section 2.2; Slaney (1998), Auditory Toolbox, for the mel scale.
    """

    def __init__(
        self, sample_rate: int = 16_000, window: int = 400, hop: int = 160, num_filters: int = 80
    ):
        check_count("sample_rate", sample_rate)
        check_count("window", window, least=2)
        check_count("hop", hop)
        check_count("num_filters", num_filters)
        if window % 2:
            raise ValueError(f"`window` must be even. Received: window={window}.")
        if hop > window:
            raise ValueError(
                "`hop` must be at most `window`, so that no sample is skipped. "
                f"Received: hop={hop}, window={window}."
            )
        self.sample_rate, self.window, self.hop = sample_rate, window, hop
        self.num_filters = num_filters

    def config(self) -> dict[str, int]:
        """Returns the arguments, plain values."""
        return {name: getattr(self, name) for name in SETTINGS}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LogMel":
        """Returns the `LogMel` from a result of `config`."""
        return cls(**config)

    def frame_counts(self, lengths: Tensor) -> Tensor:
        """Returns the number of frames of recordings with `lengths` samples."""
        return lengths // self.hop

    def __call__(self, samples: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Returns the frames of a batch of recordings."""
        # Not on a GPU: TensorFlow would multiply in TensorFloat-32 there, whose 10 bits would bury
        # everything more than 6 decades below the loudest tone.
        with tf.device("CPU:0"):
            samples = tf.convert_to_tensor(samples, tf.float32)
            frames = self._frames(_reflected(samples, lengths, self.window // 2))
            # The constants stand on the left: a converter to int8 quantises those on the right,
            # and 8 bits cannot hold powers 8 decades apart.
            cosines, sines = (
                tf.matmul(matrix, frames, transpose_b=True)  # [B, window / 2 + 1, T]
                for matrix in fourier_matrices(self.window)
            )
            filters = mel_filters(self.sample_rate, self.window, self.num_filters)
            powers = filters @ (tf.square(cosines) + tf.square(sines))  # [B, F, T]
            decades = tf.math.log(tf.maximum(powers, FLOOR)) * (1 / math.log(10))
            return self._scaled(tf.transpose(decades, [0, 2, 1]), lengths)

    def _frames(self, samples):
        """Returns overlapping frames `[B, T, window]` of `[B, N + window]`, by slices of blocks."""
        shape = tf.shape(samples)
        count = (shape[1] - self.window) // self.hop
        covered = -(-self.window // self.hop)  # blocks of `hop` samples that a frame touches
        # The last frame needs whole blocks, which may reach beyond the last sample.
        total = (count + covered - 1) * self.hop
        samples = tf.pad(samples, [[0, 0], [0, tf.maximum(total - shape[1], 0)]])[:, :total]
        blocks = tf.reshape(samples, [shape[0], count + covered - 1, self.hop])
        shifted = [blocks[:, first : first + count] for first in range(covered)]
        return tf.concat(shifted, axis=2)[..., : self.window]

    def _scaled(self, decades, lengths):
        """Returns logarithms `[B, T, F]` in Whisper's range, 0 after the end of a row."""
        if lengths is None:
            top = tf.reduce_max(decades, axis=[1, 2], keepdims=True)
            return (tf.maximum(decades, top - RANGE) + 4.0) / 4.0
        numbers = tf.range(tf.shape(decades)[1])
        counts = self.frame_counts(tf.cast(lengths, tf.int32))
        inside = tf.less(tf.expand_dims(numbers, 0), tf.expand_dims(counts, 1))  # [B, T]
        inside = tf.expand_dims(inside, 2)
        valid = tf.where(inside, decades, math.log10(FLOOR))
        top = tf.reduce_max(valid, axis=[1, 2], keepdims=True)
        return tf.where(inside, (tf.maximum(valid, top - RANGE) + 4.0) / 4.0, 0.0)


def _reflected(samples, lengths, margin):
    """Returns rows with `margin` samples more at both ends, by reflection: `[B, N + 2 margin]`.

    Rows shorter than `margin` are reflected several times, like `np.pad` does.
    """
    size = tf.shape(samples)[1]
    places = tf.range(-margin, size + margin)  # [N + 2 margin]
    if lengths is None:
        return tf.gather(samples, _mirrored(places, size), axis=1)
    lengths = tf.expand_dims(tf.cast(lengths, tf.int32), 1)  # [B, 1]
    return tf.gather(samples, _mirrored(tf.expand_dims(places, 0), lengths), batch_dims=1)


def _mirrored(places, length):
    """Returns the indices of a row that its continuation by reflection has at `places`."""
    period = tf.maximum(2 * (length - 1), 1)
    places = tf.math.floormod(places, period)
    return tf.minimum(places, period - places)


@functools.lru_cache(maxsize=8)
def fourier_matrices(window: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns cosines, and sines, times the Hann window: `[window / 2 + 1, window]`, float32.

    Args:
        window: Length of a frame in samples.
    """
    times = np.arange(window)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * times / window)
    # Reduced to a turn first: the cosine of a large argument is less exact.
    angles = 2 * np.pi * (np.outer(np.arange(window // 2 + 1), times) % window) / window
    matrices = hann * np.cos(angles), hann * np.sin(angles)
    return tuple(matrix.astype(np.float32) for matrix in matrices)


@functools.lru_cache(maxsize=8)
def mel_filters(sample_rate: int, window: int, num_filters: int) -> np.ndarray:
    """Returns triangular filters on Slaney's mel scale, each with area 1 over frequency in Hz.

    Args:
        sample_rate: Samples per second; the filters reach from 0 to half of it.
        window: Length of the Fourier transform.
        num_filters: Number of filters F.

    Returns:
        Weights `[F, window / 2 + 1]`, float32.
    """
    bins = np.arange(window // 2 + 1) * (sample_rate / window)  # Hz
    top = _mel_of(sample_rate / 2)
    edges = _hertz_of(np.linspace(0, top, num_filters + 2))
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    weights = np.maximum(0, np.minimum(rising, falling))
    weights *= 2 / (edges[2:] - edges[:-2])[:, None]
    return weights.astype(np.float32)


# Slaney's scale is linear up to 1,000 Hz, which is 15 mel, and logarithmic above.
_LINEAR, _BREAK, _STEP = 200 / 3, 1000.0, math.log(6.4) / 27


def _mel_of(hertz):
    if hertz < _BREAK:
        return hertz / _LINEAR
    return _BREAK / _LINEAR + math.log(hertz / _BREAK) / _STEP


def _hertz_of(mels):
    above = _BREAK * np.exp(_STEP * (mels - _BREAK / _LINEAR))
    return np.where(mels < _BREAK / _LINEAR, mels * _LINEAR, above)
