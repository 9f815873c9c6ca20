"""The pipeline of sentence embeddings and its metrics, against definitions with loops."""

import numpy as np
import pipelines
import pytest
from pipelines import embedder, tokenizer, write_run

from keras_transformer.pipelines import Embedder
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.tasks.correlation import spearman
from keras_transformer.tasks.partners import ranks_of_partners, recall_at
from keras_transformer.training.evaluate import evaluate_files

TEXTS = [*pipelines.LINES, ""]


def test_vectors_are_those_of_the_model_in_the_order_of_the_texts():
    pipeline = embedder()
    vectors = pipeline.embed(TEXTS, batch_size=2)
    assert vectors.shape == (len(TEXTS), 5) and vectors.dtype == "float32"
    for text, vector in zip(TEXTS, vectors, strict=True):
        tokens, _ = pipeline.codec.encode([text])
        np.testing.assert_allclose(pipeline.model(tokens["source"])[0], vector, atol=1e-6)
    assert pipeline.embed([]).shape == (0, 5)


def test_an_answer_is_a_line_of_numbers_without_loss_of_digits():
    pipeline = embedder()
    for line, vector in zip(pipeline(TEXTS), pipeline.embed(TEXTS), strict=True):
        np.testing.assert_array_equal(np.array(line.split(" "), "float32"), vector)


def test_fewer_dimensions_are_the_first_ones_with_unit_length():
    pipeline = embedder()
    vectors, short = pipeline.embed(TEXTS), pipeline.embed(TEXTS, dimensions=3)
    lengths = np.array([sum(float(x) ** 2 for x in row[:3]) ** 0.5 for row in vectors])
    np.testing.assert_allclose(short, vectors[:, :3] / lengths[:, None], atol=1e-6)
    for wrong in (0, 6):
        with pytest.raises(ValueError, match=f"between 1 and the model's 5. Received: .*={wrong}"):
            pipeline.embed(TEXTS, dimensions=wrong)
    with pytest.raises(TypeError, match="`dimensions` must be an integer, or None"):
        pipeline.embed(TEXTS, dimensions=2.0)
    shorter = pipeline.with_settings(dimensions=3)
    np.testing.assert_array_equal(shorter.embed(TEXTS), short)
    alone = shorter.embed(TEXTS[:1])  # kernels for AVX2 round batches of other sizes differently
    np.testing.assert_allclose(alone, short[:1], atol=1e-6)
    assert shorter([TEXTS[0]]) == [" ".join(map(str, alone[0]))]
    assert shorter.embed([]).shape == (0, 3) and shorter.embed(TEXTS, dimensions=2).shape[1] == 2
    assert pipeline.embed(TEXTS[:1]).shape == (1, 5), "the pipeline itself stays as it is"
    with pytest.raises(ValueError, match="between 1 and the model's 3"):
        shorter.embed(TEXTS, dimensions=4)
    with pytest.raises(ValueError, match="`no_answer` has no effect on a model for embedding"):
        pipeline.with_settings(no_answer=True)


def test_two_models_are_no_ensemble():
    model = embedder().model
    with pytest.raises(ValueError, match="vectors of different models cannot be compared"):
        Embedder([model, model], tokenizer())


def products(vectors, partners):
    return lambda texts, numbers: vectors[texts] @ partners[numbers].T


def test_ranks_follow_their_definition():
    rng = np.random.default_rng(0)
    vectors, names = rng.normal(size=(9, 4)), list("abcadbefa")  # a and b are repeated
    partners = np.array([np.random.default_rng(ord(x)).normal(size=4) for x in names])
    expected, texts = [], list("xaeyzbwaf")  # a and b are texts of partners, a and f their own
    for vector, text, name in zip(vectors, texts, names, strict=True):
        scores = {
            x: vector @ partner
            for x, partner in zip(names, partners, strict=True)
            if x == name or x != text
        }
        expected.append(sum(score >= scores[name] for score in scores.values()))
    ranks = ranks_of_partners(products(vectors, partners), texts, names)
    np.testing.assert_array_equal(ranks, expected)
    assert recall_at(ranks, 2) == 100 * sum(rank <= 2 for rank in expected) / 9
    same = ranks_of_partners(lambda *_: np.ones((3, 3)), list("xyz"), list("abc"))
    np.testing.assert_array_equal(same, [3, 3, 3])  # equal vectors find nothing


def test_spearman_follows_its_definition():
    def rank(values):
        return [
            np.mean([sum(y < x for y in values) + 1, sum(y <= x for y in values)]) for x in values
        ]

    ours, theirs = [0.3, 0.1, 0.3, 0.9, 0.2], [5.0, 1.0, 2.0, 5.0, 0.0]
    expected = 100 * np.corrcoef(rank(ours), rank(theirs))[0, 1]
    assert spearman(ours, theirs) == pytest.approx(expected)
    assert spearman([1, 2, 3], [5, 7, 9]) == pytest.approx(100)
    assert spearman([1, 2, 3], [9, 7, 5]) == pytest.approx(-100)
    assert spearman([1, 1, 1], [9, 7, 5]) == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(embedder(), tmp_path_factory.mktemp("embedder") / "run", DATA)


DATA = '[data]\nsource = "text"\ntrain = "none.tsv"\nvalidation = "none.tsv"\n'
PAIRS = [(TEXTS[0], TEXTS[0]), (TEXTS[1], TEXTS[2]), (TEXTS[2], TEXTS[1])]


@pytest.mark.slow
def test_a_run_is_evaluated_with_pairs_or_with_scores(run, tmp_path):
    assert isinstance(open_run(run), Embedder)
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    results = evaluate_files(run, tmp_path / "pairs.tsv")
    ours, theirs = (embedder().embed(list(side)) for side in zip(*PAIRS, strict=True))
    names = [b for _, b in PAIRS]
    ranks = [
        1 + sum(row[j] > row[i] for j in range(3) if j != i and names[j] != PAIRS[i][0])
        for i, row in enumerate(ours @ theirs.T)
    ]
    assert results["recall_at_1"] == pytest.approx(100 * np.mean(np.array(ranks) == 1))
    assert (results["candidates"], results["pairs"], results["recall_at_5"]) == (3, 3, 100)
    lines = [f"{a}\t{b}\t{score}\n" for (a, b), score in zip(PAIRS, (5, 0.5, 1), strict=True)]
    (tmp_path / "scores.tsv").write_text("".join(lines))
    results = evaluate_files(run, tmp_path / "scores.tsv")
    cosines = (ours * theirs).sum(axis=1)
    assert results["spearman"] == pytest.approx(spearman(cosines, [5, 0.5, 1]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n", "line 1: must have two texts, or two texts and a score, .* Received: 1 columns."),
        ("a\tb\nc\td\t1\n", "line 2: must have 2 columns, as line 1. Received: 3 columns."),
        ("a\tb\t1\nc\td\thigh\n", "line 2: the score must be a number. Received: 'high'."),
        ("a\tb\tnan\n", "line 1: the score must be a number. Received: 'nan'."),
        ("a\tb\t1\nc\td\t1\n", "scores of the pairs must differ: .* Received: 2 times 1.0."),
        ("", "There are no pairs of texts to evaluate."),
    ],
)
def test_wrong_files_are_refused_in_one_line(run, tmp_path, text, message):
    (tmp_path / "pairs.tsv").write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        evaluate_files(run, tmp_path / "pairs.tsv")
    assert "\n" not in str(error.value)


def test_a_second_file_is_refused(run, tmp_path):
    with pytest.raises(ValueError, match="embedding, whose data have pairs .*: .* one file"):
        evaluate_files(run, tmp_path / "a", tmp_path / "b")


def test_a_validation_measures_recall():
    columns = [list(side) for side in zip(*PAIRS, strict=True)]
    results = TASKS["embedding"].measure(embedder(), *columns)
    assert results == {
        "recall_at_1": TASKS["embedding"].evaluate(embedder(), columns)["recall_at_1"]
    }
