"""The student that Marian trained, read without the package as far as possible."""

import types

import numpy as np
import pytest
import sentencepiece
import yaml

SETTINGS = "special:model.yml"


def rows(path):
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="session")
def student(data_dir):
    """Its weights, settings and vocabulary, and the engines' outputs for 200 sentences."""
    folder = data_dir / "marian_student"
    arrays = dict(np.load(folder / "model.npz"))
    settings = yaml.safe_load(bytes(arrays.pop(SETTINGS)).rstrip(b"\0"))
    return types.SimpleNamespace(
        folder=folder,
        weights=arrays,
        settings=settings,
        vocabulary=sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocab.spm")),
        greedy=rows(folder / "greedy.float32.tsv"),
        beam=rows(folder / "beam4_normalize0.6.float32.tsv"),
        int8=(folder / "greedy.int8shiftAlphaAll.txt").read_text("utf-8").splitlines(),
    )
