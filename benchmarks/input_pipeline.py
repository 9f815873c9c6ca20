"""Speed of the input pipeline, and fraction of padding in its batches."""

import os
import pathlib
import tempfile
import time

from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.settings.data_sections import CldrData, TextData
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining
from keras_transformer.training.vocabulary import learn_vocabulary, strings

DATA = pathlib.Path(__file__).parents[2] / "shared" / "data"


def choose(corpus):
    """Returns the corpus for `"auto"`: Multi30K if its files exist, otherwise CLDR's phrases."""
    if corpus != "auto":
        return corpus
    return "multi30k" if _multi30k().is_dir() else "cldr"


def settings(corpus, folder):
    """Returns the `[data]` section of a corpus and the size of its vocabulary.

    Args:
        corpus: `"multi30k"`, `"cldr"`, or `"smoke"`, a few phrases of CLDR.
        folder: Folder for generated data.

    Raises:
        FileNotFoundError: If the files of Multi30K are missing.
    """
    if corpus == "multi30k":
        path = _multi30k()
        if not path.is_dir():
            raise FileNotFoundError(
                f"{path} is missing: KERAS_TRANSFORMER_DATA must name the folder of real data; "
                "`--input cldr` needs no files."
            )
        files = {
            f"{split}_{side}": str(path / f"{name}.{language}")
            for split, name in (("train", "train"), ("validation", "val"))
            for side, language in (("source", "en"), ("target", "de"))
        }
        return TextData(source="text", **files), 10_000
    if corpus == "cldr":
        return CldrData(data_dir=folder), 4000
    return CldrData(data_dir=folder, examples=300), 300


def _multi30k():
    return pathlib.Path(os.environ.get("KERAS_TRANSFORMER_DATA", DATA)) / "multi30k"


class InputPipeline:
    """`Corpus.batches` of a corpus, shuffled.

    Args:
        data: The `[data]` section.
        vocabulary_size: Number of tokens in the vocabulary.
        batch_tokens: See `Corpus.batches`.

    Attributes:
        metadata: `pairs`, their number; `padding`, its fraction of all positions;
            `tokenize_seconds`, spent once, at the start of training; `target_tokens`, without
            padding.
    """

    def __init__(self, data, vocabulary_size, batch_tokens):
        pairs = open_source(data).rows("train")
        vocabulary = VocabularySettings(size=vocabulary_size)
        tokenizer = SentencePieceTokenizer(learn_vocabulary(strings(pairs, (0, 1)), vocabulary))
        training = SourceToTargetTraining(tokenizer)
        begin = time.perf_counter()
        self._corpus = Corpus.from_rows(pairs, training, data.max_length)
        self._batch_tokens = batch_tokens
        self._epoch = 0
        self.metadata = {
            "pairs": self._corpus.size,
            "target_tokens": self._corpus.tokens[1],
            "padding": self._corpus.padding(batch_tokens),
            "tokenize_seconds": time.perf_counter() - begin,
        }

    def run(self, steps):
        """Reads all batches of `steps` epochs; returns their number of target positions, `places`.

        Each epoch is read completely from a fresh iterator, so that no batch is prefetched before
        the measurement begins.
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
    corpus = choose(order["corpus"])
    with tempfile.TemporaryDirectory() as folder:  # the corpus is in memory afterwards
        pipeline = InputPipeline(*settings(corpus, folder), order["batch_tokens"])
    pipeline.metadata["corpus"] = corpus
    return pipeline
