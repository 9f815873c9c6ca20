"""Fixtures of distillations: two untrained teachers with their texts, and a fake search."""

import pytest
from distillations import CONFIG, ORIGIN, Reader, sentences, write_run
from pipelines import SIZES, tokenizer, translator
from support import randomise

from keras_transformer import Transformer, TransformerConfig, Translator
from keras_transformer.pipelines import Run
from keras_transformer.training.distillation import distill as module
from keras_transformer.training.distillation import generation, translations


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Sources, references and two untrained teachers; no test writes to this folder."""
    folder = tmp_path_factory.mktemp("distillation")
    for split, count, seed in (("train", 11, 1), ("validation", 3, 2)):
        for side, other in (("a", 0), ("b", 10)):
            texts = sentences(count, seed + other)
            (folder / f"{split}.{side}").write_text("\n".join(texts) + "\n")
    (folder / "config.toml").write_text(CONFIG)
    config = TransformerConfig(vocab_size=30, **SIZES)
    other = Translator(randomise(Transformer(config), seed=3), tokenizer())
    for name, pipeline in (("one", translator()), ("two", other)):
        write_run(Run(folder / name), pipeline)
    Run(folder / "one").write_origin(ORIGIN)
    return folder


@pytest.fixture
def reader(monkeypatch):
    """A fake without models and training: the teachers' outputs are the reversed sources."""
    kind = type("Counted", (Reader,), {"opened": []})
    monkeypatch.setattr(generation, "Searcher", kind)
    monkeypatch.setattr(module, "train", lambda *arguments, **options: {})
    monkeypatch.setattr(translations, "PART", 4)
    return kind
