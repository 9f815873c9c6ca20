"""Graphs of a recognizer: searches over recordings and over frames, for all values of settings."""

import dataclasses
from typing import Any

import tensorflow as tf

from keras_transformer.decoding import BestPath, Prompted, SearchOptions
from keras_transformer.decoding.prompts import prompt_lengths
from keras_transformer.tasks.speech_recognition.silence import Silence
from keras_transformer.tensors import Tensor

SOUND = ("samples", "lengths")  # the inputs that every model has


def outputs_of(recognizer: Any, inputs: Any, search: Any) -> dict[str, Tensor]:
    """Returns the outputs of a search, in a graph; see `SpeechCodec.outputs`.

    Args:
        recognizer: A `SpeechRecognizer`.
        inputs: Frames `[B, S, F]`, or `Prompted` frames.
        search: The search.
    """
    if isinstance(inputs, Prompted):
        search = _limited(search, inputs.prompt, recognizer.model.config)
    options = SearchOptions(
        cache_length=recognizer.max_length,
        cache_stages=recognizer.model.kernels.cache_stages,
        confidence=recognizer.codec.silence is not None and not isinstance(search, BestPath),
    )
    return recognizer.codec.outputs(search(recognizer.searched, inputs, options))


def of_samples(recognizer: Any, search: Any, *choices: str) -> Any:
    """Returns the graph from `samples` and `lengths` to answers; see `SpeechCodec.answers`.

    Args:
        recognizer: A `SpeechRecognizer`.
        search: The `kind` of a search, whose values are inputs, as are the thresholds.
        *choices: Names of choices whose numbers are inputs.
    """
    codec = recognizer.codec

    def transcribe(samples, lengths, **numbers):
        chosen = _with_numbers(search, numbers)
        own = {name: numbers[name] for name in choices}
        outputs = recognizer.predict(samples, lengths, chosen, **own)
        silence = {name: numbers[name] for name in recognizer.thresholds()}
        silence = Silence(**silence) if silence else None
        answers = codec.answers(outputs, codec.rest(lengths), silence)
        terms = _terms(codec, chosen, outputs, lengths)
        return {**answers, "terms": terms, "tokens": outputs["tokens"]}

    specs = {name: codec.input_specs()[name] for name in (*SOUND, *choices)}
    specs |= {spec.name: spec for spec in search.inputs}
    specs |= {name: tf.TensorSpec([], tf.float32, name=name) for name in recognizer.thresholds()}
    return tf.function(transcribe, autograph=False).get_concrete_function(**specs)


def of_frames(recognizer: Any, search: Any, width: int) -> Any:
    """Returns the graph from `frames`, `prompt` and `first` to outputs, with their `terms`.

    Args:
        recognizer: A `SpeechRecognizer`, whose recordings are padded to the maximum length.
        search: See `of_samples`.
        width: Number of tokens P of the prompts, with what pads them.
    """
    speech = recognizer.codec.speech

    def transcribe(frames, prompt, first, **numbers):
        chosen = _with_numbers(search, numbers)
        outputs = outputs_of(recognizer, Prompted(frames, prompt, first), chosen)
        lengths = tf.zeros_like(first)
        return {**outputs, "terms": _terms(recognizer.codec, chosen, outputs, lengths)}

    shape = [None, speech.max_frames, speech.num_mel_filters]
    specs = {
        "frames": tf.TensorSpec(shape, tf.float32, name="frames"),
        "prompt": tf.TensorSpec([None, width], tf.int32, name="prompt"),
        "first": tf.TensorSpec([None], tf.int32, name="first"),
        **{spec.name: spec for spec in search.inputs},
    }
    return tf.function(transcribe, autograph=False).get_concrete_function(**specs)


def search_inputs(search: Any, numbers: Any) -> dict[str, Tensor]:
    """Returns the values of a search for sentences with these numbers, as inputs of a graph."""
    pairs = zip(search.inputs, search.values(numbers), strict=True)
    return {spec.name: tf.convert_to_tensor(value, spec.dtype) for spec, value in pairs}


def _with_numbers(search, numbers):
    return search.with_values([numbers[spec.name] for spec in search.inputs])


def _terms(codec, search, outputs, lengths):
    """Returns how many log-probabilities each score adds up; see `Search.terms`."""
    tokens = tf.cast(outputs["length"], tf.float32)
    return search.terms(tokens, codec.speech.positions(lengths))


def _limited(search, prompts, config):
    """Returns a search whose outputs, with their prompts `[B, P]`, fit into the model's positions.

    Args:
        search: The search. If its `max_length` is what the model's own prompt leaves of the
            positions, these limit outputs, also with other prompts. As in `generate`, the start
            counts as one of them.
        prompts: See `Prompted`.
        config: The configuration of the model.
    """
    limit, most = search.max_length, config.decoder.max_length - 1
    if limit is None:
        return search
    left = most - prompt_lengths(prompts)  # [B]
    limit = tf.convert_to_tensor(limit)
    limit = tf.where(tf.equal(limit, most - len(config.head.rules.prompt_ids)), left, limit)
    return dataclasses.replace(search, max_length=limit)
