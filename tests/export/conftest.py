"""One small model for all tests of exports; `phrases.py` constructs its weights."""

import os
import pathlib
import subprocess
import sys

import pytest
from exporting import asked
from phrases import bpe_tokenizer, phrase_translator, phrases, unigram_tokenizer

from keras_transformer import Beam
from keras_transformer.export import (
    LiteRTOptions,
    SavedModelOptions,
    export_litert,
    export_saved_model,
)


@pytest.fixture(scope="session")
def tokenizer():
    return bpe_tokenizer()


@pytest.fixture(scope="session")
def translator(tokenizer):
    return phrase_translator(tokenizer)


@pytest.fixture(scope="session")
def deep(tokenizer):
    """The same model with two layers, for tests that choose a layer."""
    return phrase_translator(tokenizer, num_layers=2)


@pytest.fixture(scope="session")
def light(tokenizer):
    """The same model for short sentences, for tests of the steps around an export."""
    return phrase_translator(tokenizer, max_length=16)


@pytest.fixture(scope="session")
def unigram_translator():
    return phrase_translator(unigram_tokenizer())


@pytest.fixture(scope="session")
def sentences():
    """Phrases of many lengths that it was not built for; it handles some of them badly."""
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
    """Phrases for the calibration of static int8."""
    return [source for source, _ in phrases()[:200]]


@pytest.fixture(scope="session")
def serving(translator, sentences, tmp_path_factory):
    """The folder and the report of a SavedModel with every signature."""
    directory = tmp_path_factory.mktemp("saved_model") / "new" / "serving"
    return directory, export_saved_model(
        translator, directory, sentences, SavedModelOptions(alignment=(-1, None))
    )


@pytest.fixture(scope="session")
def compiled(translator, sentences, tmp_path_factory):
    """A beam and its version folder, compiled by XLA for 2 sentences of 16 or 20 tokens."""
    beam = Beam(3, 1.5, "average", extra_length=None)
    directory = tmp_path_factory.mktemp("jit") / "compiled"
    report = export_saved_model(
        translator,
        directory,
        sentences,
        SavedModelOptions(beam, jit=True, batch_sizes=(2,), alignment=(0, 1)),
    )
    assert report["agreement"] == 1.0
    return beam, pathlib.Path(report["path"])


@pytest.fixture(scope="session")
def export(translator, sentences, calibration, tmp_path_factory):
    """A function that takes a quantisation and returns the path and report of a .tflite file."""
    folder, made = tmp_path_factory.mktemp("litert"), {}

    def of(quantize):
        if quantize not in made:
            path = folder / f"{quantize}.tflite"
            options = {"calibration": calibration} if quantize == "int8_static" else {}
            made[quantize] = (
                path,
                export_litert(
                    translator, path, sentences, **asked(LiteRTOptions, quantize, **options)
                ),
            )
        return made[quantize]

    return of


@pytest.fixture
def disturb(translator):
    """A function that changes one weight of the model slightly; the test's end restores it."""
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
    """A function that runs code in a fresh Python outside the repository, returns its output."""

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
