"""Several labels per text: results, metrics, thresholds, files, settings of a run."""

import json

import numpy as np
import pytest
import tensorflow as tf
from pipelines import LABELS, multi_label_classifier, tokenizer, write_run

from keras_transformer.fields import LabelSets
from keras_transformer.models import MultiLabelClassifierConfig
from keras_transformer.pipelines import LabelSet, MultiLabelClassificationPipeline
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.tasks.multi_label_classification.config import separator_for
from keras_transformer.tasks.multi_label_classification.metrics import label_metrics
from keras_transformer.tasks.multi_label_classification.thresholds import best_thresholds
from keras_transformer.text.lists import items_of

TEXTS = ["a cat", "the big dog runs", "", "dog", "a big cat and a dog", "the the the"]
LONG = "the big dog and the cat and a dog and the big cat runs"
TASK = TASKS["multi_label_classification"]
RNG = np.random.default_rng(7)


def probabilities(text):
    """Returns the model's probabilities of a single text, in float64."""
    words = tokenizer().encode([text]).to_list()[0][:-1][:10]
    model = multi_label_classifier().model
    logits = np.asarray(model(np.array([[*words, 3]]))[0], "float64")
    return 1 / (1 + np.exp(-logits))


def test_a_result_has_the_probabilities_of_the_text_alone_and_the_labels_above_the_threshold():
    classifier = multi_label_classifier().with_settings(threshold=0.3)
    results = classifier.classify([*TEXTS, LONG])
    assert len({result.labels for result in results}) > 1, "or the tests here could not fail"
    for text, result in zip([*TEXTS, LONG], results, strict=True):
        expected = probabilities(text)
        np.testing.assert_allclose(result.probabilities, expected, rtol=0, atol=1e-5)
        assert result.truncated == (text == LONG)
        assert result.labels == tuple(np.array(LABELS)[expected >= 0.3])
        assert result.text == ",".join(result.labels)
        has = [np.log(p if p >= 0.3 else 1 - p) for p in expected]
        assert result.score == pytest.approx(sum(has), abs=1e-4)
    assert classifier(TEXTS) == [result.text for result in results[:-1]]


def test_thresholds_are_settings_and_the_text_may_have_probabilities():
    classifier = multi_label_classifier()
    assert classifier.thresholds == pytest.approx((0.26,) * 3)
    every = classifier.with_settings(threshold=0, probabilities=True)
    for text in TEXTS:
        shown = json.loads(every(text))
        assert {*shown} == {*LABELS} and [*shown.values()] == sorted(shown.values(), reverse=True)
        assert every.answer(text).choice == ",".join(LABELS)
    none = classifier.with_settings(threshold={"bad": 1, "good": 1, "so so": 0})
    assert none(TEXTS) == ["so so"] * len(TEXTS) and none.with_settings(threshold=1)("dog") == ""
    assert every.with_model(classifier.model)("dog") == every("dog")
    with pytest.raises(ValueError, match=r"`threshold` must be from 0 to 1. Received: threshold=2"):
        classifier.with_settings(threshold=2)
    with pytest.raises(ValueError, match="have one for each label .* Received: none for 'so so'"):
        classifier.with_settings(threshold={"bad": 1, "good": 1})
    with pytest.raises(ValueError, match="Received: one for 'x'"):
        classifier.with_settings(threshold={**dict.fromkeys(LABELS, 0.5), "x": 0.5})
    with pytest.raises(TypeError, match="`threshold` must be a number"):
        classifier.with_settings(threshold="high")


def test_results_differ_in_a_tie_only_near_a_threshold():
    def result(*numbers):
        array = np.array(numbers, "float32")
        labels = tuple(np.array(LABELS)[array >= 0.5])
        return LabelSet(labels, False, array, (0.5, 0.5, 0.5))

    ours = result(0.50001, 0.2, 0.9)
    assert ours.is_tied(result(0.49999, 0.2, 0.9), 1e-4)
    assert not ours.is_tied(result(0.50001, 0.2, 0.1), 1e-4)
    assert ours.score_error(result(0.50001, 0.2, 0.8)) == pytest.approx(np.log(9 / 8) / 3, abs=1e-5)
    assert np.isfinite(result(0, 1, 0).score_of(ours))


def slow_metrics(predicted, correct):
    """The definitions, one text and one label at a time."""
    counts = np.zeros((predicted.shape[1], 3))  # true positives, false positives, false negatives
    for row, other in zip(predicted, correct, strict=True):
        for label, (p, c) in enumerate(zip(row, other, strict=True)):
            counts[label] += p and c, p and not c, c and not p
    f1 = [2 * t / (2 * t + p + n) if t + p + n else 0.0 for t, p, n in [sum(counts), *counts]]
    equal = sum(all(a == b) for a, b in zip(predicted, correct, strict=True)) / len(predicted)
    return f1[0], sum(f1[1:]) / (len(f1) - 1), equal, counts


def test_metrics_follow_their_definitions():
    predicted, correct = RNG.uniform(size=(2, 23, 5)) < 0.4
    predicted[:, 3] = correct[:, 3] = correct[:, 4] = False  # without true positives
    metrics = label_metrics(predicted, correct, "abcde")
    micro, macro, equal, counts = slow_metrics(predicted, correct)
    names = ("micro_f1", "macro_f1", "subset_accuracy")
    assert [metrics[n] for n in names] == pytest.approx([100 * micro, 100 * macro, 100 * equal])
    for label, (right, wrong, missed) in zip("abc", counts, strict=False):
        assert metrics["per_label"][label] == {
            "precision": pytest.approx(100 * right / (right + wrong)),
            "recall": pytest.approx(100 * right / (right + missed)),
            "f1": pytest.approx(200 * right / (2 * right + wrong + missed)),
            "texts": right + missed,
        }
    nothing = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "texts": 0}
    assert metrics["per_label"]["d"] == metrics["per_label"]["e"] == nothing


@pytest.mark.parametrize("digits", [1, 9], ids=["equal ones", "all different"])
def test_no_threshold_is_better_than_the_chosen_one(digits):
    values = RNG.uniform(size=(31, 4)).round(digits).astype("float32")
    correct = RNG.uniform(size=(31, 4)) < values
    correct[:, 3] = False
    candidates = [0.0, *np.unique(values), 1.0]

    def metric(threshold, number, columns=slice(None)):
        return slow_metrics((values >= threshold)[:, columns], correct[:, columns])[number]

    for number, aim in enumerate(("micro_f1", "macro_f1")):
        chosen = best_thresholds(values, correct, "abcd", aim)
        best = max(metric(one, number) for one in candidates)
        assert metric(chosen, number) == pytest.approx(best, abs=1e-9)
    of_labels = best_thresholds(values, correct, "abcd", "label_f1")
    for number, label in enumerate("abcd"):
        columns = slice(number, number + 1)
        best = max(metric(one, 1, columns) for one in candidates)
        assert metric(of_labels[label], 1, columns) == pytest.approx(best, abs=1e-9)
    assert of_labels["d"] == 0.5


def test_neighbouring_numbers_have_a_threshold_between_them():
    upper = np.float32(0.3)
    lower = np.nextafter(upper, np.float32(0))
    chosen = best_thresholds(np.array([[upper], [lower]]), np.array([[True], [False]]), "a")
    assert lower < np.float32(chosen) <= upper


def test_labels_are_encoded_as_zeros_and_ones():
    field = LabelSets(("a", "b", "c d"))
    encoded = field.encode(tf.constant(["a\nc d", "", " b \n\nb", "a\nx"]))
    assert encoded.numpy().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0], [-2, -2, -2]]
    assert field.is_valid(encoded).numpy().tolist() == [True, True, True, False]
    assert field.explain() == "labels of the training data, of a, b, c d"
    assert LabelSets(map(str, range(30))).explain().endswith("18, 19 and 10 more")
    assert items_of(" b,a,, b", ",") == ("b", "a")


def test_the_labels_of_a_configuration_do_not_contain_the_separator():
    with pytest.raises(ValueError, match="must not contain the `separator`.*'a,b', separator=','"):
        MultiLabelClassifierConfig.preset("tiny", vocab_size=9, labels=("a,b", "c"))
    with pytest.raises(ValueError, match="`separator` must be a string that is not empty"):
        MultiLabelClassifierConfig.preset("tiny", vocab_size=9, separator="")
    assert separator_for(["a,b", "c"]) == ";"
    with pytest.raises(ValueError, match="must be in no label"):
        separator_for([",;|/"])


def test_the_labels_are_those_of_the_data_and_texts_without_one_are_counted():
    rows = tf.data.Dataset.from_tensor_slices((["x"] * 4, ["b\na", "", "b", "a"]))
    survey = TASK.survey(rows)
    assert survey.fields == {"labels": ("a", "b")}
    assert survey.sentences[-1] == "1.00 labels per text on average; 1 of 4 texts have none."


def test_evaluation_reads_labels_with_the_separator_of_the_run(tmp_path):
    classifier = multi_label_classifier().with_settings(threshold=0.3)
    (tmp_path / "texts").write_text("a cat\nthe big dog runs\n")
    (tmp_path / "labels").write_text("good , so so\n\n")
    columns = TASK.read_files(tmp_path / "texts", tmp_path / "labels")
    results = TASK.evaluate(classifier, columns)
    predicted = [
        [label in one.labels for label in LABELS] for one in classifier.classify(columns[0])
    ]
    expected = slow_metrics(np.array(predicted), np.array([[0, 1, 1], [0, 0, 0]], bool))
    assert results["micro_f1"] == pytest.approx(100 * expected[0])
    assert results["texts"] == 2 and {*results["per_label"]} == {*LABELS}
    with pytest.raises(ValueError, match="example 1: each label must be one of .* Received: 'x'"):
        TASK.evaluate(classifier, [["a"], ["good,x"]])
    with pytest.raises(ValueError, match="at least one text to classify"):
        TASK.evaluate(classifier, [[], []])


def test_a_run_has_a_threshold_of_its_own(tmp_path):
    classifier = multi_label_classifier()
    run = write_run(classifier, tmp_path / "run")
    (run / "threshold.json").write_text('{"bad": 0.0, "good": 1.0, "so so": 0.25}')
    opened = open_run(run, max_length=9)
    assert isinstance(opened, MultiLabelClassificationPipeline)
    assert opened.thresholds == (0.0, 1.0, 0.25)
    assert all(one.labels[0] == "bad" and "good" not in one.labels for one in opened.answer(TEXTS))
    (run / "threshold.json").write_text('{"bad": 0.0}')
    with pytest.raises(ValueError, match=r"threshold.json does not fit the model: .* 'good'"):
        open_run(run)
