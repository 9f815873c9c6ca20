"""Exports report which outputs were cut at their maximum length, as the run does."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from exporting import asked

from keras_transformer import Beam, Greedy, Transformer, Translator
from keras_transformer.cli.main import cli
from keras_transformer.decoding import SearchOptions
from keras_transformer.export import (
    LiteRTOptions,
    export_ctranslate2,
    export_litert,
    export_saved_model,
)
from keras_transformer.export.ctranslate2.opened import open_ctranslate2
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.searches import with_integers
from keras_transformer.export.litert.strings_runtime import LiteRTStringTranslator
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.installation import install_hint
from keras_transformer.tasks.incomplete import INCOMPLETE

TEXTS = ["in 3 days", "after 12 hours and 30 minutes", "", "weeks", "in 3 hours and 4", "Köln"]
LIMIT, GREEDY, BEAM = 8, Greedy(5), Beam(4, max_length=5)  # in tokens
each_end = pytest.mark.parametrize(
    "forced", [pytest.param(False, marks=pytest.mark.long), True], ids=["free", "forced"]
)


@pytest.fixture(scope="module")
def pipelines(unigram_translator):
    """A function that takes whether an end is forced at the limit, and returns a translator."""
    whole = unigram_translator

    def of(forced):
        forced_eos_id = whole.source_tokenizer.eos_id if forced else None
        model = Transformer(dataclasses.replace(whole.model.config, forced_eos_id=forced_eos_id))
        model.set_weights(whole.model.get_weights())
        return Translator(model, whole.tokenizers, LIMIT, search=GREEDY)

    return of


def flags(results):
    return [result.complete for result in results]


def both(flags):
    """Returns the flags after checking that some outputs ended and some were cut."""
    assert {*flags} == {True, False}
    return flags


def lists(rows):
    return [[(result.text, result.complete) for result in row] for row in rows]


def test_booleans_become_integers_for_litert():
    """LiteRT.js has no boolean tensors."""
    outputs = {"complete": tf.constant([True, False]), "score": tf.constant([0.5])}
    integers = with_integers(lambda: outputs)()
    assert integers["complete"].dtype == tf.int32 and integers["score"].dtype == tf.float32
    np.testing.assert_array_equal(integers["complete"], [1, 0])


@pytest.mark.long
@pytest.mark.slow
@each_end
def test_signatures_of_a_saved_model(forced, pipelines, tmp_path):
    pipeline = pipelines(forced).with_search(BEAM)
    path = export_saved_model(pipeline, tmp_path / "model", TEXTS)["path"]
    found = SavedModelTranslator(path).answer_batch(TEXTS)
    assert flags(found) == both(flags(pipeline.answer_batch(TEXTS)))
    source, *_ = pipeline.encode(tf.constant([text for text in TEXTS if text]))
    signatures = tf.saved_model.load(path).signatures
    for name, kind, count in (("tokens", GREEDY, 1), ("beam_tokens", BEAM, 4)):
        options = SearchOptions(n_best=count, cache_length=LIMIT)
        expected = kind(pipeline.model, source, options).complete.numpy()
        found = signatures[name](source=source)["complete"]
        assert found.dtype == tf.bool
        np.testing.assert_array_equal(found, np.reshape(expected, found.shape))
        both(expected.ravel().tolist())


@pytest.mark.long
@pytest.mark.slow
@each_end
def test_litert_files_of_ids_and_of_strings(forced, pipelines, tmp_path):
    pipeline, path, beam = pipelines(forced), tmp_path / "x.tflite", Beam(3, extra_length=0)
    options = {"lengths": [LIMIT], "batch_sizes": [1, 2], "tokenizer": True}
    export_litert(pipeline, path, TEXTS, **asked(LiteRTOptions, search=beam, **options))
    for search in (GREEDY, beam, Beam(3, extra_length=1)):
        expected = flags(pipeline.answer_batch(TEXTS, search))
        if search == GREEDY or forced:
            assert False in expected
        for kind in (LiteRTTranslator, LiteRTStringTranslator):
            loaded = kind(path, search)
            for signature in (None, *loaded.signatures):
                assert flags(loaded.answer_batch(TEXTS, signature)) == expected, signature
    lines = "".join(f"{text}\n" for text in TEXTS)
    printed = CliRunner().invoke(cli, ["translate", str(path)], input=lines).stderr.splitlines()
    cut = enumerate(both(flags(pipeline.answer_batch(TEXTS))), start=1)
    expected = [f"Warning: line {number}: {INCOMPLETE}" for number, flag in cut if not flag]
    assert [line for line in printed if INCOMPLETE in line] == expected


@pytest.mark.long
@pytest.mark.slow
@each_end
def test_all_hypotheses_of_a_litert_file(forced, pipelines, tmp_path):
    pipeline, path = pipelines(forced), tmp_path / "x.tflite"
    options = {"lengths": [LIMIT], "beam_only": True, "n_best": 4}
    export_litert(pipeline, path, TEXTS, **asked(LiteRTOptions, search=BEAM, **options))
    expected = pipeline.n_best(TEXTS, 4, BEAM)
    assert lists(LiteRTTranslator(path, BEAM).n_best_batch(TEXTS, 4)) == lists(expected)
    both([flag for row in expected for flag in flags(row)])


@pytest.mark.long
@pytest.mark.slow
@each_end
def test_folders_for_ctranslate2(forced, pipelines, tmp_path):
    pytest.importorskip("ctranslate2", reason=install_hint("ctranslate2"))
    pipeline, path = pipelines(forced), tmp_path / "x"
    export_ctranslate2(pipeline, path, TEXTS)
    average = {"normalization": "average", "extra_length": None}
    for search in (GREEDY, Beam(4, **average, max_length=5), Beam(4, **average)):
        expected = pipeline.answer_batch(TEXTS, search)
        found = open_ctranslate2(path, search).answer_batch(TEXTS)
        assert flags(found) == flags(expected)
        assert [one.text for one in found] == [one.text for one in expected]
        if search.max_length is not None:
            both(flags(found))
