"""Log-mel spectrograms as matrix products, as Whisper computes them."""

import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.checks import check_count
from keras_transformer.never import never
from keras_transformer.tensors import Tensor

FLOOR = -10.0  # smallest decimal logarithm of a power; silence has none
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
        sample_rate: Samples per second, at least 1,000.
        window: Length of a frame in samples, which is also the length of the Fourier transform.
            Even.
        hop: Distance of two frames in samples, at most `window`.
        num_filters: Number of mel filters, F, at most `window // 2 + 1`. Whisper has 80 or 128.

    Call arguments:
        samples: Sound from -1 to 1, `[B, N]`, float32.
        lengths: Number of samples of each row, at most N, `[B]`, int32; those after it are ignored.
            `None`: all rows have N samples.

    Returns:
        Frames `[B, T, F]`, float32, with `T = N // hop`; 0 after the end of a row. A row has the
        same frames in every batch. A row of fewer than `hop` samples has none.

    Raises:
        TypeError: If an option is not an integer, or `samples` are not floats of rank 2.
        ValueError: If an option is out of its range.

    Reference: Radford et al. (2022), Robust Speech Recognition via Large-Scale Weak Supervision,
        section 2.2; Slaney (1998), Auditory Toolbox, for the mel scale.
    """

    def __init__(
        self, sample_rate: int = 16_000, window: int = 400, hop: int = 160, num_filters: int = 80
    ):
        check_count("sample_rate", sample_rate, least=1000)
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
        if num_filters > window // 2 + 1:
            raise ValueError(
                "`num_filters` must be at most `window // 2 + 1`, the number of frequencies. "
                f"Received: num_filters={num_filters}, window={window}."
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

    def frequencies(self) -> np.ndarray:
        """Returns the centre of each filter in Hz, `[F]`, float64."""
        return _edges(self.sample_rate, self.num_filters)[1:-1]

    def __call__(self, samples: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Returns the frames of a batch of recordings."""
        if lengths is not None:
            _, lengths = _checked(samples, lengths)
        return self.scaled(self.decades(samples, lengths), lengths)

    def decades(self, samples: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Returns the decimal logarithms of the powers, `[B, T, F]`, of at least `FLOOR`."""
        # Not on a GPU: TensorFlow would multiply in TensorFloat-32 there, whose 10 bits would bury
        # everything more than 6 decades below the loudest tone.
        with tf.device("CPU:0"):
            samples, lengths = _checked(samples, lengths)
            zero = never(samples)
            frames = self._frames(samples, lengths, zero)
            cosines, sines = (_exact(matrix, zero) for matrix in fourier_matrices(self.window))
            filters = _exact(mel_filters(self.sample_rate, self.window, self.num_filters), zero)
            powers = tf.square(frames @ cosines) + tf.square(frames @ sines)  # [B, T, window/2+1]
            decades = tf.math.log(powers @ filters) * _exact(1 / math.log(10), zero)
            return tf.maximum(decades, FLOOR)

    def _frames(self, samples, lengths, zero):
        """Returns overlapping frames `[B, T, window]`, whose first is centred on sample 0."""
        size = _size(samples)
        count, covered = size // self.hop, -(-self.window // self.hop)
        # A frame is the beginning of `covered` blocks of `hop` samples. Their places are a sum, of
        # which a file need not store every element.
        begins = tf.range(count + covered - 1) * self.hop - self.window // 2
        places = tf.expand_dims(begins + zero, 1) + tf.expand_dims(tf.range(self.hop), 0)
        if samples.shape[1] in (0, None):  # so that an empty row has a sample to look up
            samples = tf.pad(samples, [[0, 0], [0, 1]])
        if lengths is None:
            blocks = tf.gather(samples, _mirrored(places, size), axis=1)
        else:
            mirrored = _mirrored(tf.expand_dims(places, 0), tf.reshape(lengths, [-1, 1, 1]))
            blocks = tf.gather(samples, mirrored, axis=1, batch_dims=1)  # [B, T + covered - 1, hop]
        shifted = [blocks[:, first : first + count] for first in range(covered)]
        return tf.concat(shifted, axis=2)[..., : self.window]

    def scaled(self, decades: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Returns logarithms `[B, T, F]` in Whisper's range, 0 after the end of a row.

        Args:
            decades: Result of `decades`.
            lengths: Number of samples of each recording, `[B]`. `None`: they fill all frames.
        """
        if lengths is None:
            top = tf.reduce_max(decades, axis=[1, 2], keepdims=True)
            return (tf.maximum(decades, top - RANGE) + 4.0) / 4.0
        numbers = tf.range(tf.shape(decades)[1])
        counts = self.frame_counts(lengths)
        inside = tf.less(tf.expand_dims(numbers, 0), tf.expand_dims(counts, 1))  # [B, T]
        inside = tf.expand_dims(inside, 2)
        valid = tf.where(inside, decades, FLOOR)
        top = tf.reduce_max(valid, axis=[1, 2], keepdims=True)
        return tf.where(inside, (tf.maximum(valid, top - RANGE) + 4.0) / 4.0, 0.0)


def _checked(samples, lengths):
    """Returns samples, float32, and lengths from 0 to their number, int32."""
    samples = tf.convert_to_tensor(samples)
    if not samples.dtype.is_floating or samples.shape.rank not in (2, None):
        raise TypeError(
            "`samples` must be floats from -1 to 1, of shape [B, N]. "
            f"Received: {samples.dtype.name} of shape {samples.shape}."
        )
    if samples.shape.rank is None:
        samples = tf.ensure_shape(samples, [None, None])
    if lengths is not None:
        lengths = tf.clip_by_value(tf.cast(lengths, tf.int32), 0, _size(samples))
    return tf.cast(samples, tf.float32), lengths


def _size(samples):
    """Returns the number of samples in a row, an integer if it is known."""
    return samples.shape[1] if samples.shape[1] is not None else tf.shape(samples)[1]


def _exact(values, zero):
    """Returns numbers, float32, that a converter cannot round.

    In a `.tflite` file of int8 or float16, floats have 8 or 11 bits, and powers 8 decades apart are
    lost: frames changed by up to 1.3 and by 0.1. Whole numbers are not rounded.
    """
    values = np.asarray(values)
    unit = 2 ** (30 - max(0, math.ceil(math.log2(np.abs(values).max()))))
    whole = np.rint(values * unit).astype(np.int32)
    return tf.cast(whole + zero, tf.float32) / tf.cast(unit + zero, tf.float32)


def _mirrored(places, length):
    """Returns the indices of a row that its continuation by reflection has at `places`.

    Rows shorter than half a window are reflected several times, like `np.pad` does.
    """
    period = tf.maximum(2 * (length - 1), 1)
    places = tf.math.floormod(places, period)
    return tf.minimum(places, period - places)


@functools.lru_cache(maxsize=8)
def fourier_matrices(window: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns cosines, and sines, times the Hann window: `[window, window / 2 + 1]`, float64.

    Args:
        window: Length of a frame in samples.
    """
    times = np.arange(window)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * times / window)
    # Reduced to a turn first: the cosine of a large argument is less exact.
    angles = 2 * np.pi * (np.outer(times, np.arange(window // 2 + 1)) % window) / window
    return hann[:, None] * np.cos(angles), hann[:, None] * np.sin(angles)


@functools.lru_cache(maxsize=8)
def mel_filters(sample_rate: int, window: int, num_filters: int) -> np.ndarray:
    """Returns triangular filters on Slaney's mel scale, each with area 1 over frequency in Hz.

    Args:
        sample_rate: Samples per second; the filters reach from 0 to half of it.
        window: Length of the Fourier transform.
        num_filters: Number of filters F.

    Returns:
        Weights `[window / 2 + 1, F]`, float64.
    """
    bins = np.arange(window // 2 + 1) * (sample_rate / window)  # Hz
    edges = _edges(sample_rate, num_filters)
    rising = (bins[:, None] - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - bins[:, None]) / np.diff(edges)[1:]
    return np.maximum(0, np.minimum(rising, falling)) * 2 / (edges[2:] - edges[:-2])


def _edges(sample_rate, num_filters):
    """Returns the centres of the filters in Hz, and those of one more on each side, `[F + 2]`."""
    return _hertz_of(np.linspace(0, _mel_of(sample_rate / 2), num_filters + 2))


# Slaney's scale is linear up to 1,000 Hz, which is 15 mel, and logarithmic above.
_LINEAR, _BREAK, _STEP = 200 / 3, 1000.0, math.log(6.4) / 27


def _mel_of(hertz):
    if hertz < _BREAK:
        return hertz / _LINEAR
    return _BREAK / _LINEAR + math.log(hertz / _BREAK) / _STEP


def _hertz_of(mels):
    above = _BREAK * np.exp(_STEP * (mels - _BREAK / _LINEAR))
    return np.where(mels < _BREAK / _LINEAR, mels * _LINEAR, above)
