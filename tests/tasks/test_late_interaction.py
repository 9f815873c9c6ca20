"""Late interaction: rows, vectors of tokens, MaxSim, order, and recall."""

import itertools

import numpy as np
import pipelines
import pytest
import reference
import tensorflow as tf
from support import randomise, small_fields, weights_of

from keras_transformer.export.ctranslate2.expressible import check_expressible
from keras_transformer.export.errors import ExportError
from keras_transformer.models import MultiVectorEncoder, MultiVectorEncoderConfig
from keras_transformer.pipelines import LateInteractionRanker
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.late_interaction.codec import Interaction
from keras_transformer.tasks.late_interaction.max_sim import max_sim, similarities

QUERIES = ["a cat", "the big dog runs", "", "a dog and a cat and the big dog " * 2]
PASSAGES = ["the big dog", "a cat runs", "a dog and a cat", "the cat " * 20, ""]
Q, P, MASK = pipelines.MARKERS
SAME = {"rtol": 0, "atol": 1e-5}


def fields(expansion):
    marks = {"query_marker_id": Q, "passage_marker_id": P, "dimensions": 5}
    if expansion != "none":
        marks |= {"expansion": expansion, "expansion_id": MASK}
    return {**small_fields(MultiVectorEncoderConfig, num_layers=2), **marks, "segments": "first"}


@pytest.mark.parametrize("expansion", ["unattended", "attended"])
def test_vectors_equal_the_reference(expansion):
    model = randomise(MultiVectorEncoder(MultiVectorEncoderConfig(**fields(expansion))))
    tokens = np.array([[Q, 7, 8, 3, MASK, MASK], [P, 7, 9, 10, 3, 0], [P, 7, 3, 0, 0, 0]])
    weights = weights_of(model)
    x = reference.embedding(reference.scope(weights, "embedding"), tokens)
    x = x + reference.scope(weights, "segments")["table"][0]
    attended = tokens != 0
    if expansion == "unattended":
        attended[0, 4:] = False
    heads = model.config.encoder.block.attention.num_heads
    everyone = reference.everyone(6, attended)
    x = reference.encoder(reference.scope(weights, "encoder"), x, everyone, 2, heads)
    x = x @ reference.scope(weights, "token_projection")["kernel"]
    for row, column in np.ndindex(*tokens.shape):
        x[row, column] /= sum(value * value for value in x[row, column]) ** 0.5
    x[tokens == 0] = 0
    np.testing.assert_allclose(model(tokens), x, rtol=0, atol=1e-4)


def reference_score(query, passage):
    """MaxSim of lists of vectors, in float64 and loops."""
    return sum(
        max(sum(a * b for a, b in zip(ours, theirs, strict=True)) for theirs in passage)
        for ours in query.astype("float64").tolist()
    )


def expected_row(text, marker, longest):
    words = pipelines.tokenizer(33, pipelines.CONTROL).tokenize([text]).to_list()[0]
    return [marker, *words[: longest - 2], 3], len(words) > longest - 2


def test_rows_have_marks_and_queries_are_filled_up():
    codec = pipelines.ranker().codec
    inputs, rest = codec.encode(tf.constant(QUERIES), tf.constant(PASSAGES[:4]))
    rows = [[token for token in row if token] for row in inputs["source"].numpy().tolist()]
    cut = []
    for number, (query, passage) in enumerate(zip(QUERIES, PASSAGES, strict=False)):
        row, query_cut = expected_row(query, Q, 8)
        assert rows[number] == row + [MASK] * (8 - len(row))
        other, passage_cut = expected_row(passage, P, 10)
        assert rows[4 + number] == other
        counted = rest["passage_counted"][number].numpy()[: len(other)]
        np.testing.assert_array_equal(counted, [t not in pipelines.SKIPPED for t in other])
        cut.append(query_cut or passage_cut)
    assert rest["query_counted"].numpy().all()
    assert rest["truncated"].numpy().tolist() == cut
    assert cut == [False, True, False, True]
    from_ids = codec.rows.of_ids(
        codec.rows.query, codec.tokenizer.encode(tf.constant(QUERIES)).to_tensor(0)
    )
    np.testing.assert_array_equal(from_ids, inputs["source"][:4, :8])


def test_scores_are_those_of_the_reference_alone_and_in_a_batch():
    ranker = pipelines.ranker()
    pairs = [*itertools.product(QUERIES, PASSAGES)]
    together = ranker.answer(pairs)
    queries, passages = ranker.embed_queries(QUERIES), ranker.embed_passages(PASSAGES)
    assert {len(vectors) for vectors in queries} == {8}
    expected = np.array([[reference_score(q, p) for p in passages] for q in queries])
    np.testing.assert_allclose([r.value for r in together], expected.ravel(), **SAME)
    np.testing.assert_allclose(ranker.similarities(QUERIES, PASSAGES), expected, **SAME)
    for pair, result in zip(pairs, together, strict=True):
        assert ranker.answer(pair).value == pytest.approx(result.value, abs=1e-5)
    alone = [ranker.embed_passages([text])[0] for text in PASSAGES]
    for one, vectors in zip(alone, passages, strict=True):
        np.testing.assert_allclose(one, vectors, **SAME)
    assert not np.allclose(expected[:, 0], expected[:, 1])


def test_tokens_that_are_not_compared_have_no_effect():
    rng = np.random.default_rng(0)
    queries, passages = -abs(rng.normal(size=(2, 3, 5))), abs(rng.normal(size=(2, 7, 5)))
    query_mask = np.array([[1, 1, 0], [1, 1, 1]], bool)
    passage_mask = np.array([[1, 0, 1, 0, 0, 0, 0], [1] * 7], bool)
    expected = [
        reference_score(q[m], p[n])
        for q, p, m, n in zip(queries, passages, query_mask, passage_mask, strict=True)
    ]
    assert max(expected) < 0  # a masked product of 0 would be the largest
    np.testing.assert_allclose(max_sim(queries, passages, query_mask, passage_mask), expected,
                               rtol=1e-6)  # fmt: skip
    none = np.zeros_like(passage_mask)
    assert max_sim(queries, passages, query_mask, none).numpy().tolist() == [0, 0]
    lists = [q[m] for q, m in zip(queries, query_mask, strict=True)]
    others = [p[m] for p, m in zip(passages, passage_mask, strict=True)]
    np.testing.assert_allclose(np.diag(similarities(lists, others)), expected, rtol=1e-6)


def test_a_row_of_another_form_is_not_valid():
    codec = pipelines.ranker().codec
    good = [[Q, 7, 3, MASK, MASK, 0], [P, 7, 8, 9, 3, 0], [P, MASK, 3, 0, 0, 0]]
    bad = [[Q, 7, 3, 0, MASK, 0], [Q, 7, 3, MASK, 7, 0], [Q, 7, 8, 0, 0, 0], [Q, 7, 3, 3, 0, 0],
           [Q, 99, 3, 0, 0, 0], [Q, 0, 7, 3, 0, 0]]  # fmt: skip
    valid, inputs = codec.screen(tf.constant(good + bad))
    assert valid.numpy().tolist() == [True] * len(good) + [False] * len(bad)
    np.testing.assert_array_equal(inputs["source"][: len(good)], good)
    padded = tf.constant([[Q, 7, 3, MASK, Q, Q], [P, 7, 8, 9, 3, P]])  # as a server pads
    np.testing.assert_array_equal(
        codec.checked(padded)["source"], [[Q, 7, 3, MASK, 0], [P, 7, 8, 9, 3]]
    )
    for row, message in (([7] * 6, "the id 3 after the text"), ([-1, 3, 0, 0, 0, 0], "from 0 to")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            codec.checked(tf.constant([row]))


def test_options_that_contradict_each_other_are_refused():
    def refused(message, **options):
        with pytest.raises(ValueError, match=message):
            MultiVectorEncoderConfig(vocab_size=30, **{**pipelines.SIZES, **options})

    refused("`expansion_id` must be a token id with `expansion`", expansion="attended")
    refused("`expansion_id` must be .* None without it", expansion_id=6)
    refused("`expansion_length` has no effect", expansion_length=6)
    refused("`projection_bias` has no effect", projection_bias=True, dimensions=None)
    refused("`query_length` must be from 4 to `max_length`. .*max_length=11", query_length=12)
    refused("`query_marker_id` must be the id of a token", query_marker_id=30)
    refused("`skipped_ids` must be ids of tokens, without", skipped_ids=(7, 3))
    both = {"expansion": "attended", "expansion_id": 6}
    refused("must not exceed `query_length`", query_length=5, expansion_length=6, **both)
    ranker = pipelines.ranker()
    with pytest.raises(ValueError, match="`max_length` must be at least 3, for a token"):
        LateInteractionRanker(ranker.model, ranker.tokenizers, 2)


def test_the_task_ranks_the_passages_of_all_queries(tmp_path):
    task, ranker = TASKS["late_interaction"], pipelines.ranker()
    (tmp_path / "pairs.tsv").write_text(
        "a cat\ta cat runs\nthe dog\tthe big dog\ndog\ta cat runs\n"
    )
    columns = task.read_files(tmp_path / "pairs.tsv")
    found = task.evaluate(ranker, columns)
    scores = ranker.similarities(columns[0], ["a cat runs", "the big dog"])
    ranks = [1 + (row[1 - own] >= row[own]) for row, own in zip(scores, (0, 1, 0), strict=True)]
    assert found["recall_at_1"] == pytest.approx(100 * np.mean(np.array(ranks) == 1))
    assert found["mrr_at_10"] == pytest.approx(100 * np.mean(1 / np.array(ranks)))
    assert (found["pairs"], found["candidates"], found["recall_at_5"]) == (3, 2, 100)
    assert task.measure(ranker, *columns) == {"recall_at_1": found["recall_at_1"]}
    with pytest.raises(ValueError, match="no pairs of texts to evaluate"):
        task.evaluate(ranker, [[], []])
    with pytest.raises(ValueError, match="`--reference` has no effect"):
        task.read_files(tmp_path / "pairs.tsv", tmp_path / "pairs.tsv")


def test_queries_whose_expansion_is_not_attended_to_have_no_place_in_ctranslate2():
    config = pipelines.ranker().model.config
    with pytest.raises(ExportError, match="tokens that no other token attends to"):
        check_expressible(config)
    check_expressible(type(config)(**{**config.to_flat(), "expansion": "attended"}))


def test_an_error_is_measured_between_similarities_of_tokens():
    one, other = Interaction(8.0, 8, False), Interaction(7.6, 8, False)
    assert one.score_error(other) == pytest.approx(0.05)
    assert (one.text, one.mean) == ("8.0", 1)
