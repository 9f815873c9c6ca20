"""Scores of pairs of texts: rows, order, metrics, files, and training."""

import itertools
import math

import numpy as np
import pipelines
import pytest
import reference
import tensorflow as tf
from support import randomise, small_fields, weights_of

from keras_transformer.fields import Floats
from keras_transformer.models import PairScorer, PairScorerConfig
from keras_transformer.ordering import descending
from keras_transformer.pipelines import Reranker
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.scoring.codec import PairScore
from keras_transformer.tasks.scoring.metrics import ndcg, pair_metrics, reciprocal_rank
from keras_transformer.tasks.scoring.pairs import longest_first

PAIRS = [
    ("a cat", "the big dog runs"),
    ("the big dog runs", "a cat"),
    ("", ""),
    ("a cat", ""),
    ("", "a cat"),
    ("a dog and a cat " * 9, "the cat " * 9),
]


def test_logits_equal_the_reference():
    fields = small_fields(PairScorerConfig, num_layers=2)
    fields |= {"pooling": "first", "pooler": True}
    model = randomise(PairScorer(PairScorerConfig(**fields)))
    tokens = np.array([[2, 5, 6, 3, 7, 8, 3], [2, 7, 3, 3, 0, 0, 0]])
    second = np.array([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1]])
    weights = weights_of(model)
    x = reference.embedding(reference.scope(weights, "embedding"), tokens)
    x = x + reference.scope(weights, "segments")["table"][second]
    heads = model.config.encoder.block.attention.num_heads
    everyone = reference.everyone(7, tokens != 0)
    x = reference.encoder(reference.scope(weights, "encoder"), x, everyone, 2, heads)[:, 0]
    pooled = np.tanh(reference.dense(reference.scope(weights, "pooler"), x))
    expected = reference.dense(reference.scope(weights, "output"), pooled)
    np.testing.assert_allclose(np.asarray(model(tokens)), expected, rtol=0, atol=1e-4)


def one_by_one(first, second, space):
    """Removes one token at a time from the longer text, in turn from equal ones."""
    if first + second <= space:
        return first, second
    shorter, longer, swapped = min(first, second), max(first, second), first > second
    while shorter + longer > space and longer > shorter:
        longer -= 1
    if shorter + longer > space:
        shorter, longer = space // 2, space - space // 2
    return (longer, shorter) if swapped else (shorter, longer)


def test_the_longer_text_is_truncated_first():
    pairs = [*itertools.product(range(12), repeat=2)]
    for space in (3, 8, 9):
        kept = longest_first(*map(tf.constant, np.array(pairs).T), space)
        expected = [one_by_one(*pair, space) for pair in pairs]
        assert np.stack(kept, axis=1).tolist() == list(map(list, expected))


def test_a_pair_has_the_same_score_alone_and_in_a_batch_and_its_order_matters():
    reranker = pipelines.reranker()
    together = reranker.answer(PAIRS)
    for pair, result in zip(PAIRS, together, strict=True):
        assert reranker.answer(pair).logit == pytest.approx(result.logit, abs=1e-5)
        assert result.value == pytest.approx(1 / (1 + math.exp(-result.logit)), abs=1e-6)
        assert result.probability == pytest.approx(result.value, abs=1e-6)
        assert result.score == pytest.approx(math.log(result.value), abs=1e-5)
    tokenizer = pipelines.tokenizer()
    for pair, result in zip(PAIRS, together, strict=True):
        tokens = sum(map(len, tokenizer.tokenize(tf.constant(pair)).to_list()))
        assert result.truncated == (tokens > 11 - 3)
    assert len({result.text for result in together}) == len(PAIRS)  # also of both orders
    alone = reranker(PAIRS[0])  # all digits of a float32, whose last one depends on the batch
    assert alone == reranker.answer(PAIRS[0]).text
    assert float(alone) == pytest.approx(together[0].value, abs=1e-6)
    np.testing.assert_array_equal(reranker.score(PAIRS), [result.value for result in together])


def test_the_first_text_and_the_second_may_not_share_a_row_of_another_form():
    codec = pipelines.reranker().codec
    good = [2, 7, 3, 8, 9, 3, 0, 0]
    bad = [[7, 2, 3, 8, 9, 3, 0, 0], [2, 7, 8, 9, 3, 0, 0, 0], [2, 7, 3, 8, 3, 9, 3, 0],
           [2, 7, 3, 8, 2, 3, 0, 0], [2, 7, 3, 8, 0, 3, 0, 0]]  # fmt: skip
    valid, inputs = codec.screen(tf.constant([good, *bad]))
    assert valid.numpy().tolist() == [True] + [False] * len(bad)
    assert inputs["source"][0].numpy().tolist() == good


def test_passages_are_sorted_by_score_equal_ones_in_order_and_nan_last():
    assert descending([1.0, 2.0, float("nan"), 2.0, 3.0]) == [4, 1, 3, 0, 2]
    reranker = pipelines.reranker()
    passages = ["a cat runs", "the big dog", "a cat runs", "dog"]
    ranked = reranker.rank("a cat", passages)
    assert sorted(ranked, key=lambda one: (-one.score, one.index)) == ranked
    assert [one.passage for one in ranked] == [passages[one.index] for one in ranked]
    assert reranker.rank("a cat", passages, top_k=2) == ranked[:2]
    assert reranker.rank("a cat", []) == []


def test_arguments_that_are_not_pairs_are_refused():
    reranker = pipelines.reranker()
    with pytest.raises(TypeError, match="must be a list of pairs of strings"):
        reranker.score(["a cat"])
    with pytest.raises(TypeError, match="`query` must be a string"):
        reranker.rank(1, ["a"])
    with pytest.raises(ValueError, match="`top_k` must be"):
        reranker.rank("a", ["a"], top_k=0)
    with pytest.raises(ValueError, match="`max_length` must be at least 5"):
        Reranker(reranker.model, pipelines.tokenizer(), 4)


def test_metrics_follow_their_definitions():
    labels, scores = [0, 2, 1, 0], [0.9, 0.5, 0.7, 0.1]
    assert reciprocal_rank(labels, scores) == 1 / 2
    assert reciprocal_rank(labels, scores, depth=1) == 0
    best = 2 + 1 / math.log2(3)
    assert ndcg(labels, scores) == pytest.approx((1 / math.log2(3) + 2 / 2) / best)
    queries = ["a", "b", "a", "b", "c", "d", "d"]
    labels, scores = [1, 0, 0, 1, 1, 0, 0], [0.2, 0.9, 0.6, 0.1, 0.7, 0.3, 0.4]
    metrics = pair_metrics(queries, scores, scores, labels)
    assert metrics["queries"] == 2 and metrics["mrr_at_10"] == 50
    assert metrics["accuracy"] == pytest.approx(100 * 3 / 7)
    assert "accuracy" not in pair_metrics(queries, scores, scores, [0.5] * 7)


def test_an_error_is_measured_between_probabilities():
    one, other = PairScore(9.0, 9.0, False), PairScore(8.0, 8.0, False)
    assert one.score_error(other) == pytest.approx(2.1e-4, abs=1e-5)
    assert PairScore(-900.0, -900.0, False).score == -900
    assert math.isnan(PairScore(math.nan, math.nan, False).score_error(one))


def test_files_have_pairs_and_numbers(tmp_path):
    task = TASKS["scoring"]
    pairs, labels = tmp_path / "pairs", tmp_path / "labels"
    pairs.write_text("a cat\tthe dog\na\tb\tc\n")
    labels.write_text("1\n0.5 \n")
    assert task.read_files(pairs, labels) == [[("a cat", "the dog"), ("a", "b\tc")], [1.0, 0.5]]
    results = task.evaluate(pipelines.reranker(), task.read_files(pairs, labels))
    assert results["pairs"] == 2 and abs(results["spearman"]) == pytest.approx(100)
    labels.write_text("1\ngood\n")
    with pytest.raises(ValueError, match="line 2: the label must be a number. Received: 'good'"):
        task.read_files(pairs, labels)
    pairs.write_text("a cat\nb\n")
    with pytest.raises(ValueError, match="must be a query, a tab and a passage"):
        task.read_files(pairs)
    with pytest.raises(ValueError, match="at least one pair"):
        task.evaluate(pipelines.reranker(), [[], []])


def test_labels_beyond_the_limits_of_a_probability_are_refused():
    numbers = Floats(0, 1)
    encoded = numbers.encode(tf.constant(["0", " 0.5\r", "1.5", "-1", "x", "", "1e-1"]))
    assert numbers.is_valid(encoded).numpy().tolist() == [True, True] + [False] * 4 + [True]
    assert numbers.explain() == "a number of at least 0 and at most 1"
    assert Floats().explain() == "a number"
    assert Floats().is_valid(tf.constant([9.0, np.nan])).numpy().tolist() == [True, False]
