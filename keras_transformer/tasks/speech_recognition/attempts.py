"""Searches for the windows of long recordings, by a run or an export."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Sample
from keras_transformer.decoding.prompts import NO_TOKEN
from keras_transformer.tasks.results import COMPLETE
from keras_transformer.tasks.speech_recognition import graphs
from keras_transformer.tasks.speech_recognition.by_timestamps import NextWindow, WindowOutput
from keras_transformer.tasks.speech_recognition.silence import NUMBERS

# From `frames`, `prompt` and `first`, see `Prompted`, a temperature and a seed for each window to
# the outputs of the search, see `SpeechCodec.outputs`, arrays by name.
Search = Callable[[dict[str, np.ndarray], float, list[int]], dict[str, np.ndarray]]


def search_at(search: Any, temperature: float) -> Any:
    """Returns the search for an attempt at a temperature; at 0 it is `search` itself."""
    if not temperature:
        return search
    seed = round(100 * temperature)  # so that no two attempts draw the same numbers
    return Sample(temperature, seed=seed, max_length=getattr(search, "max_length", None))


def search_of_run(recognizer: Any) -> Search:
    """Returns the `Search` of a `SpeechRecognizer`."""

    def search(inputs, temperature, seeds):
        chosen = search_at(recognizer.search, temperature)
        graph = recognizer.of_frames(chosen.kind, inputs["prompt"].shape[1])
        inputs = {name: tf.constant(values) for name, values in inputs.items()}
        inputs |= graphs.search_inputs(chosen, seeds)
        return {name: value.numpy() for name, value in graph(**inputs).items()}

    return search


def search_of_export(codec: Any, run: Callable[..., dict[str, Any]]) -> Search:
    """Returns the `Search` of an export, which has no temperatures.

    Args:
        codec: Its `SpeechCodec`.
        run: Function from `frames`, `prompt` and `first` of the width of the export to outputs.
    """

    def search(inputs, temperature, seeds):
        missing = codec.beginnings.width(codec.choices) - inputs["prompt"].shape[1]
        padded = np.pad(inputs["prompt"], [(0, 0), (0, missing)], constant_values=NO_TOKEN)
        outputs = run(**{**inputs, "prompt": padded})
        return {name: np.asarray(values) for name, values in outputs.items()}

    return search


@dataclasses.dataclass(frozen=True)
class WindowSearch:
    """Transcribes windows of long recordings, whoever runs the model.

    Args:
        codec: The `SpeechCodec`.
        search: The `Search`.
    """

    codec: Any
    search: Search

    def __call__(self, jobs: list[NextWindow], temperature: float) -> list[WindowOutput]:
        """Returns the `WindowOutput` of each window.

        Args:
            jobs: List of `NextWindow`s.
            temperature: See `Fallback`.
        """
        codec, speech = self.codec, self.codec.speech
        numbers, contexts = [job.numbers for job in jobs], [job.context for job in jobs]
        prompts, first = codec.beginnings.prompts(codec.choices, numbers, contexts)
        frames = np.zeros([len(jobs), speech.max_frames, speech.num_mel_filters], np.float32)
        for to, job in zip(frames, jobs, strict=True):
            to[: len(job.frames)] = job.frames
        inputs = {"frames": frames, "prompt": prompts, "first": first}
        outputs = self.search(inputs, temperature, [job.seed for job in jobs])
        tokens = _after(outputs["tokens"], prompts, codec.tokenizer.pad_id)
        texts = codec.tokenizer.decode(tokens).numpy()
        return [
            self._output(outputs, row, tokens[row].tolist(), texts[row], temperature)
            for row in range(len(jobs))
        ]

    def _output(self, outputs, row, tokens, text, temperature):
        codec = self.codec
        known = {name: float(outputs[name][row]) for name in NUMBERS if name in outputs}
        return WindowOutput(
            [token for token in tokens if token != codec.tokenizer.pad_id],
            int(outputs["tokens"][row][0]) if codec.choices.languages else None,
            text.decode("utf-8", "replace").strip(),
            float(outputs["score"][row]),
            float(outputs.get("terms", outputs["length"])[row]),
            bool(outputs[COMPLETE][row]),
            **{name: known.get(name) for name in NUMBERS},
            temperature=temperature,
        )


def _after(tokens, prompts, pad):
    """Returns the tokens `[B, L]` after the prompts `[B, P]`, with padding."""
    begins = (prompts != NO_TOKEN).sum(axis=1)
    after = np.full_like(tokens, pad)
    for to, row, begin in zip(after, tokens, begins, strict=True):
        to[: len(row) - begin] = row[begin:]
    return after
