"""Exports of a memory network give the answers of the run, from strings and from ids."""

import numpy as np
import pipelines
import pytest
import tensorflow as tf

from keras_transformer.export import LiteRTOptions, export_litert, export_saved_model
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass

EXAMPLES = [
    (["a cat runs", "the big dog", "a dog and a cat"], "the dog"),
    (["the cat"], "a cat runs"),
    (["a cat", "the dog", "the big cat", "a dog runs"], "the"),
    ("", "a dog"),
]


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["memory", "transformer"])
def test_files_give_the_answers_of_the_run(encoder, tmp_path):
    answerer = pipelines.story_answerer(encoder)
    expected = answerer.answer(EXAMPLES)
    version = export_saved_model(answerer, tmp_path / "m", EXAMPLES)
    options = LiteRTOptions("none", batch_sizes=(1, 3), lengths=[24, 40])
    file = export_litert(answerer, tmp_path / "m.tflite", EXAMPLES, options)
    for runtime in (SavedModelSinglePass(version["path"]), LiteRTSinglePass(file["path"])):
        for result, wanted in zip(runtime.answer_batch(EXAMPLES_OF_PAIRS), expected, strict=True):
            assert (result.label, result.truncated) == (wanted.label, wanted.truncated)
            np.testing.assert_allclose(result.probabilities, wanted.probabilities, atol=1e-5)
    stories, questions = zip(*EXAMPLES_OF_PAIRS[:2], strict=True)
    inputs, _ = answerer.codec.encode(tf.constant(stories), tf.constant(questions))
    with SessionModel(version["path"]) as model:
        answer = model.run("serving_default", story=list(stories), question=list(questions))
        rows = model.run("tokens", source=inputs["source"])
    assert [label.decode() for label in answer["label"]] == [one.label for one in expected[:2]]
    np.testing.assert_allclose(rows["probabilities"], answer["probabilities"], atol=1e-5)


EXAMPLES_OF_PAIRS = pipelines.story_answerer().codec.check(EXAMPLES)


@pytest.mark.slow
def test_rows_of_wrong_ids_have_no_answer(tmp_path):
    answerer = pipelines.story_answerer()
    options = LiteRTOptions("none", batch_sizes=(3,), lengths=[40])
    file = export_litert(answerer, tmp_path / "m.tflite", EXAMPLES, options)
    loaded = LiteRTSinglePass(file["path"])
    inputs, _ = answerer.codec.encode(tf.constant(["a cat"]), tf.constant(["the"]))
    right = inputs["source"].numpy()[0]
    good = [*right, *[0] * (40 - len(right))]
    for wrong in ([9999, 2, 7, 3], [0] * 4, [7, 2, 8], [7, 3, 8, 3]):
        rows = np.array([good, [*wrong, *[0] * (40 - len(wrong))], good], np.int32)
        answer = loaded.run_signature("answer_3x40", source=rows)
        assert not answer["probabilities"][1].any()
        np.testing.assert_array_equal(answer["probabilities"][0], answer["probabilities"][2])
        assert answer["probabilities"][0].sum() == pytest.approx(1, abs=1e-5)
