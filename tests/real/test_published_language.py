"""Texts that SmolLM2-135M continues, in every form, against NumPy in float64."""

import functools
import json

import bpe_in_python
import gguf_file
import llama_folders
import numpy as np
import pytest
import safetensors.numpy
from bert_oracle import log_softmax
from forms import Forms
from packages import SMOLLM2

pytestmark = [pytest.mark.real, pytest.mark.long]

FORMS = ("run", "saved_model", "litert", "litert_int8", "onnx", "ctranslate2")
LENGTH = 32  # tokens of a prompt and its continuation, with the token that begins them
# Their continuations have no line breaks, which the command writes as spaces.
PROMPTS = [
    "Once upon a time, there was a",
    "A little girl is sitting in front of a",
    "The king looked at his daughter and said that",
    "The history of the Roman Empire begins with",
    "She opened the old wooden door and saw",
    "It was 7:45 on the morning of 12 March 1987 when",
    "“To be, or not to be” — the naïve café",
]
LIMITED = ("--greedy", "--max-length", str(LENGTH))
NEAR = 1e-3  # two log-probabilities whose order float32 may change
MEAN_LOSS = 0.1  # of log-probability per token in int8; measured: 0.025


class Llama:
    """A checkpoint in Hugging Face's format."""

    def __init__(self, folder):
        stored = safetensors.numpy.load_file(folder / "model.safetensors")
        self.weights = {name: values.astype(np.float64) for name, values in stored.items()}
        self.settings = json.loads((folder / "config.json").read_text())
        model = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
        merges = [tuple(pair.split(" ")) for pair in model["merges"]]
        self.ids, self.ranks = model["vocab"], {pair: n for n, pair in enumerate(merges)}

    def token_ids(self, text):
        words = bpe_in_python.words_of(text, "gpt2_digits")
        return [
            self.ids[token] for word in words for token in bpe_in_python.merge(word, self.ranks)
        ]

    def losses(self, prompt, text):
        """Returns how much less probable each later token of a text is than the best one, [T].

        The differences of log-probabilities after a prompt, with 0 for the most probable token.
        """
        prompt, ids = self.token_ids(prompt), self.token_ids(text)
        assert ids[: len(prompt)] == prompt and len(ids) > len(prompt) + 10
        _, logits = llama_folders.forward(self.weights, self.settings, np.array([ids[:-1]]))
        logits = log_softmax(logits[0, len(prompt) - 1 :])
        later = np.array(ids[len(prompt) :])
        return logits.max(-1) - logits[np.arange(len(later)), later]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smollm2")
    (path,) = SMOLLM2.folder().glob("*.gguf")
    gguf_file.write_hugging_face(path, folder)
    return folder


@pytest.fixture(scope="module")
def losses(checkpoint):
    return functools.cache(Llama(checkpoint).losses)


@pytest.fixture(scope="module")
def forms(checkpoint, tmp_path_factory):
    return Forms(checkpoint, tmp_path_factory.mktemp("forms"), PROMPTS, LIMITED, LIMITED)


@pytest.mark.parametrize("form", FORMS)
def test_every_token_is_the_most_probable_one(form, forms, losses, record_property):
    """In int8, and where two are equally probable, it may be one that is nearly so."""
    pairs = list(zip(PROMPTS, forms.answers(form, PROMPTS), strict=True))
    found = np.concatenate([losses(*pair) for pair in pairs])
    record_property("tokens", len(found))
    record_property("most probable", int((found == 0).sum()))
    record_property("mean loss", float(found.mean()))
    if form == "litert_int8":
        assert found.mean() < MEAN_LOSS
    else:
        assert found.max() < NEAR
