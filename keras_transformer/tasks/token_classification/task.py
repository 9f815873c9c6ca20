"""The task of token classification: a label for each word of a text."""

import collections
import time
from typing import Any

from keras_transformer.tasks.class_labels import SHOWN, described_labels
from keras_transformer.tasks.examples import ExampleError
from keras_transformer.tasks.task import LOSS, Metric, Survey, Task
from keras_transformer.tasks.token_classification.config import TokenClassifierConfig
from keras_transformer.tasks.token_classification.spans import (
    OUTSIDE,
    SCHEMES,
    find_problem,
    letter_of,
    parts_of,
    span_metrics,
    words_of,
)


class TokenClassificationTask(Task):
    """Token classification of the words of a text by a `TokenClassifier`.

    Words are separated by spaces, and so are their labels, one for each word. The labels are those
    of the training data, in the scheme that `scheme_of` finds.
    """

    name = "token_classification"
    columns = ("words", "labels")
    texts = {"source": ("words",)}
    training = (
        "keras_transformer.training.tasks.token_classification.training:TokenClassificationTraining"
    )
    config_class = TokenClassifierConfig
    metrics = {
        "loss": LOSS,
        "accuracy": Metric("accuracy of words", higher_is_better=True, drawn=False),
        "span_f1": Metric("span F1", higher_is_better=True, of_answers=True),
    }
    unit = "labels"

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.token_classification.pipeline import (
            TokenClassificationPipeline,
        )

        return TokenClassificationPipeline

    def survey(self, rows, metadata=None) -> Survey:
        """Returns the labels, first `O`, then those of each type, and sentences with their counts.

        Raises:
            ValueError: If there is no span, or a label breaks the scheme.
        """
        sentences = [
            words_of(labels.decode("utf-8", "replace"))
            for _, batch in rows.batch(1024).as_numpy_iterator()
            for labels in batch
        ]
        counts = collections.Counter(label for sentence in sentences for label in sentence)
        inside = counts.keys() - {OUTSIDE}
        if not inside:
            raise ValueError("the training data must have at least one span. Received: none.")
        check_spans(sentences, scheme_of(inside))
        labels = (OUTSIDE, *sorted(inside, key=lambda label: parts_of(label)[::-1]))
        types = list(dict.fromkeys(parts_of(label)[1] for label in labels[1:]))
        shown = ", ".join(types[:SHOWN]) + (", ..." if len(types) > SHOWN else "")
        kinds = f"{len(types)} type{'s' * (len(types) > 1)} of spans in {scheme_of(inside)}"
        counts = {label: counts[label] for label in labels}
        described = described_labels(counts, "labels of words", lambda label: parts_of(label)[0])
        return Survey({"labels": labels}, (f"{kinds}: {shown}.", *described))

    def measure(self, pipeline, inputs, references) -> dict[str, Any]:
        """Returns `span_f1`."""
        answers = [list(result.labels) for result in pipeline.answer(inputs)]
        expected = [words_of(reference) for reference in references]
        return {"span_f1": span_metrics(answers, expected)["span_f1"]}

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Labels texts and compares the predicted spans with the correct ones.

        Args:
            pipeline: A `TokenClassificationPipeline`.
            columns: List of texts, and list of their labels.

        Returns:
            Dictionary of the results of `span_metrics`; `accuracy`, the percentage of words with
            the correct label; `texts` and `words`, their numbers; `truncated`, the number of texts
            that were longer than the model's limit, whose last words are labelled `O`; and
            `seconds`.
        """
        texts, references = columns[0], [words_of(labels) for labels in columns[1]]
        if not any(references):
            raise ValueError("There must be at least one word to label. Received: none.")
        check_labels(texts, references, pipeline.labels)
        begin = time.perf_counter()
        results = pipeline.answer(texts)
        seconds = time.perf_counter() - begin
        answers = [list(result.labels) for result in results]
        pairs = [pair for row in zip(answers, references, strict=True) for pair in zip(*row)]  # noqa: B905
        return {
            **span_metrics(answers, references),
            "accuracy": 100 * sum(ours == theirs for ours, theirs in pairs) / len(pairs),
            "texts": len(texts),
            "words": len(pairs),
            "truncated": sum(result.truncated for result in results),
            "seconds": round(seconds, 3),
        }

    def check(self, settings) -> None:
        """Refuses settings that have no effect or would separate a label from its token."""
        if settings.training.subword_sampling:
            raise ValueError(
                f"`training.subword_sampling` must be 0 for {self.name}: a label belongs to the "
                f"first token of its word. Received: {settings.training.subword_sampling}."
            )
        if settings.training.r_drop:
            raise ValueError(
                f"`training.r_drop` must be 0 for {self.name}. "
                f"Received: {settings.training.r_drop}."
            )


def scheme_of(labels) -> str:
    """Returns the scheme that labels need, one of `spans.SCHEMES` except `"IOB1"`.

    Args:
        labels: All labels of the data, or of a model.

    Raises:
        ValueError: If they mix schemes, or write the letters in another way, such as `B_PER`. The
            message names labels.
    """
    known = {*labels}
    for begin in labels:
        inside = {"B": "I", "b": "i"}.get(begin[:1], "") + begin[1:]
        if begin[:2] != "B-" and not begin[1:2].isalnum() and inside != begin and inside in known:
            raise ValueError(
                "labels of spans must be written as B-TYPE and I-TYPE. "
                f"Received: {begin} and {inside}."
            )
    by_letter = {letter_of(label): label for label in labels if label != OUTSIDE}
    letters = {*by_letter}
    if letters <= {"I"} or letters == {""}:
        return "IO"
    for scheme, allowed in SCHEMES.items():
        if letters <= {*allowed}:
            return scheme
    raise ValueError(
        f"labels must follow one scheme, {', '.join(SCHEMES)}. "
        f"Received: {' and '.join(sorted(by_letter.values()))}."
    )


def check_spans(sentences, scheme) -> None:
    """Raises an `ExampleError` that names the first sentence whose labels break the scheme."""
    for number, labels in enumerate(sentences, start=1):
        if problem := find_problem(labels, scheme):
            place, what = problem
            raise ExampleError(number, what, f", word {place + 1}")


def check_labels(texts, references, known) -> None:
    """Raises an `ExampleError` unless there is a known label for each word of the texts."""
    for number, (text, labels) in enumerate(zip(texts, references, strict=True), start=1):
        words = len(words_of(text))
        if len(labels) != words:
            raise ExampleError(
                number,
                "there must be one label for each word. "
                f"Received: {words} words, {len(labels)} labels.",
            )
        for label in labels:
            if label not in known:
                raise ExampleError(
                    number,
                    f"the label must be one of those in the training data, {', '.join(known)}. "
                    f"Received: {label!r}.",
                )
    check_spans(references, scheme_of(known))
