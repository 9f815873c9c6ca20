"""Generated recordings of Morse code with their texts. Nothing is downloaded."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_transformer.training.data.sources.base import Source
from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.demos.morse_code import draw_text
from keras_transformer.training.demos.morse_sound import (
    draw_conditions,
    fits,
    transmission,
)
from keras_transformer.training.tasks.speech_recognition.recordings import Recordings
from keras_transformer.training.tasks.speech_recognition.speed_copies import at_speeds

HELD_OUT = 500  # recordings in validation and in test each; at most a tenth of all
DRAWS = 50  # texts that are drawn for each one that is needed, at most
VERSION = 1  # changes whenever the same settings give other recordings
STRIDE = 1_000_003  # between the seeds of two settings; more than there are recordings
SETTINGS = (
    *("examples", "seed", "sample_rate", "max_seconds", "words_per_minute", "pitch"),
    *("jitter", "fading", "snr", "test_snr"),
)


def draw_texts(settings) -> list[str]:
    """Draws texts, all of them different.

    Args:
        settings: A `MorseDemoData`, or an object with its attributes.

    Raises:
        ValueError: If too few texts can be sent in `max_seconds`.
    """
    dice, texts = Dice(settings.seed), {}
    for _ in range(DRAWS * settings.examples):
        text = draw_text(dice)
        if fits(text, settings):
            texts[text] = None
        if len(texts) == settings.examples:
            return list(texts)
    raise ValueError(
        f"`data.max_seconds` must leave enough texts for {settings.examples} recordings at "
        f"{settings.words_per_minute[1]:g} words per minute: increase it, or the highest of "
        f"`data.words_per_minute`. Received: max_seconds={settings.max_seconds:g}."
    )


def open_morse_demo(settings) -> Source:
    """Opens the recordings that a `[data]` section describes; they are made when they are read.

    Every text is in one split. Conditions are drawn from the ranges of the settings; in the test
    split, the ratio of signal and noise is always `test_snr`.

    Args:
        settings: The section, a `MorseDemoData`, or an object with its attributes.
    """
    texts = draw_texts(settings)
    held_out = min(HELD_OUT, len(texts) // 10)
    begins = {"train": 2 * held_out, "validation": 0, "test": held_out}
    counts = {"train": len(texts) - 2 * held_out, "validation": held_out, "test": held_out}

    def read(split) -> Iterator[tuple[np.ndarray, str]]:
        for number in range(begins[split], begins[split] + counts[split]):
            seed = settings.seed * STRIDE + number
            snr = settings.test_snr if split == "test" else None
            conditions = draw_conditions(Dice(seed), texts[number], settings, snr)
            sound = transmission(texts[number], conditions, settings.sample_rate, seed)
            yield sound / np.float32(32768), texts[number]

    def transcripts(split) -> list[str]:
        return texts[begins[split] : begins[split] + counts[split]]

    own: dict[str, Any] = {name: getattr(settings, name) for name in SETTINGS}
    identities = {split: {"morse": VERSION, "split": split, **own} for split in counts}
    description = "generated recordings of Morse code"
    data = Recordings(counts, description, settings.sample_rate, read, identities, transcripts)
    return at_speeds(data, settings)
