"""A checkpoint of Whisper for English in float64 NumPy, with its tokenizer in Python.

It shares no code with the package.
"""

import functools
import json
import wave

import bpe_in_python
import marian_in_numpy
import numpy as np
import safetensors.numpy
from audio.test_log_mel import reference as log_mel
from whisper_folders import convolution

SECONDS, RATE = 30, 16_000  # of a window


def log_softmax(logits):
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)


class Whisper:
    """A checkpoint in Hugging Face's format.

    Args:
        folder: Its folder.
    """

    def __init__(self, folder):
        stored = safetensors.numpy.load_file(folder / "model.safetensors")
        self.weights = {name: values.astype(np.float64) for name, values in stored.items()}
        self.settings = json.loads((folder / "config.json").read_text())
        self.choices = json.loads((folder / "generation_config.json").read_text())
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        self.ids = tokenizer["model"]["vocab"]
        self.added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
        merges = [tuple(pair.split(" ")) for pair in tokenizer["model"]["merges"]]
        self.ranks = {pair: number for number, pair in enumerate(merges)}
        self.how = {**self.settings, "normalize_before": True, "add_final_layer_norm": True}

    @functools.cache  # noqa: B019 - lives as long as the tests of a module
    def states(self, path):
        """Returns the encoder's states of a WAV file, `[1, S, D]`."""
        with wave.open(str(path)) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
        x = log_mel(np.pad(samples, (0, SECONDS * RATE - len(samples))))
        for name, stride in (("conv1", 1), ("conv2", 2)):
            x = convolution(self.weights, f"model.encoder.{name}", x, stride)
        x = (x + self.weights["model.encoder.embed_positions.weight"])[None]
        everywhere = np.ones((1, 1, x.shape[1]), bool)
        return marian_in_numpy.stack(self.weights, self.how, "encoder", x, everywhere)

    def logits(self, path, tokens):
        """Returns the logits after each token of an output, `[T, V]`."""
        table, length = self.weights["model.decoder.embed_tokens.weight"], len(tokens)
        y = table[[tokens]] + self.weights["model.decoder.embed_positions.weight"][:length]
        past, memory = np.tril(np.ones((length, length), bool))[None], self.states(path)
        everywhere = np.ones((1, 1, memory.shape[1]), bool)
        y = marian_in_numpy.stack(self.weights, self.how, "decoder", y, past, memory, everywhere)
        return y[0] @ table.T

    def read(self, path, transcript):
        """Returns whether a transcript is that of greedy search, and the numbers of silence.

        Returns:
            `True` if each of its tokens and the end are the most probable ones; the probability of
            silence; and the mean log-probability of these tokens among those that are allowed.
        """
        text = bpe_in_python.tokens(f" {transcript.strip()}", self.ranks)
        tokens = [*(self.ids[token] for token in text), self.settings["eos_token_id"]]
        prompt = [self.settings["decoder_start_token_id"], self.choices["no_timestamps_token_id"]]
        logits = self.logits(path, [*prompt, *tokens[:-1]])
        no_speech = np.exp(log_softmax(logits[0])[self.added["<|nocaptions|>"]])
        logits = logits[1:]
        logits[:, self.choices["suppress_tokens"]] = -np.inf
        logits[0, self.choices["begin_suppress_tokens"]] = -np.inf
        chosen = log_softmax(logits)[np.arange(len(tokens)), tokens]
        return logits.argmax(-1).tolist() == tokens, float(no_speech), float(chosen.mean())
