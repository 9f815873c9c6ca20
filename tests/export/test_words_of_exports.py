"""Banned phrases and a prefix built into exports; settings that a format cannot hold."""

import pytest
from marks import slow
from tiny_translators import SOURCES, translator

import keras_transformer
from keras_transformer import Beam
from keras_transformer.export.errors import ExportError
from keras_transformer.export.formats import FORMATS

FILES = {"saved-model": "model", "onnx": "model.onnx", "litert": "model.tflite"}
OTHERS = ("saved-model", "litert", "ctranslate2", "marian")
SMALL = {"litert": {"lengths": [9]}}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_an_export_answers_with_the_words_of_its_pipeline(name, tmp_path):
    """By a beam; the check of the export compares greedy search and all signatures as well."""
    search = Beam(2)
    plain = translator().with_search(search)
    worded = plain.with_settings(banned=["12", "weeks"], prefix="in 4")
    format, path = FORMATS[name], tmp_path / FILES[name]
    options = format.options(search=search, **SMALL.get(name, {}))
    report = format.export(worded, path, SOURCES, options)
    assert report["token_agreement"] == 1
    loaded = keras_transformer.open(path)
    loaded = loaded if name == "saved-model" else loaded.with_search(search)
    outputs = loaded(SOURCES)
    assert outputs == worded(SOURCES) != plain(SOURCES)
    assert all(output.startswith("in 4") for output in outputs)


@pytest.mark.parametrize(
    "name", ["onnx", *map(slow, ("saved-model", "litert", "ctranslate2", "marian"))]
)
@pytest.mark.parametrize(
    "setting",
    [
        {"glossary": {"3": "4"}},
        {"banned": ["4"]},
        {"prefix": "in"},
        {"prefix": ["in", "in"]},
        {"token_scores": True},
    ],
)
def test_a_setting_that_a_format_cannot_hold_is_refused(name, setting):
    worded = translator().with_settings(**setting)
    held = name in FILES and setting in ({"banned": ["4"]}, {"prefix": "in"})
    if held:
        FORMATS[name].check(worded)
        return
    message = f"An export to {name} cannot hold the setting `{next(iter(setting))}` of the pipeline"
    with pytest.raises(ExportError, match=message):
        FORMATS[name].check(worded)
