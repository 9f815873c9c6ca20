"""How fast batches are made, and how much of them is padding."""

import os
import pathlib
import tempfile
import time

from keras_transformer.tokenizer import Tokenizer
from keras_transformer.training.data import TokenizedCorpus, parallel_data, sentences
from keras_transformer.training.schema import CldrData, TextData, VocabularySettings
from keras_transformer.training.vocabulary import learn_vocabulary

DATA = pathlib.Path(__file__).parents[2] / "shared" / "data"


def corpora(data):
    """Returns the `[data]` sections and vocabulary sizes that can be measured, by name.

    Args:
        data: Folder for what is generated.
    """
    multi30k = pathlib.Path(os.environ.get("KERAS_TRANSFORMER_DATA", DATA)) / "multi30k"
    files = {
        f"{split}_{side}": str(multi30k / f"{name}.{language}")
        for split, name in (("train", "train"), ("validation", "val"))
        for side, language in (("source", "en"), ("target", "de"))
    }
    return {
        "cldr": (CldrData(data_dir=data), 4000),
        "smoke": (CldrData(data_dir=data, examples=300), 300),
        "multi30k": (TextData(source="text", **files), 10_000),
    }


class InputPipeline:
    """`TokenizedCorpus.batches` of a corpus, shuffled.

    Args:
        settings: The `[data]` section.
        vocabulary_size: Number of pieces.
        batch_tokens: As in `TokenizedCorpus.batches`.

    Attributes:
        facts: `pairs`; `padding`, the share of all places that hold no token; `tokenize_seconds`,
            which a training spends once, at its start; `target_tokens`, without padding.
    """

    def __init__(self, settings, vocabulary_size, batch_tokens):
        data = parallel_data(settings)
        vocabulary = VocabularySettings(size=vocabulary_size)
        tokenizer = Tokenizer(learn_vocabulary(sentences(data.pairs("train")), vocabulary))
        begin = time.perf_counter()
        self._corpus = TokenizedCorpus.from_pairs(
            data.pairs("train"), tokenizer, settings.max_length
        )
        self._batch_tokens = batch_tokens
        self._epoch = 0
        self.facts = {
            "pairs": self._corpus.size,
            "target_tokens": self._corpus.target_tokens,
            "padding": self._corpus.padding(batch_tokens),
            "tokenize_seconds": time.perf_counter() - begin,
        }

    def run(self, steps):
        """Makes all batches of `steps` epochs; returns the `places` for target tokens in them.

        Whole epochs, each from a fresh iterator: what was fetched ahead while nobody measured does
        not count as made for nothing.
        """
        places = 0
        for _ in range(steps):
            batches = self._corpus.batches(
                self._batch_tokens, shuffle=True, seed=1, epoch=self._epoch
            )
            self._epoch += 1
            for _, labels in batches:
                places += labels.shape[0] * labels.shape[1]
        return {"places": places}


def make(order):
    """Generates or reads the corpus and learns its vocabulary."""
    with tempfile.TemporaryDirectory() as folder:  # the corpus is in memory afterwards
        return InputPipeline(*corpora(folder)[order["corpus"]], order["batch_tokens"])
