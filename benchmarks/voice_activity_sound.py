"""Long recordings with known words: sentences of PocketSphinx's test data with pauses."""

import re
import wave

import numpy as np

RATE = 16_000
SHORTEST, LONGEST = 20, 60  # seconds of a pause
FOLDERS = {"librivox": "transcription", "cards": "cards.transcription"}
# As Whisper writes words of the transcripts.
SPELLINGS = {"mr": "mister", "4": "four", "5": "five", "7": "seven", "8": "eight", "10": "ten"}


def sentences(folder):
    """Returns the samples and the words of each recording, in order.

    Args:
        folder: `usr/share/pocketsphinx/test/data` of Debian's package `pocketsphinx-testdata`.
    """
    found = []
    for name, transcripts in FOLDERS.items():
        for line in (folder / name / transcripts).read_text("utf-8").splitlines():
            text, path = re.fullmatch(r"<s> (.*) </s> \((.*)\)", line).groups()
            with wave.open(str(folder / name / f"{path}.wav")) as file:
                content = file.readframes(file.getnframes())
            found.append((np.frombuffer(content, "<i2").astype("float32") / 32_768, text.strip()))
    return found


def recording(kind, spoken):
    """Returns a recording that begins and ends with a pause, and its words.

    Args:
        kind: One of `PAUSES`.
        spoken: Result of `sentences`.
    """
    rng = np.random.default_rng(0)
    parts = []
    for samples, _ in spoken:
        parts += [PAUSES[kind](rng, _length(rng)), samples]
    parts.append(PAUSES[kind](rng, _length(rng)))
    return np.concatenate(parts).astype("float32"), " ".join(text for _, text in spoken)


def words_of(text):
    """Returns a text in lower case without punctuation, with some words as in the transcripts."""
    words = re.sub(r"[^\w\s']", " ", text.lower()).split()
    return " ".join(SPELLINGS.get(word, word) for word in words)


def _length(rng):
    return int(rng.uniform(SHORTEST, LONGEST) * RATE)


def _silence(rng, length):
    return np.zeros(length)


def _noise(rng, length):
    return rng.normal(0, 0.01, length)


def _hum(rng, length):
    times = np.arange(length) / RATE
    tones = 0.05 * np.sin(2 * np.pi * 50 * times) + 0.02 * np.sin(2 * np.pi * 150 * times)
    return tones + rng.normal(0, 0.001, length)


def _chord(rng, length):
    times = np.arange(length) / RATE
    return sum(0.05 * np.sin(2 * np.pi * hertz * times) for hertz in (262, 330, 392))


PAUSES = {"silence": _silence, "noise": _noise, "hum": _hum, "chord": _chord}
