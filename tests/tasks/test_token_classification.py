"""A token classifier in use: words and their tokens, the model's own labels, and its task."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from pipelines import SIZES, tokenizer, with_larger_weights

from keras_transformer.models import TokenClassifier, TokenClassifierConfig
from keras_transformer.pipelines import TokenClassification, TokenClassificationPipeline
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.token_classification.spans import Span, words_of
from keras_transformer.tasks.token_classification.words import encode_words
from keras_transformer.tokenizers import WordPieceTokenizer

LABELS = ("O", "B-X", "I-X", "B-Y", "I-Y")
TASK = TASKS["token_classification"]
TEXTS = ["a cat", "the  big dog runs", "", "dog", " a big\tcat and", "\u200b dog", "é 字 x"]
LONG = "the big dog and the cat and a dog and the big cat runs"


@functools.cache
def token_classifier(max_length=None):
    config = TokenClassifierConfig(vocab_size=30, **SIZES, labels=LABELS)
    model = _model() if max_length else with_larger_weights(TokenClassifier(config))
    return TokenClassificationPipeline(model, tokenizer(), max_length)


def _model():
    return token_classifier().model


def pieces_by_hand(text):
    """Returns the tokens of each word, one word at a time."""
    rows = [tokenizer().encode([word]).to_list()[0][:-1] for word in words_of(text)]
    return [row or [1] for row in rows]


def labels_by_hand(text, longest=11):
    """Returns the label and probabilities of each word of one text, in float64."""
    rows = pieces_by_hand(text)
    ids = [piece for row in rows for piece in row]
    logits = np.asarray(_model()(np.array([[*ids[: longest - 1], 3]]))[0], "float64")
    labels, probabilities, place = [], [], 0
    for row in rows:
        of_word = np.zeros(len(LABELS))
        label = "O"
        if place < longest - 1:
            of_word = np.exp(logits[place]) / np.exp(logits[place]).sum()
            label = LABELS[of_word.argmax()]
        labels.append(label)
        probabilities.append(of_word)
        place += len(row)
    return labels, np.array(probabilities).reshape(len(rows), len(LABELS)), place >= longest


def test_tokens_equal_those_of_the_separate_words():
    ids, first, truncated = encode_words(tokenizer(), tf.constant(TEXTS))
    for text, row, places in zip(TEXTS, ids.to_list(), first.to_list(), strict=True):
        rows = pieces_by_hand(text)
        assert row == [piece for word in rows for piece in word] + [3]
        assert places == np.cumsum([0, *map(len, rows)])[:-1].tolist()
    assert not truncated.numpy().any()


def test_tokens_of_words_equal_those_of_the_text():
    texts = ["a cat runs", "the big dog", LONG]
    ids, *_ = encode_words(tokenizer(), tf.constant(texts))
    assert ids.to_list() == tokenizer().encode(texts).to_list()


def test_words_of_a_text_that_begins_with_a_special_token():
    """BERT's texts begin with `[CLS]`: positions move by one, and one token fewer fits."""
    known = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "##c"])
    texts = tf.constant(["a bc x a", "a"])
    ids, first, truncated = encode_words(known, texts)
    assert ids.to_list() == known.encode(texts).to_list() == [[2, 4, 5, 6, 1, 4, 3], [2, 4, 3]]
    assert first.to_list() == [[1, 2, 4, 5], [1]] and not truncated.numpy().any()
    ids, first, truncated = encode_words(known, texts, max_length=5)
    assert ids.to_list() == [[2, 4, 5, 6, 3], [2, 4, 3]]
    assert first.to_list() == [[1, 2, 4, 5], [1]] and truncated.numpy().tolist() == [True, False]


@pytest.mark.parametrize("white", [" ", "\t", "  ", "\n", "\v", "\f", "\r"])
def test_words_are_the_same_in_the_graph_and_in_python(white):
    text = f"a{white}big\u00a0dog{white}cat\u2003"
    _, first, _ = encode_words(tokenizer(), tf.constant([text]))
    assert len(first.to_list()[0]) == len(words_of(text)) == 3


def test_labels_are_the_most_probable_of_the_model(batch_size=64):
    results = token_classifier().answer([*TEXTS, LONG], batch_size=batch_size)
    assert len({label for result in results for label in result.labels}) > 2
    for text, result in zip([*TEXTS, LONG], results, strict=True):
        labels, probabilities, truncated = labels_by_hand(text)
        assert list(result.labels) == labels and result.truncated == truncated
        assert len(result.labels) == len(words_of(text))
        np.testing.assert_allclose(result.probabilities, probabilities, rtol=0, atol=1e-5)
        assert result.text == " ".join(labels)
    assert results[-1].truncated and results[-1].labels[-1] == "O"
    assert token_classifier()(TEXTS, batch_size=batch_size) == [
        result.text for result in results[:-1]
    ]


@pytest.mark.slow
def test_a_lower_limit_truncates_more():
    result = token_classifier(max_length=3).answer(["a cat and a dog"])[0]
    labels, *_ = labels_by_hand("a cat and a dog", longest=3)
    assert result.truncated and list(result.labels) == labels


def test_a_score_is_the_mean_over_the_words_that_were_read():
    probabilities = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0, 0, 0]], "float32")
    result = TokenClassification(("O", "B-X", "O"), True, probabilities)
    assert result.score == pytest.approx(np.log([0.5, 0.8]).mean(), abs=1e-6)
    other = TokenClassification(("B-X", "B-X", "O"), True, probabilities[:, [1, 0, 2]])
    assert result.score_of(other) == pytest.approx(np.log([0.3, 0.1]).mean(), abs=1e-5)
    assert result.spans == [Span(1, 2, "X")]
    assert TokenClassification((), False, np.zeros((0, 3), "float32")).score == 0


def test_a_result_is_a_near_tie_only_if_every_different_word_is():
    close = np.array([[0.5, 0.49995, 0], [0.9, 0.1, 0]], "float32")
    result = TokenClassification(("O", "O"), False, close)
    assert result.is_tied(TokenClassification(("B-X", "O"), False, close), 1e-4)
    assert not result.is_tied(TokenClassification(("B-X", "B-X"), False, close), 1e-4)
    assert not result.is_tied(TokenClassification(("O",), False, close[:1]), 1e-4)


# Task


class Fixed:
    """A fake token classifier with known answers."""

    labels = LABELS

    def __init__(self, *answers):
        self.answers = answers

    def answer(self, texts):
        rows = [tuple(answer.split()) for answer in self.answers]
        return [TokenClassification(row, False, np.zeros((len(row), 5))) for row in rows]


def test_an_evaluation_has_metrics_of_spans_and_words():
    figures = TASK.evaluate(Fixed("B-X O", "O B-Y"), [["a b", "c d"], ["B-X O", "B-Y I-Y"]])
    assert figures.pop("seconds") >= 0
    assert figures["span_f1"] == 50.0 and figures["accuracy"] == 50.0
    assert (figures["texts"], figures["words"], figures["truncated"]) == (2, 4, 0)
    assert TASK.measure(Fixed("B-X O"), ["a b"], ["B-X O"]) == {"span_f1": 100.0}


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        ("a b", "O", "example 2: there must be one label for each word. Received: 2 words, 1 lab"),
        (
            "a b",
            "O B-Z",
            "example 2: the label must be one of those .*, O, B-X, .*Received: 'B-Z'",
        ),
        ("a b", "O I-X", "example 2, word 2: I-X must follow B-X or I-X. Received: I-X after O"),
    ],
)
def test_wrong_labels_are_reported_in_one_line(text, labels, message):
    with pytest.raises(ValueError, match=message):
        TASK.evaluate(Fixed(), [["a", text], ["O", labels]])


def test_texts_without_words_are_reported_in_one_line():
    with pytest.raises(ValueError, match="at least one word to label. Received: none"):
        TASK.evaluate(Fixed(), [[], []])


def rows(*labels):
    return tf.data.Dataset.from_tensor_slices((["x"] * len(labels), list(labels)))


def test_the_labels_are_those_of_the_data():
    survey = TASK.survey(
        rows("B-B I-B O", "O B-A", "O", "B-B B-A", "B-AA")
    )  # B-B may be followed by an I-B
    assert survey.fields == {"labels": ("O", "B-A", "B-AA", "B-B", "I-B")}
    assert survey.sentences == (
        "3 types of spans in BIO: A, AA, B.",
        "5 labels of words: 'O' (3), 'B-A' (2), 'B-AA' (1), 'B-B' (2), 'I-B' (1).",
        "Warning: 2 of them occur only once in the training data and may be typing errors: 'B-AA' "
        "(did you mean 'B-A'?), 'I-B'.",
    )
    assert TASK.survey(rows("O S-A")).sentences[0] == "1 type of spans in BIOES: A."
    many = TASK.survey(rows(" ".join(f"B-{n}" for n in range(30)))).sentences[0]
    assert many.startswith("30 types of spans in BIO: 0, 1, 10, ") and many.endswith(", ....")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["O O"], "at least one span. Received: none"),
        (["O B-X", "O I-X"], "example 2, word 2: I-X must follow"),
        (["B-X E-X", "B-X O"], "example 2, word 2: the span of B-X must end in E-X"),
        (["B-X VB"], "labels must follow one scheme, BIO, .* Received: B-X and VB"),
    ],
)
def test_wrong_training_labels_are_reported_in_one_line(labels, message):
    with pytest.raises(ValueError, match=message):
        TASK.survey(rows(*labels))


def test_only_ascii_white_space_separates_labels():
    """As in the graph that splits them in training."""
    labels = ["B-a\u00a0b O", "O B-a\u00a0b"]
    rows = tf.data.Dataset.from_tensor_slices((["x y", "x y"], labels))
    assert TASK.survey(rows).fields["labels"] == ("O", "B-a\u00a0b")
    references = [["B-a\u00a0b", "O"], ["O", "B-a\u00a0b"]]
    assert [words_of(row) for row in labels] == references

    class Echo:
        labels = ("O", "B-a\u00a0b")

        def answer(self, texts):
            return [TokenClassification(tuple(row), False, np.ones((2, 2))) for row in references]

    assert TASK.evaluate(Echo(), [["x y"] * 2, labels])["span_f1"] == 100
    assert TASK.measure(Echo(), ["x y"] * 2, labels) == {"span_f1": 100}
