"""One small model for all tests of the exports, trained just long enough to mean what it says."""

import io
import itertools
import os
import random
import subprocess
import sys

import keras
import numpy as np
import pytest
import sentencepiece

from keras_transformer import Tokenizer, Transformer, TransformerConfig, Translator
from keras_transformer.export import export_litert, export_saved_model

WHEN = {"in": "in", "for": "seit", "after": "nach", "before": "vor"}
UNITS = {
    "days": "Tagen",
    "weeks": "Wochen",
    "months": "Monaten",
    "years": "Jahren",
    "hours": "Stunden",
    "minutes": "Minuten",
}


def phrases():
    """Pairs such as ("in 17 weeks", "in 17 Wochen"), some of them twice as long."""
    spans = [(f"{n} {u}", f"{n} {v}") for n in range(2, 60) for u, v in UNITS.items()]
    pairs = [
        (f"{w} {source}", f"{v} {target}")
        for (w, v), (source, target) in itertools.product(WHEN.items(), spans)
    ]
    pairs += [
        (f"{w} {one[0]} and {two[0]}", f"{v} {one[1]} und {two[1]}")
        for (w, v), one, two in itertools.product(WHEN.items(), spans[::7], spans[::11])
    ]
    random.Random(0).shuffle(pairs)
    return pairs


def learn(model_type, vocab_size):
    """A vocabulary of the phrases."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(side for pair in phrases() for side in pair),
        model_writer=model,
        vocab_size=vocab_size,
        model_type=model_type,
        split_digits=True,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    return Tokenizer(model.getvalue())


def train(tokenizer):
    """A small model that has learned most of the phrases."""
    keras.utils.set_random_seed(0)
    model = Transformer(
        TransformerConfig(
            vocab_size=tokenizer.vocab_size,
            num_layers=2,
            d_model=32,
            d_ff=64,
            num_heads=2,
            max_length=20,
            norm="pre",
            dropout=0.0,
        )
    )
    pairs = phrases()[:4480]
    source, labels = (
        tokenizer.encode(list(side)).to_tensor().numpy() for side in zip(*pairs, strict=True)
    )
    target = np.concatenate([np.full((len(labels), 1), 2), labels[:, :-1]], axis=1)
    model.compile(
        keras.optimizers.Adam(0.005),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0),
    )
    model.fit({"source": source, "target": target}, labels, batch_size=32, verbose=0)
    return Translator(model, tokenizer)


@pytest.fixture(scope="session")
def tokenizer():
    return learn("bpe", 90)


@pytest.fixture(scope="session")
def translator(tokenizer):
    return train(tokenizer)


@pytest.fixture(scope="session")
def unigram_translator():
    return train(learn("unigram", 61))


@pytest.fixture(scope="session")
def sentences():
    """Phrases it has not seen, of many lengths, and some of which it can make little sense."""
    held_out = [source for source, _ in phrases()[4480:4510]]
    return [
        *held_out,
        "weeks",
        "in 3",
        "after 12 hours and 30 minutes and 45 days",
        "Grüße aus Köln, 5 €",
        "a sentence that has far more tokens than the model can read, so that it is cut",
        "",
        "  in  17   weeks ",
    ]


@pytest.fixture(scope="session")
def calibration():
    """Phrases of the training, to calibrate static int8 with."""
    return [source for source, _ in phrases()[:200]]


@pytest.fixture(scope="session")
def serving(translator, sentences, tmp_path_factory):
    """The folder and the report of a SavedModel with every signature."""
    directory = tmp_path_factory.mktemp("saved_model") / "new" / "serving"
    return directory, export_saved_model(translator, directory, sentences, alignment=(-1, None))


@pytest.fixture(scope="session")
def export(translator, sentences, calibration, tmp_path_factory):
    """A function from a quantisation to the path and the report of a .tflite file."""
    folder, made = tmp_path_factory.mktemp("litert"), {}

    def of(quantize):
        if quantize not in made:
            path = folder / f"{quantize}.tflite"
            options = {"calibration": calibration} if quantize == "int8_static" else {}
            made[quantize] = path, export_litert(translator, path, sentences, quantize, **options)
        return made[quantize]

    return of


@pytest.fixture
def disturb(translator):
    """A function that changes one weight of the model a little; it is mended after the test."""
    embedding = translator.model.target_embedding
    before = embedding.table.numpy()

    def change(by=0.05):
        table = before.copy()
        table[7, 3] += by
        embedding.table.assign(table)

    yield change
    embedding.table.assign(before)


@pytest.fixture(scope="session")
def python():
    """A function that runs code in a fresh Python, outside the repository; returns its output."""

    def run(code, *arguments):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
        result = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            capture_output=True,
            text=True,
            env=environment,
            cwd="/",
            timeout=120,
        )
        assert result.returncode == 0, result.stderr[-2000:]
        return result.stdout

    return run


@pytest.fixture
def full_disk():
    """A context in which no file can grow beyond `size` bytes, as on a disk that is full."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Full:
        def __init__(self, size):
            self.size = size

        def __enter__(self):
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, limits[1]))

        def __exit__(self, *error):
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    yield Full
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
