"""Settings of searches in exports: penalties of repetitions, and what a form fixes or refuses."""

import dataclasses
import functools

import numpy as np
import pytest
from tiny_translators import SOURCES, translator

import keras_transformer
from keras_transformer import Beam, Greedy
from keras_transformer.decoding import Sample
from keras_transformer.export.ctranslate2.generation import options_of_search
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.litert.beams import check_beam
from keras_transformer.export.litert.packed import STRINGS
from keras_transformer.export.onnx.string_graph import check_ratio
from keras_transformer.export.scorer import Scorer

FILES = {"saved-model": "model", "onnx": "model.onnx", "litert": "model.tflite"}
PENALTY = 2.5
SMALL = {"litert": {"lengths": [9]}}


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def exported(folder, name, search):
    format = FORMATS[name]
    options = format.options(search=search, **SMALL.get(name, {}))
    report = format.export(translator(), folder / FILES[name], SOURCES, options)
    assert report["token_agreement"] == 1
    return keras_transformer.open(folder / FILES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_exports_hold_the_penalty_of_their_search(name, tmp_path):
    """The check of the export also scores outputs with the penalty, in greedy search and a beam."""
    beam = Beam(2, repetition_penalty=PENALTY)
    loaded = exported(tmp_path, name, beam)
    loaded = loaded if name == "saved-model" else loaded.with_search(beam)
    pairs = loaded.answer_batch(SOURCES), translator().answer(SOURCES, beam)
    assert [one.text for one in pairs[0]] == [one.text for one in pairs[1]]
    scores = ([one.score for one in side] for side in pairs)
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)
    assert [one.text for one in pairs[1]] != translator()(SOURCES, Beam(2))
    with pytest.raises(ValueError, match=r"`repetition_penalty` of the beam .* is 2\.5, which is"):
        loaded.with_search(dataclasses.replace(beam, repetition_penalty=1.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onnx", "litert"])
def test_greedy_search_of_an_export_has_its_penalty(name, tmp_path):
    greedy = Greedy(repetition_penalty=PENALTY, max_length_ratio=0.8)
    loaded = exported(tmp_path, name, greedy)
    expected = translator()(SOURCES, greedy)
    assert loaded.with_search(Greedy())(SOURCES) == expected != translator()(SOURCES)
    assert loaded.with_search(greedy)(SOURCES) == expected
    with pytest.raises(
        ValueError, match=r"`repetition_penalty` of the greedy search of .* is 2\.5"
    ):
        loaded.with_search(Greedy(repetition_penalty=1.5))


@pytest.mark.slow
def test_a_file_that_draws_takes_every_setting_of_each_row(tmp_path):
    loaded = exported(tmp_path, "onnx", Sample())
    for search in (
        Sample(1.4, seed=3, min_p=0.2),
        Sample(1.4, seed=3, repetition_penalty=PENALTY),
        Sample(1.4, 4, 0.9, seed=3, min_p=0.1, repetition_penalty=1.2),
    ):
        assert loaded(SOURCES, search) == translator()(SOURCES, search)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_exports_limit_outputs_by_the_lengths_of_their_sources(name, tmp_path):
    """The program computes the limits of a beam, so that they can change, but in a SavedModel."""
    beam = Beam(2, extra_length=None, max_length_ratio=0.3)
    loaded = exported(tmp_path, name, beam)
    answers = translator().answer(SOURCES, beam)
    assert not all(one.complete for one in answers)
    expected = [one.text for one in answers]
    if name == "saved-model":
        assert loaded(SOURCES) == expected  # the default signature
        with pytest.raises(ValueError, match=r"`max_length_ratio` of the beam of .* is 0\.3"):
            loaded.with_search(Beam(2))
        return
    assert [one.text for one in loaded.with_search(beam).answer_batch(SOURCES)] == expected
    other = Beam(2, extra_length=1, max_length_ratio=0.2)
    right = [one.text for one in translator().answer(SOURCES, other)]
    assert [one.text for one in loaded.with_search(other).answer_batch(SOURCES)] == right


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (Greedy(repetition_penalty=2.0), "`repetition_penalty` must be 1 with CTranslate2"),
        (Beam(2, repetition_penalty=2.0), "`repetition_penalty` must be 1 with CTranslate2"),
        (Greedy(max_length_ratio=2.0), "`max_length_ratio` must be None with CTranslate2"),
    ],
)
def test_ctranslate2_refuses_settings_that_it_does_not_have(search, message):
    with pytest.raises(ValueError, match=message):
        options_of_search(search)


@pytest.mark.parametrize("kind", [check_ratio, functools.partial(check_beam, kind=STRINGS)])
def test_files_of_strings_have_no_ratio_in_a_beam(kind):
    with pytest.raises(ValueError, match="`search` must have no `max_length_ratio` if the"):
        kind(Beam(2, max_length_ratio=2.0))


@pytest.mark.parametrize(
    "search", [Greedy(repetition_penalty=PENALTY), slow(Beam(2, repetition_penalty=PENALTY))]
)
def test_the_scorer_reads_outputs_as_the_search_does(search):
    """No other token would have been chosen, and scores are those of the search."""
    pipeline = translator()
    source, _, _ = pipeline.encode(SOURCES)
    found = search(pipeline.model, source)
    rows = [[token for token in row if token] for row in source.numpy().tolist()]
    targets = [tuple(t for t in row if t) for row in found.tokens[:, 0].numpy().tolist()]
    readings = Scorer(pipeline).read(rows, targets, [9] * 3, search)
    penalties = [float(search.penalty(reading.tokens)) for reading in readings]
    scores = [reading.score / p for reading, p in zip(readings, penalties, strict=True)]
    np.testing.assert_allclose(scores, found.scores[:, 0], rtol=0, atol=1e-4)
    if isinstance(search, Greedy):
        assert max(reading.gap for reading in readings) < 1e-5
        plain = Scorer(pipeline).read(rows, targets, [9] * 3)
        assert max(reading.gap for reading in plain) > 0.1
