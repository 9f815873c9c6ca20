"""Log-probabilities that a recogniser gives to transcripts of other programs: teacher forcing."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Prompted
from keras_transformer.decoding.prompts import NO_TOKEN
from keras_transformer.decoding.scoring import score
from keras_transformer.tasks.speech_recognition.features import frames_of


def log_probabilities(recognizer: Any, recording: Any, transcripts: list) -> np.ndarray:
    """Returns the mean log-probability of a token of given transcripts, in nats, float32 `[B]`.

    The tokens are those of the texts, without timestamps, and the end token.

    Args:
        recognizer: A `SpeechRecognizer` of one model.
        recording: The recording that all transcripts belong to; see `transcribe`. If it is longer
            than the model's limit, its beginning.
        transcripts: List of B `Transcript`s.
    """
    codec, config, count = recognizer.codec, recognizer.model.config, len(transcripts)
    samples = codec.read(recording, "the recording")
    inputs, _ = codec.tensors([samples] * count, _choices(codec.choices, transcripts))
    frames = frames_of(config.input, inputs.pop("samples"), inputs.pop("lengths"))
    prompts = np.tile(np.array(config.head.rules.prompt_ids, np.int32), [count, 1])  # [B, P]
    if inputs:
        prompts = codec.choices.prompts(**inputs).numpy()
        frames = Prompted(frames, prompts)
    prompts = [row[row != NO_TOKEN].tolist() for row in prompts]
    texts = codec.tokenizer.encode([one.transcript for one in transcripts]).to_list()
    longest = recognizer.max_length
    rows = [(prompt + text)[:longest] for prompt, text in zip(prompts, texts, strict=True)]
    targets = tf.ragged.constant(rows, tf.int32).to_tensor(config.tokens.pad_id)
    _, sums = score(recognizer.model, frames, targets)
    lengths = [len(row) - len(prompt) for row, prompt in zip(rows, prompts, strict=True)]
    return sums.numpy() / np.maximum(lengths, 1)


def _choices(choices, transcripts):
    """Returns the numbers of the choices with which texts without timestamps were transcribed."""
    chosen: dict[str, Any] = {"timestamps": False} if "timestamps" in choices.names else {}
    if choices.languages:
        chosen["language"] = [one.language or None for one in transcripts]
    return choices.rows(len(transcripts), **chosen)
