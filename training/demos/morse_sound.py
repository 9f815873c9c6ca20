"""Morse code as a receiver hears it, with the same samples on every machine.

All steps are integers, or single operations of IEEE arithmetic: NumPy's sines and its normal
random numbers differ between processors and versions.
"""

import dataclasses
import math

import numpy as np

from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.demos.morse_code import elements, units

TURN = 2**32  # an angle of 360 degrees
SINE_BITS = 12
FULL = 32_767
SINES = np.array(
    [round(FULL * math.sin(2 * math.pi * n / 2**SINE_BITS)) for n in range(2**SINE_BITS)]
)
EDGE = 0.005  # seconds in which the tone rises and falls, so that it does not click
EVEN_BYTES, FOUR_ONES = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0001000100010001)
NOISE_VARIANCE = 8 * (256**2 - 1) / 12  # of a sum of eight random bytes


@dataclasses.dataclass(frozen=True)
class Conditions:
    """One transmission: who sends, and how it is received.

    Args:
        words_per_minute: Speed, in words such as PARIS (50 dots).
        pitch: Frequency of the tone in Hz.
        weight: Length of dots and dashes relative to the exact one.
        jitter: Standard deviation of the lengths of elements, relative to them; twice as much for
            the gaps between characters and words.
        fading: Share of the amplitude that is lost when the signal is weakest (QSB).
        fading_rate: Number of fades per second.
        snr: Ratio of signal and noise in dB: mean power of the tone while the key is down, over
            the power of the noise in the whole band, from 0 to half the sample rate.
        level: Largest sample, relative to the range.
        silence: Seconds before and after the text.
    """

    words_per_minute: float
    pitch: float = 600.0
    weight: float = 1.0
    jitter: float = 0.0
    fading: float = 0.0
    fading_rate: float = 0.2
    snr: float = 60.0
    level: float = 0.5
    silence: tuple[float, float] = (0.3, 0.3)


def draw_conditions(dice, text, settings, snr=None) -> Conditions:
    """Draws the conditions of a transmission.

    Args:
        dice: The `Dice`.
        text: The text. A long one is sent fast enough for `max_seconds`.
        settings: A `MorseDemoData`, or an object with its attributes.
        snr: Ratio of signal and noise in dB. `None`: drawn from `settings.snr`.
    """

    def between(low, high):
        return low + (high - low) * dice.random()

    slowest, fastest = settings.words_per_minute
    slowest = max(slowest, 1.2 * units(text) / settings.max_seconds)
    return Conditions(
        words_per_minute=between(slowest, max(slowest, fastest)),
        pitch=between(*settings.pitch),
        weight=between(0.9, 1.1),
        jitter=between(0, settings.jitter),
        fading=between(0, settings.fading),
        fading_rate=between(0.05, 0.5),
        snr=between(*settings.snr) if snr is None else snr,
        level=between(0.2, 0.9),
        silence=(between(0.1, 0.5), between(0.1, 0.5)),
    )


def fits(text, settings) -> bool:
    """Returns whether the fastest speed sends a text in `max_seconds`."""
    return 1.2 * units(text) <= settings.max_seconds * settings.words_per_minute[1]


def transmission(text, conditions, sample_rate, seed) -> np.ndarray:
    """Returns the sound of a text, `[N]`, int16.

    Args:
        text: The text, of characters in `CODES`; words are separated by single spaces.
        conditions: The `Conditions`.
        sample_rate: Samples per second.
        seed: Random seed of jitter, noise, and the phases of tone and fading.
    """
    dice = Dice(seed)
    marks = _marks(text, conditions, sample_rate, dice)
    key = _key(marks, sample_rate, conditions.silence)  # [N]
    tone = _oscillation(conditions.pitch, sample_rate, len(key), dice)
    slow = _oscillation(conditions.fading_rate, sample_rate, len(key), dice)
    gain = 1 - conditions.fading * (0.5 + slow / (2 * FULL))
    # Whole numbers, whose sum does not depend on its order.
    signal = np.rint(tone * gain * (key / FULL)).astype(np.int64)
    down = max(1, int(np.count_nonzero(key)))
    power = int((signal * signal).sum()) / down
    noise = _noise(len(key), seed)
    ratio = round(10 ** (conditions.snr / 10), 6)
    mixed = signal + noise * math.sqrt(power / ratio / NOISE_VARIANCE)
    loudest = max(1.0, float(np.abs(mixed).max()))
    return np.rint(mixed * (conditions.level * FULL / loudest)).astype(np.int16)


def _marks(text, conditions, sample_rate, dice):
    """Yields pairs: whether the key is down, and for how many samples."""
    dot = 1.2 / conditions.words_per_minute * sample_rate
    for down, length in elements(text):
        # A sum of uniform numbers is nearly normal and never extreme: at most 3.5 deviations.
        normal = sum(dice.random() for _ in range(4)) * math.sqrt(3) - 2 * math.sqrt(3)
        spread = conditions.jitter * (1 if down or length == 1 else 2)
        change = conditions.weight - 1 if down else 1 - conditions.weight
        # A heavy hand takes from the gap what it adds to the dot.
        exact = length + change
        yield down, max(1, round(dot * exact * max(0.2, 1 + spread * normal)))


def _key(marks, sample_rate, silence):
    """Returns the amplitude of the tone, `[N]`, from 0 to `FULL`."""
    before, after = (round(seconds * sample_rate) for seconds in silence)
    edge = round(EDGE * sample_rate)
    quarter = 2 ** (SINE_BITS - 2)
    angles = np.arange(edge) * (2 * quarter) // max(1, edge)  # half a turn
    rise = (FULL - SINES[(angles + quarter) % len(SINES)]) // 2  # [edge]
    spans = [np.zeros(before, np.int64)]
    for down, length in marks:
        span = np.full(length, FULL if down else 0, np.int64)
        if down:
            steep = min(edge, length // 2)
            span[:steep] = rise[:steep]
            span[length - steep :] = rise[:steep][::-1]
        spans.append(span)
    return np.concatenate([*spans, np.zeros(after, np.int64)])


def _oscillation(hertz, sample_rate, count, dice):
    """Returns a sine from a random phase on, `[count]`, whole numbers from -FULL to FULL."""
    step = round(hertz / sample_rate * TURN)
    phases = (dice.below(TURN) + step * np.arange(count)) & (TURN - 1)
    return SINES[phases >> (32 - SINE_BITS)]


def _noise(count, seed):
    """Returns white noise, nearly normal, `[count]`: sums of eight random bytes less their mean."""
    words = np.random.PCG64(seed).random_raw(count)
    pairs = (words & EVEN_BYTES) + (words >> np.uint64(8) & EVEN_BYTES)  # four sums of 16 bits
    return (pairs * FOUR_ONES >> np.uint64(48)).astype(np.int64) - 8 * 255 // 2
