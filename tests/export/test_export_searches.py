"""Beams and n-best lists of exports, as `translate` runs them."""

import numpy as np
import pytest

from keras_transformer import Beam
from keras_transformer.export import (
    LiteRTOptions,
    LiteRTTranslator,
    SavedModelTranslator,
    export_litert,
)


def assert_same(outputs, expected):
    """Checks for the same texts in the same order, and for the same scores up to rounding."""
    assert [[(output.text, output.truncated) for output in row] for row in outputs] == [
        [(output.text, output.truncated) for output in row] for row in expected
    ]
    assert_same_scores(outputs, expected)


def assert_same_scores(outputs, expected):
    ours, theirs = (
        [output.score for row in side for output in row] for side in (outputs, expected)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_a_saved_model_searches_with_the_given_beam(
    serving, translator, sentences, length_penalty=1.5
):
    """By its signature `search`; it used to take no beam."""
    beam = Beam(3, length_penalty, extra_length=None)
    loaded = SavedModelTranslator(serving[0], beam)
    assert_same(loaded.n_best_batch(sentences, 2), translator.n_best_batch(sentences, 2, beam))
    best = [[result] for result in loaded.answer_batch(sentences)]
    assert_same(best, translator.n_best_batch(sentences, 1, beam))


@pytest.mark.slow
def test_without_a_beam_its_n_best_signature_gives_several(serving, translator, sentences):
    outputs = SavedModelTranslator(serving[0]).n_best_batch(sentences, 4)
    assert_same(outputs, translator.n_best_batch(sentences, 4, Beam()))
    with pytest.raises(ValueError, match=r"export returns, 4: .*Received: n=5\."):
        SavedModelTranslator(serving[0]).n_best_batch(sentences, 5)


@pytest.mark.slow
def test_a_beam_that_a_saved_model_does_not_have_is_reported(serving):
    with pytest.raises(ValueError, match=r"/1: `beam_size` must be from 1 to 4\.$"):
        SavedModelTranslator(serving[0], Beam(5)).answer_batch(["in 3 weeks"])
    with pytest.raises(TypeError, match=r"`search` must be a `Beam`\. Received: search=5\."):
        SavedModelTranslator(serving[0], 5)


@pytest.mark.long
@pytest.mark.slow
def test_a_tflite_file_returns_the_n_best(translator, sentences, tmp_path):
    path = tmp_path / "x.tflite"
    beam = Beam(3)
    export_litert(
        translator, path, sentences[:3], LiteRTOptions(lengths=[20], search=beam, n_best=2)
    )
    outputs = LiteRTTranslator(path, beam).n_best_batch(sentences, 2)
    expected = translator.n_best_batch(sentences, 2, beam)
    assert [row[0].text for row in outputs] == [row[0].text for row in expected]
    assert_same_scores(outputs, expected)  # of two equally good outputs either may be first
    with pytest.raises(ValueError, match=r"export returns, 2: .*Received: n=3\."):
        LiteRTTranslator(path, beam).n_best_batch(sentences, 3)
