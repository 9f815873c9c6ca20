"""Attention of a recogniser's decoder to a recording, for each word of the transcript."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.attention import SOUND, attentions
from keras_transformer.tasks.speech_recognition.audio.windows import words_of
from keras_transformer.tasks.speech_recognition.features import frames_of


@dataclasses.dataclass(frozen=True)
class SpeechAttention:
    """Cross-attention of the decoder to the positions of a recording, for each word.

    Args:
        words: Words of the transcript, W strings.
        weights: Array `[layers, H, W, S]`, float32, for the S positions of the encoder in the
            recording: the mean over the tokens of a word. Rows sum to 1, or to less if the model
            also attends to the silence that `pad_to_max_seconds` appends.
        frames: Log-mel frames of the recording, `[T, F]`, float32.
        frame_seconds: Time between two frames.
        position_seconds: Time between two positions, a multiple of it.
        frequencies: Centre of each mel filter in Hz, `[F]`.
        kind: `"sound"`.
        truncated: Whether the recording was longer than the model's limit and was truncated.
    """

    words: list[str]
    weights: np.ndarray
    frames: np.ndarray
    frame_seconds: float
    position_seconds: float
    frequencies: np.ndarray
    kind: str = SOUND
    truncated: bool = False

    def mean(self) -> np.ndarray:
        """Returns the mean over all layers and heads, `[W, S]`."""
        return self.weights.mean(axis=(0, 1))


def speech_attention(recognizer: Any, recording: Any) -> SpeechAttention:
    """Returns the `SpeechAttention` of a model for a recording.

    Args:
        recognizer: A `SpeechRecognizer` of one model.
        recording: A path, the bytes of a file, or an array of samples; see `transcribe`.

    Raises:
        ValueError: If the recording cannot be read, or its transcript has no words.
    """
    codec, config = recognizer.codec, recognizer.model.config
    inputs, rest = codec.tensors([codec.read(recording, "the recording")])
    frames = frames_of(config.input, inputs["samples"], inputs["lengths"])
    tokens = recognizer.predict(**inputs)["tokens"][0].numpy()
    tokens = tokens[tokens != config.tokens.pad_id]
    begin = len(codec.choices.prompt)
    words, members = words_of_tokens(codec.tokenizer, tokens[begin:])
    if not words:
        raise ValueError(
            "the transcript must have words, whose attention is shown. Received: a recording with "
            "an empty transcript."
        )
    target = tf.constant(
        [[config.tokens.bos_id, *tokens[:-1]]]
    )  # a position predicts the next token
    weights = recognizer.model.attention_weights({"source": frames, "target": target})
    whole = attentions(weights, {"cross": ([], [])}, False)["cross"].weights  # [layers, H, L, S]
    features = recognizer.features
    count = int(features.frame_counts(inputs["lengths"])[0])
    positions = -(-count // config.input.conv_stride)
    rows = [
        whole[:, :, [begin + place for place in places], :positions].mean(axis=2)
        for places in members
    ]
    seconds = features.hop / features.sample_rate
    return SpeechAttention(
        words,
        np.stack(rows, axis=2),
        frames[0, :count].numpy(),
        seconds,
        config.input.conv_stride * seconds,
        features.frequencies(),
        truncated=bool(rest["truncated"][0]),
    )


def words_of_tokens(tokenizer: Any, tokens: Any) -> tuple[list[str], list[list[int]]]:
    """Returns the words of tokens, and for each of them the places of its tokens.

    In scripts without spaces, every character is a word; a token of several characters belongs to
    the word of the first one, and every token of a character to its word. Tokens without text, such
    as the end and timestamps, belong to none.
    A word that begins within a token of another word is left out.

    Args:
        tokenizer: The `Tokenizer`.
        tokens: Token ids, `[L]`.
    """
    tokens = np.asarray(tokens, np.int32)
    length = len(tokens)
    before = np.arange(length) < np.arange(length + 1)[:, None]  # [L + 1, L], prefixes
    prefixes = np.where(before, tokens[None], tokenizer.pad_id)
    texts = [text.decode("utf-8", "replace") for text in tokenizer.decode(prefixes).numpy()]
    # A prefix may end within a character, which is longer there, as U+FFFD, than it will be.
    ends = np.minimum.accumulate([len(text) for text in texts][::-1])[::-1]
    text, words, begins = texts[-1], [], []
    for word in map(str.strip, words_of(texts[-1])):
        begins.append(text.index(word, begins[-1] + len(words[-1]) if words else 0))
        words.append(word)
    members = [[] for _ in words]
    bytes_of = tokenizer.decode(tokens[:, None]).numpy()  # [L], of each token alone
    for place, (begin, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        is_within = end == begin > 0 and bytes_of[place].strip()  # of a character that has begun
        rest = text[begin - bool(is_within) :].lstrip()  # a space belongs to the word after it
        if (end > begin or is_within) and rest:
            first = len(text) - len(rest)
            members[np.searchsorted(begins, first, side="right") - 1].append(place)
    kept = [number for number, places in enumerate(members) if places]
    return [words[number] for number in kept], [members[number] for number in kept]
