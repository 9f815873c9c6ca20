"""A classifier in use: the model's own probabilities, and metrics computed by hand."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines import LABELS, classifier, generator, tokenizer

from keras_transformer import Translator
from keras_transformer.models import TextClassifier
from keras_transformer.pipelines import Classification, Run, TextClassificationPipeline
from keras_transformer.tasks import TASKS, open_run

TEXTS = ["a cat", "the big dog runs", "", "dog", "a big cat and a dog", "   ", "the the the"]
TASK = TASKS["classification"]


def probabilities(text):
    """Returns the model's probabilities of a single text, in float64."""
    ids = tokenizer().encode([text]).to_list()[0]
    words = ids[:-1][:10]
    logits = np.asarray(classifier().model(np.array([[*words, 3]]))[0], "float64")
    return np.exp(logits) / np.exp(logits).sum()


def test_a_result_has_the_probabilities_of_the_model(batch_size=64):
    results = classifier().classify(TEXTS, batch_size)
    assert len({result.label for result in results}) > 1, "or the tests here could not fail"
    for text, result in zip(TEXTS, results, strict=True):
        expected = probabilities(text)
        assert result.probabilities.dtype == np.float32
        np.testing.assert_allclose(result.probabilities, expected, rtol=0, atol=1e-5)
        assert result.label == result.text == LABELS[np.argmax(expected)]
        assert result.probability == result.probabilities.max()
        assert result.score == pytest.approx(np.log(expected.max()), abs=1e-4)
        assert not result.truncated
    assert classifier()(TEXTS, batch_size=batch_size) == [result.label for result in results]


def test_a_long_text_is_truncated_and_marked():
    long = "the big dog and the cat and a dog and the big cat runs"
    assert len(tokenizer().encode([long])[0]) > 11
    short, cut = classifier().classify(["a cat", long])
    assert (short.truncated, cut.truncated) == (False, True)
    np.testing.assert_allclose(cut.probabilities, probabilities(long), rtol=0, atol=1e-5)
    shorter = TextClassificationPipeline(classifier().model, tokenizer(), max_length=3)
    assert shorter.classify(["a big dog"])[0].truncated


def test_an_empty_list_gives_an_empty_list():
    assert classifier()([]) == [] == classifier().answer_batch([])


def test_results_without_a_probability_have_a_score():
    result = Classification("a", 0.0, False, np.zeros(2, "float32"))
    assert np.isfinite(result.score) and result.score < -80


@pytest.mark.parametrize("texts", [3, None, ["a", 3]])
def test_texts_are_a_list_of_strings(texts):
    with pytest.raises(TypeError, match="`texts` must be a list of strings. Received: "):
        classifier()(texts)


def test_another_model_tokenizer_or_length_is_refused():
    model = classifier().model
    with pytest.raises(
        TypeError, match="must be a TextClassifier; `TextClassificationPipeline.from_run.* Languag"
    ):
        TextClassificationPipeline(generator().model, tokenizer())
    with pytest.raises(ValueError, match="as many entries as .* 31 entries, vocab_size=30"):
        TextClassificationPipeline(model, tokenizer(31))
    for length in (0, 12):
        with pytest.raises(ValueError, match=f"between 1 and the model's 11. .*={length}"):
            TextClassificationPipeline(model, tokenizer(), max_length=length)
    with pytest.raises(TypeError, match="`max_length` must be an integer, or None. .*'9'"):
        TextClassificationPipeline(model, tokenizer(), max_length="9")


@pytest.mark.slow
def test_a_run_is_opened_as_the_pipeline_of_its_task(tmp_path):
    for pipeline in (classifier(), generator()):
        run = Run(tmp_path / pipeline.task)
        run.path.mkdir()
        pipeline.model.save(run.model)
        run.write_tokenizers(pipeline.tokenizers)
        opened = open_run(run.path, max_length=5)
        assert type(opened) is type(pipeline) and opened.max_length == 5
        assert opened(["dog"]) == type(pipeline)(pipeline.model, tokenizer(), 5)(["dog"])
        name = type(pipeline.model).__name__
        with pytest.raises(ValueError, match=f"must hold a Transformer. Received: a {name}"):
            Translator.from_run(run.path)
    with pytest.raises(ValueError, match="must hold a LanguageModel. Received: a TextClassifier"):
        type(generator()).from_run(tmp_path / "classification")


# Task


class Fixed:
    """A fake classifier with known answers."""

    labels = ("a", "b", "c")

    def __init__(self, answers, truncated=0):
        self.answers, self.truncated = answers, truncated

    def classify(self, texts):
        assert len(texts) == len(self.answers)
        return [
            Classification(answer, 0.5, number < self.truncated, np.zeros(3))
            for number, answer in enumerate(self.answers)
        ]


def evaluate(answers, labels, **options):
    texts = [f"text {number}" for number in range(len(labels))]
    results = TASK.evaluate(Fixed(answers, **options), [texts, labels])
    assert results.pop("seconds") >= 0
    return results


def test_metrics_follow_their_definitions():
    """a: 2 right of 2 answers and 3 texts, F1 4/5; b: 1 of 3 and 2, 2/5; c: none."""
    figures = evaluate(list("aabbcb"), ["a", "a ", "a", " b", "b", "c"], truncated=2)
    assert figures == {
        "accuracy": 50.0,
        "macro_f1": pytest.approx(100 * (4 / 5 + 2 / 5 + 0) / 3),
        "texts": 6,
        "truncated": 2,
    }


def test_a_label_that_occurs_nowhere_does_not_count():
    """c has neither precision nor recall; a label only in the answers has an F1 of 0."""
    assert evaluate(list("ab"), ["a", "b"])["macro_f1"] == pytest.approx(100)
    assert evaluate(list("ac"), ["a", "a"])["macro_f1"] == pytest.approx(100 * (2 / 3 + 0) / 2)
    assert evaluate(list("abc"), list("abc"))["macro_f1"] == pytest.approx(100)


def test_an_unknown_label_and_missing_texts_are_reported_in_one_line():
    message = "example 2: the label must be one of those in the training data, a, b, c. .*'d'"
    with pytest.raises(ValueError, match=message):
        evaluate(list("aa"), ["a", "d"])
    with pytest.raises(ValueError, match="at least one text to classify. Received: none"):
        evaluate([], [])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "0", "1"], ("0", "1")),
        (["10", "9", "-1.5", " 9 "], ("-1.5", "9", "10")),  # as numbers
        (["b", "10", "a", "9"], ("9", "10", "a", "b")),
        # These are words, although Python parses them as numbers.
        (["1_0", "20", "infinity"], ("20", "1_0", "infinity")),
        (["gut", "schön", "schlecht"], ("gut", "schlecht", "schön")),
    ],
)
def test_the_labels_are_those_of_the_data_in_their_order(labels, expected):
    rows = tf.data.Dataset.from_tensor_slices((["x"] * len(labels), labels))
    assert TASK.survey(rows).fields == {"labels": expected}


def test_the_model_of_a_classification_task_is_a_text_classifier():
    assert TASK.pipeline_class().model_class is TextClassifier
