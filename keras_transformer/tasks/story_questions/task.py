"""The task of answering questions about stories."""

import collections
import time
from collections.abc import Sequence
from typing import Any

from keras_transformer.tasks.class_labels import SPACES, count_labels, described_labels
from keras_transformer.tasks.story_questions.config import StoryReaderConfig
from keras_transformer.tasks.story_questions.lines import parse
from keras_transformer.tasks.task import LOSS, Metric, Survey, Task
from keras_transformer.text.lines import parse_lines


class StoryQuestionsTask(Task):
    """Answers to questions about stories by a `StoryReader`, from those of the training data.

    The data also contain the kind of each question, for errors of each kind, and the numbers of the
    sentences that support the answer, which no model is trained with. An input is a pair of
    strings, story and question; its reference is the answer.
    """

    name = "story_questions"
    columns = ("story", "question", "answer", "kind", "support")
    file_columns = ("stories with questions", "answers")
    sources = ("stories", "babi")
    texts = {"source": ("story", "question")}
    training = "keras_transformer.training.tasks.story_questions.training:StoryTraining"
    config_class = StoryReaderConfig
    metrics = {"loss": LOSS, "accuracy": Metric("accuracy", higher_is_better=True)}
    unit = "examples"
    fixed = dict.fromkeys(("subword_sampling", "r_drop"), 0.0)

    def pipeline_class(self) -> type[Any]:  # noqa: D102
        from keras_transformer.tasks.story_questions.pipeline import StoryAnswerer

        return StoryAnswerer

    def survey(self, rows, metadata=None) -> Survey:
        """Returns the answers and sentences with their counts; see `count_labels`."""
        batches = rows.batch(1024).as_numpy_iterator()
        counts = count_labels(answer for batch in batches for answer in batch[2])
        return Survey({"labels": tuple(counts)}, described_labels(counts, "answers"))

    def examples(self, columns) -> list[list]:
        """Returns pairs of story and question, the kind of each question, and the answers."""
        pairs = list(zip(columns["story"], columns["question"], strict=True))
        return [pairs, columns["kind"], columns["answer"]]

    def read_files(self, source, reference=None) -> Sequence[list]:
        """Reads lines with tabs or JSON, and returns them as `examples` does, without kinds."""
        lines, *others = super().read_files(source, reference)
        return [parse_lines(parse, lines, "example"), *others]

    def evaluate(self, pipeline, columns) -> dict[str, Any]:
        """Answers questions and compares the answers with the correct ones.

        Args:
            pipeline: A `StoryAnswerer`.
            columns: List of pairs of story and question; the kind of each question, if it is known;
                and list of the correct answers.

        Returns:
            Dictionary of `error`, the share of wrong answers in percent; `errors`, the same for
            each kind of question; `questions`, their number; `truncated`, the number of stories
            that were longer than the model's limit; and `seconds`.
        """
        examples, *kinds, answers = columns
        if not examples:
            raise ValueError("There must be at least one question to answer. Received: none.")
        begin = time.perf_counter()
        results = pipeline.answer(examples)
        seconds = time.perf_counter() - begin
        wrong = [
            result.label != answer.strip(SPACES)
            for result, answer in zip(results, answers, strict=True)
        ]
        by_kind = collections.defaultdict(list)
        for kind, one in zip(kinds[0] if kinds else (), wrong, strict=bool(kinds)):
            by_kind[kind].append(one)
        return {
            "error": _percent(wrong),
            **({"errors": {kind: _percent(by_kind[kind]) for kind in by_kind}} if kinds else {}),
            "questions": len(examples),
            "truncated": sum(result.truncated for result in results),
            "seconds": round(seconds, 3),
        }

    def check(self, settings) -> None:
        """Refuses settings without effect, and a linear start that training would not end."""
        for name, fixed in self.fixed.items():
            value = getattr(settings.training, name)
            if value != fixed:
                raise ValueError(f"`training.{name}` must be 0 for {self.name}. Received: {value}.")
        memory, training = settings.config().encoder, settings.training
        if memory.has_blocks:
            return
        if settings.model.vectors is not None:
            raise ValueError(
                "`model.vectors` has no effect on a memory network, which has several tables of "
                "embeddings; remove it."
            )
        if not memory.linear_start:
            return
        if training.updates is None:
            raise ValueError(
                "`training.updates` must be set with `linear_start`, which ends before the "
                f"training does. Received: linear_start={memory.linear_start}."
            )
        batches = training.updates * training.accumulate
        if memory.linear_start >= batches:
            raise ValueError(
                "`linear_start` must be less than the number of batches of the training, so that "
                "the attention has a softmax in the end. Received: linear_start="
                f"{memory.linear_start}, {batches} batches."
            )


def _percent(wrong):
    return 100 * sum(wrong) / len(wrong)
