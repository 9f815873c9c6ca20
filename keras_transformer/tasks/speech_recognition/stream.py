"""Transcripts of speech while it arrives."""

import numpy as np

from keras_transformer.tasks.speech_recognition.audio.windows import merge, words_of
from keras_transformer.tasks.speech_recognition.samples import checked_samples
from keras_transformer.text.languages import DETECTED


class TranscriptStream:
    """Words of a recording that arrives piece by piece, such as from a microphone.

    Windows of the model's maximum length are transcribed as soon as they are complete. Words are
    returned when no later window can change them, which is one window later. Joined without
    anything between them they are the transcript, perhaps after a space: see `words_of`. If the
    recognizer detects languages, the first window decides.

    Args:
        recognizer: A `SpeechRecognizer`.

    Attributes:
        complete: Whether the outputs of all windows so far were; see `Transcript`.
    """

    def __init__(self, recognizer):
        self._recognizer = recognizer
        self._length, self._overlap = recognizer.window
        self._samples = np.zeros(0, np.float32)
        self._words = []  # which the next window may change
        self._known = 0  # number of samples at the beginning that a window has transcribed
        self._language = None  # once it is detected
        self.complete = True

    def add(self, samples: np.ndarray) -> list[str]:
        """Returns the words that are final after more samples.

        Args:
            samples: `[N]` at the model's sample rate: floating from -1 to 1, or int16.

        Raises:
            TypeError, ValueError: If the samples have another dtype, range or rank.
        """
        samples = checked_samples(samples, "the recording")
        self._samples = np.concatenate([self._samples, samples])
        final = []
        while len(self._samples) >= self._length:
            final += self._follow(self._samples[: self._length])
            self._samples = self._samples[self._length - self._overlap :]
            self._known = self._overlap
        return final

    def finish(self) -> list[str]:
        """Returns all words that are left at the end of the recording."""
        final = []
        shortest = max(self._known, self._recognizer.codec.speech.hop_length - 1)
        if len(self._samples) > shortest:
            final = self._follow(self._samples)
        final, self._words, self._samples = final + self._words, [], self._samples[:0]
        self._known, self._language = 0, None
        return final

    def _follow(self, window):
        """Transcribes the next window; returns the words that later ones cannot change."""
        (transcript,) = self._recognizer.transcribe([window], language=self._language)
        if self._recognizer.codec.choices.language == DETECTED:
            self._language = transcript.language
        self.complete = self.complete and transcript.complete
        words = words_of(transcript.text)
        merged = merge([self._words, words])
        count = max(0, len(merged) - len(words))
        self._words = merged[count:]
        return merged[:count]
