"""Checkpoints of BERT and MPNet in float64 NumPy, with BERT's own tokenizer in Python.

It shares no code with the package.
"""

import json
import pathlib

import bert_in_numpy
import bert_in_python
import encoders_in_numpy
import numpy as np
import safetensors.numpy


class Bert:
    """A checkpoint in Hugging Face's format."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.settings = json.loads((folder / "config.json").read_text())
        stored = safetensors.numpy.load_file(folder / "model.safetensors")
        self.weights = {name: values.astype(np.float64) for name, values in stored.items()}
        vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
        self.ids, self.tokens = vocabulary, {number: token for token, number in vocabulary.items()}

    def token_ids(self, text):
        """Returns the ids of a text, in which `[MASK]` is a token."""
        found = []
        for number, part in enumerate(text.split("[MASK]")):
            found += [self.ids["[MASK]"]] * (number > 0)
            found += bert_in_python.ids(part, self.ids, lowercase=True)[1:-1]
        return [self.ids["[CLS]"], *found, self.ids["[SEP]"]]

    def states(self, ids):
        """Returns hidden states [S, D] and, of a classifier of tokens, its logits [S, C]."""
        ids = np.array([ids])
        states, logits = bert_in_numpy.forward(self.weights, self.settings, ids, np.zeros_like(ids))
        return states[0], None if logits is None else logits[0]


class MPNet(Bert):
    """A checkpoint of MPNet, whose tokenizer differs from BERT's in its special tokens."""

    def __init__(self, folder):
        super().__init__(folder)
        self.ids |= {"[CLS]": self.ids["<s>"], "[SEP]": self.ids["</s>"]}

    def states(self, ids):
        """Returns hidden states [S, D], and `None`."""
        states, logits = encoders_in_numpy.forward(self.weights, self.settings, np.array([ids]))
        return states[0], logits


def log_softmax(logits):
    largest = logits.max(-1, keepdims=True)
    return logits - largest - np.log(np.exp(logits - largest).sum(-1, keepdims=True))
