"""Other sample rates, and other speeds of speech, by polyphase filters."""

import fractions
import functools
import math

import numpy as np

ZEROS = 10  # zero crossings of the filter's sinc on each side
BETA = 5.0  # shape of the Kaiser window
ROWS = 32_768  # samples that are computed together; bounds the memory


def resample(samples: np.ndarray, to_rate: int, from_rate: int) -> np.ndarray:
    """Converts a recording from one sample rate to another.

    A low-pass filter, a sinc in a Kaiser window, removes what the lower of both rates cannot
    represent. The results are those of `scipy.signal.resample_poly`.

    Args:
        samples: Samples `[N]`, floats.
        to_rate, from_rate: Samples per second of the result and of `samples`. Only their ratio
            matters.

    Returns:
        Samples `[ceil(N * to_rate / from_rate)]`, float64.

    Raises:
        ValueError: If a rate is not positive.

    Reference: Oppenheim and Schafer (2010), Discrete-Time Signal Processing, section 4.7.
    """
    if min(to_rate, from_rate) < 1:
        raise ValueError(
            "`to_rate` and `from_rate` must be positive. "
            f"Received: to_rate={to_rate}, from_rate={from_rate}."
        )
    common = math.gcd(to_rate, from_rate)
    up, down = to_rate // common, from_rate // common
    samples = np.asarray(samples, np.float64)
    if up == down or not len(samples):
        return samples
    filters, delay = _filters(up, down)  # [up, taps]
    taps = filters.shape[1]
    count = -(-len(samples) * up // down)
    # Sample k of the input is sample k * up of the signal that the filter would see.
    last = (np.arange(count) * down + delay) // up  # newest input of each output, [count]
    after = max(0, int(last[-1]) + 1 - len(samples))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(samples, (taps - 1, after)), taps)
    result = np.empty(count)
    for begin in range(0, count, ROWS):
        own = slice(begin, begin + ROWS)
        phases = (np.arange(count)[own] * down + delay) % up
        result[own] = np.einsum("MK,MK->M", windows[last[own]], filters[phases])
    return result


def change_speed(samples: np.ndarray, factor: float) -> np.ndarray:
    """Plays a recording faster or slower, which also raises or lowers its pitch.

    Args:
        samples: Samples `[N]`, floats.
        factor: Speed, such as 1.1 for a tenth faster; rounded to a hundredth.

    Returns:
        Samples `[ceil(N / factor)]`, float64.

    Raises:
        ValueError: If `factor` is not from 0.5 to 2.

    Reference: Ko et al. (2015), Audio Augmentation for Speech Recognition.
    """
    if not 0.5 <= factor <= 2:
        raise ValueError(f"`factor` must be from 0.5 to 2. Received: factor={factor}.")
    ratio = fractions.Fraction(round(100 * factor), 100)
    return resample(samples, ratio.denominator, ratio.numerator)


@functools.lru_cache(maxsize=16)
def _filters(up, down):
    """Returns the filter of each phase, newest input last, `[up, taps]`, and the delay."""
    widest = max(up, down)
    delay = ZEROS * widest
    times = np.arange(-delay, delay + 1)
    taper = np.i0(BETA * np.sqrt(1 - (times / delay) ** 2)) / np.i0(BETA)
    whole = np.sinc(times / widest) * taper
    whole *= up / whole.sum()  # a constant signal keeps its value
    taps = -(-len(whole) // up)
    whole = np.pad(whole, (0, taps * up - len(whole)))
    return whole.reshape(taps, up).T[:, ::-1], delay
