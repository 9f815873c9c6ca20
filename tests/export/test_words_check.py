"""The check of an export also runs the search with words, and refuses a wrong one."""

import pytest
import tensorflow as tf
from marks import slow
from tiny_translators import SOURCES, translator

from keras_transformer import Beam, Greedy
from keras_transformer.export.errors import ExportError
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.words import BANNED, FIELDS, PREFIX, WordInputs

BEAM = Beam(5, length_penalty=1.0, min_length=4)
SEARCHED, CONSTRAINTS = WordInputs.searched, WordInputs.constraints


def seven_everywhere(self, find, words):
    """The search with words returns the token 7 at each position; the other one is right."""

    def wrong(constraints):
        found = find(constraints)
        tokens = tf.ones_like(found.tokens) * 7
        return found if constraints is None else found._replace(tokens=tokens)

    return SEARCHED(self, wrong, words)


def without(*names):
    def constraints(self, words):
        fields = {FIELDS[name]: None for name in names if name in words}
        return CONSTRAINTS(self, words)._replace(**fields)

    return constraints


def export(folder, name, search, **options):
    format = FORMATS[name]
    path = folder / {"onnx": "model.onnx", "litert": "model.tflite"}.get(name, name)
    if name == "litert":
        options["lengths"] = [9]
    options = format.options(search=search, takes_words=True, **options)
    format.export(translator(), path, SOURCES, options)
    return path


@pytest.mark.parametrize("name", ["onnx", *map(slow, ("litert", "saved-model"))])
@pytest.mark.parametrize("search", [Greedy(), slow(BEAM)], ids=str)
def test_a_wrong_search_with_words_is_refused(name, search, tmp_path, monkeypatch):
    monkeypatch.setattr(WordInputs, "searched", seven_everywhere)
    with pytest.raises(ExportError, match="with words, .* became .* with the model in memory"):
        export(tmp_path, name, search)
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FIELDS])
def test_a_search_that_ignores_words_of_one_kind_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(WordInputs, "constraints", without(name))
    with pytest.raises(ExportError, match="with words, .* became .* with the model in memory"):
        export(tmp_path, "onnx", BEAM)


@pytest.mark.slow
@pytest.mark.parametrize("name", [PREFIX, BANNED])
def test_a_quantised_search_that_ignores_words_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(WordInputs, "constraints", without(name))
    with pytest.raises(ExportError, match="with words, .*: the output (does not begin|contains)"):
        export(tmp_path, "litert", Greedy(), quantize="float16")
