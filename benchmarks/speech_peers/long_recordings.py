"""Recognizers of long recordings: our run and faster-whisper, with and without a detector."""

import pathlib

import numpy as np


class Recognizer:
    """Transcribes one recording in each step.

    Args:
        transcribe: Function from samples `[N]` to a text.
        samples: The recording, which is transcribed once before anything is timed.
    """

    def __init__(self, transcribe, samples):
        self._transcribe, self._samples = transcribe, samples
        transcribe(samples)
        self.metadata = {}

    def run(self, steps):
        """Transcribes the recording; returns its text."""
        for _ in range(steps):
            text = self._transcribe(self._samples)
        return {"text": text}


def make(order):
    """Opens the model that the order names."""
    samples = np.load(pathlib.Path(order["samples"]))
    return Recognizer(LIBRARIES[order["library"]](order), samples)


def ours(order):
    """Returns the function of a run, which reads windows by timestamps."""
    from keras_transformer.pipelines import SileroVoiceActivity, SpeechRecognizer

    gate = SileroVoiceActivity() if order["gate"] else None
    recognizer = SpeechRecognizer.from_run(order["model"]).with_settings(voice_activity=gate)
    return lambda samples: recognizer.transcribe([samples])[0].text


def faster_whisper(order):
    """Returns the function of faster-whisper, with the same search and thresholds."""
    from faster_whisper import WhisperModel

    model = WhisperModel(order["model"], device="cpu", compute_type="float32", cpu_threads=1)
    how = {
        "language": "en", "beam_size": 1, "temperature": 0.0, "vad_filter": order["gate"],
        "condition_on_previous_text": False, "log_prob_threshold": -1.0, "no_speech_threshold": 0.6,
    }  # fmt: skip

    def transcribe(samples):
        segments, _ = model.transcribe(samples, **how)
        return "".join(segment.text for segment in segments)

    return transcribe


LIBRARIES = {"ours": ours, "faster-whisper": faster_whisper}
