"""Sparse vectors of texts: pooling, results and their comparison, against definitions in loops."""

import json
import math

import numpy as np
import pipelines
import pytest
from pipelines import SIZES, sparse_embedder, tokenizer
from support import randomise

from keras_transformer.models import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    SparseEmbedderConfig,
    SparseTextEmbedder,
)
from keras_transformer.models.parts import copy_parts
from keras_transformer.pipelines import SparseEmbedder, SparseVector
from keras_transformer.postings import Postings
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.correlation import spearman
from keras_transformer.text.prompts import TextPrompts

TEXTS = [*pipelines.LINES, ""]
IDS = np.array([[7, 8, 9, 11, 3], [12, 7, 3, 0, 0], [3, 0, 0, 0, 0]], "int32")


def pooled(logits, real, pooling, times):
    """The weights of one text, one token and position at a time, in float64."""
    weights = []
    for token in range(logits.shape[1]):
        values = []
        for position in range(len(logits)):
            if real[position]:
                value = max(0.0, float(logits[position, token]))
                for _ in range(times):
                    value = math.log(1 + value)
                values.append(value)
        weights.append(max(values, default=0.0) if pooling == "max" else math.fsum(values))
    return weights


@pytest.mark.parametrize(
    ("pooling", "saturation", "times"), [("max", "log", 1), ("sum", "double_log", 2)]
)
def test_weights_are_pooled_logits_of_a_masked_language_model(pooling, saturation, times):
    """Whose weights the head takes over, as a training with `start_from` does."""
    known = randomise(MaskedLanguageModel(MaskedLanguageModelConfig(vocab_size=30, **SIZES)))
    options = {"pooling": pooling, "saturation": saturation}
    model = SparseTextEmbedder(SparseEmbedderConfig(vocab_size=30, **SIZES, **options))
    assert set(copy_parts(model, known).copied) == {"input", "encoder", "head"}
    logits, weights = known(IDS).numpy(), model(IDS).numpy()
    assert weights.dtype == "float32" and weights.min() >= 0 and (weights == 0).any()
    for row, ids, ours in zip(logits, IDS, weights, strict=True):
        np.testing.assert_allclose(ours, pooled(row, ids != 0, pooling, times), atol=2e-6)


def test_a_vector_has_the_largest_weights_in_order():
    pipeline = sparse_embedder()
    whole = pipeline.with_settings(max_active=30)
    vectors = pipeline.embed(TEXTS, batch_size=2)
    names = tokenizer().pieces(range(30))
    for text, vector, more in zip(TEXTS, vectors, whole.embed(TEXTS), strict=True):
        inputs, _ = pipeline.codec.encode([text])
        dense = pipeline.model(inputs["source"])[0].numpy()
        order = sorted(range(30), key=lambda token: (-dense[token], token))
        expected = [token for token in order if dense[token] > 0]
        assert vector.ids.tolist() == expected[:9] and more.ids.tolist() == expected
        np.testing.assert_allclose(vector.weights, dense[expected[:9]], atol=1e-6)
        assert vector.tokens == tuple(names[token] for token in expected[:9])
        assert vector.least == vector.weights[-1] and more.least == 0
        np.testing.assert_allclose(more.dense(30), dense, atol=1e-6)
    assert pipeline.embed([]) == []


def test_an_answer_is_an_object_in_json_without_loss_of_digits():
    pipeline = sparse_embedder()
    for line, vector in zip(pipeline(TEXTS), pipeline.embed(TEXTS), strict=True):
        content = json.loads(line)
        assert tuple(content) == vector.tokens
        np.testing.assert_array_equal(np.array([*content.values()], "float32"), vector.weights)


def test_a_setting_keeps_fewer_tokens():
    pipeline = sparse_embedder()
    short = pipeline.with_settings(max_active=2)
    for one, two in zip(pipeline.embed(TEXTS), short.embed(TEXTS), strict=True):
        assert one.ids[:2].tolist() == two.ids.tolist()
    assert len(pipeline.embed(TEXTS)[0].ids) == 9, "the pipeline itself stays as it is"
    with pytest.raises(ValueError, match="`max_active` must be at least 1. Received: .*=0"):
        pipeline.with_settings(max_active=0)
    prompted = short.with_prompts(TextPrompts({"query": "a dog "}))
    expected = short.embed(["a dog runs"])[0]
    found = prompted.embed(["runs"], prompt="query")[0]
    assert found.ids.tolist() == expected.ids.tolist() and len(found.ids) == 2


def test_two_models_are_no_ensemble():
    model = sparse_embedder().model
    with pytest.raises(ValueError, match="vectors of different models cannot be compared"):
        SparseEmbedder([model, model], tokenizer())


def vector(weights, least=0.0):
    ids = sorted(weights, key=lambda token: -weights[token])
    names = tuple(map(str, ids))
    values = np.array([weights[token] for token in ids], "float32")
    return SparseVector(np.array(ids, "int32"), values, names, False, least)


@pytest.mark.parametrize(
    ("one", "two", "gap"),
    [
        (vector({1: 2.0, 5: 1.0}), vector({1: 2.5, 5: 0.75}), 0.5),
        (vector({1: 2.0, 5: 1.0}), vector({1: 2.0}), 1.0),  # no other weight is left out
        (vector({1: 2.0, 5: 1.0}, 1.0), vector({1: 2.0, 7: 1.25}, 1.25), 0.25),
        (vector({}), vector({}), 0.0),
        (vector({}), vector({3: 0.5}), 0.5),
    ],
)
def test_the_gap_is_that_of_the_weights_that_are_known(one, two, gap):
    assert one.gap(two) == two.gap(one) == pytest.approx(gap)
    assert one.agrees(two, gap + 1e-6) and (gap == 0 or not one.agrees(two, gap - 1e-6))


def test_similarities_are_dot_products():
    rng = np.random.default_rng(0)
    rows = [np.where(rng.random(30) < 0.3, rng.random(30), 0).astype("float32") for _ in range(7)]
    vectors = [vector({int(t): row[t] for t in np.flatnonzero(row)}) for row in rows]
    expected = np.array([[sum(a.astype(float) * b) for b in rows] for a in rows])
    found = sparse_embedder().similarity(vectors, vectors[:3])
    np.testing.assert_allclose(found, expected[:, :3], rtol=1e-6)
    assert vectors[0].similarity(vectors[1]) == pytest.approx(expected[0, 1])
    cosine = expected[0, 1] / math.sqrt(expected[0, 0] * expected[1, 1])
    assert vectors[0].score_of(vectors[1]) == pytest.approx(1 - cosine)
    assert vector({}).score_error(vector({})) == 0.0
    assert sparse_embedder().similarity([], vectors).shape == (0, 7)


def test_postings_are_sorted_by_token_and_text():
    vectors = [vector({4: 1.0, 2: 3.0}), vector({}), vector({4: 2.0, 0: 1.5})]
    postings = Postings.of_vectors(vectors, 6)
    assert postings.offsets.tolist() == [0, 1, 1, 2, 2, 4, 4]
    assert postings.rows.tolist() == [2, 0, 0, 2]
    assert postings.weights.tolist() == [1.5, 3.0, 1.0, 2.0]
    assert postings.scores([4, 2], [2.0, 1.0]).tolist() == [5.0, 0.0, 4.0]
    assert postings.scores([], []).tolist() == [0.0, 0.0, 0.0]


def test_an_evaluation_measures_recall_and_sizes():
    first, second = TEXTS[:3], [TEXTS[0], TEXTS[2], TEXTS[1]]
    pipeline, task = sparse_embedder(), TASKS["sparse_embedding"]
    found = task.evaluate(pipeline, [first, second])
    scores = pipeline.similarity(pipeline.embed(first), pipeline.embed(second))
    ranks = [
        sum(scores[i, j] >= scores[i, i] for j in range(3) if j == i or second[j] != first[i])
        for i in range(3)
    ]
    assert found["recall_at_1"] == pytest.approx(100 * np.mean(np.array(ranks) == 1))
    assert (found["candidates"], found["query_active"], found["text_active"]) == (3, 9, 9)
    names = ("recall_at_1", "query_active", "text_active")
    assert task.measure(pipeline, first, second) == {name: found[name] for name in names}
    second = [TEXTS[1], TEXTS[0], TEXTS[2]]  # pairs with three different dot products
    scores = pipeline.similarity(pipeline.embed(first), pipeline.embed(second))
    expected = spearman(np.diag(scores), [1.0, 2.0, 3.0])
    found = task.evaluate(pipeline, [first, second, [1.0, 2.0, 3.0]])["spearman"]
    assert found == pytest.approx(expected)


def test_metrics_are_declared():
    assert {*TASKS["sparse_embedding"].metrics} == {
        *("loss", "recall_at_1", "query_active", "text_active")
    }
