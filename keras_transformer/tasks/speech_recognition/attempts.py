"""Searches for the windows of long recordings: prompts with context, and temperatures."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Sample
from keras_transformer.decoding.prompts import NO_TOKEN
from keras_transformer.tasks.results import COMPLETE
from keras_transformer.tasks.speech_recognition import graphs
from keras_transformer.tasks.speech_recognition.by_timestamps import NextWindow, WindowOutput
from keras_transformer.tasks.speech_recognition.silence import NUMBERS


def search_at(search: Any, temperature: float) -> Any:
    """Returns the search for an attempt at a temperature; at 0 it is `search` itself."""
    if not temperature:
        return search
    seed = round(100 * temperature)  # so that no two attempts draw the same numbers
    return Sample(temperature, seed=seed, max_length=getattr(search, "max_length", None))


def outputs_of_jobs(
    recognizer: Any, jobs: list[NextWindow], temperature: float
) -> list[WindowOutput]:
    """Returns the `WindowOutput` of each window.

    Args:
        recognizer: A `SpeechRecognizer`.
        jobs: List of `NextWindow`s.
        temperature: See `Fallback`.
    """
    codec, search = recognizer.codec, search_at(recognizer.search, temperature)
    prompts, first = _prompts(recognizer, jobs)
    speech = codec.speech
    frames = np.zeros([len(jobs), speech.max_frames, speech.num_mel_filters], np.float32)
    for to, job in zip(frames, jobs, strict=True):
        to[: len(job.frames)] = job.frames
    inputs = {"frames": tf.constant(frames), "prompt": prompts, "first": first}
    inputs |= graphs.search_inputs(search, [job.seed for job in jobs])
    graph = recognizer.of_frames(search.kind, prompts.shape[1])
    outputs = {name: value.numpy() for name, value in graph(**inputs).items()}
    tokens = _after(outputs["tokens"], prompts, codec.tokenizer.pad_id)
    texts = [text.decode("utf-8", "replace") for text in codec.tokenizer.decode(tokens).numpy()]
    known = [name for name in NUMBERS if name in outputs]
    return [
        WindowOutput(
            [token for token in tokens[row].tolist() if token != codec.tokenizer.pad_id],
            _language(codec, outputs["tokens"][row]),
            texts[row].strip(),
            float(outputs["score"][row]),
            float(outputs["terms"][row]),
            bool(outputs[COMPLETE][row]),
            **{name: float(outputs[name][row]) for name in known},
            **{name: None for name in NUMBERS if name not in known},
            temperature=temperature,
        )
        for row in range(len(jobs))
    ]


def _prompts(recognizer, jobs):
    """Returns the prompts `[B, P]` and the first inputs of the decoder `[B]`; see `Prompted`."""
    choices, config = recognizer.codec.choices, recognizer.model.config
    numbers = {
        name: np.array([job.numbers[name] for job in jobs], np.int32) for name in choices.names
    }
    if numbers:
        own = choices.prompts(**numbers).numpy()
    else:
        own = np.tile(np.array(choices.prompt, np.int32), [len(jobs), 1])
    start = config.tokens.bos_id
    if not any(job.context for job in jobs):
        return own, np.full(len(jobs), start, np.int32)
    most = config.decoder.max_length // 2 - 1  # tokens of a context, as in Whisper
    prompts = np.full([len(jobs), most + 1 + own.shape[1]], NO_TOKEN, np.int32)
    first = np.full(len(jobs), start, np.int32)
    for row, job in enumerate(jobs):
        whole = own[row].tolist()
        if job.context:
            whole = [*job.context[-most:], start, *whole]
            first[row] = config.head.rules.previous_id
        prompts[row, : len(whole)] = whole
    return prompts, first


def _after(tokens, prompts, pad):
    """Returns the tokens `[B, L]` after the prompts `[B, P]`, with padding."""
    begins = (prompts != NO_TOKEN).sum(axis=1)
    after = np.full_like(tokens, pad)
    for to, row, begin in zip(after, tokens, begins, strict=True):
        to[: len(row) - begin] = row[begin:]
    return after


def _language(codec, tokens):
    """Returns the id of the language with which an output begins, or `None`."""
    return int(tokens[0]) if codec.choices.languages else None
