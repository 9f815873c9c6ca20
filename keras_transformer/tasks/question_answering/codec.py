"""The codec of extractive question answering."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.config.pair_layout import LAYOUTS
from keras_transformer.decoding.ensemble import log_mean
from keras_transformer.tasks.question_answering import spans
from keras_transformer.tasks.question_answering.head import OUTSIDE
from keras_transformer.tasks.question_answering.lines import parse
from keras_transformer.tasks.question_answering.metrics import answer_metrics
from keras_transformer.tasks.question_answering.passages import (
    Passages,
    cut_windows,
    read_questions,
)
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.result import Choice, log_of
from keras_transformer.tasks.single_pass.text import MODULES, TextCodec, quoted
from keras_transformer.tasks.token_rows import checked_ids, empty_where_invalid, valid_rows
from keras_transformer.tensors import Tensor

RULE = (
    "Each row: {}; the ids of tokens are at least 0 and below vocab_size, none of them pad, bos or "
    "eos; then pad up to source_length. The outputs start and end are the logits of each token as "
    "the first and as the last of the answer. The softmax of a row is over {} and over bos, which "
    "stands for an answer that is not in this row. For any other row, start and end are -1e9. "
    "Other rows are not affected."
)
ENDS = {False: "the first tokens of the passage's segments", True: "the passage's tokens"}


@dataclasses.dataclass(frozen=True)
class Answer(Choice):
    """The span of a passage that answers a question.

    Args:
        answer: Text of the span; empty if the passage has no words, or no answer and the option
            `no_answer` is set.
        begin, end: Offsets of the span in bytes of the passage in UTF-8.
        probability: Product of the probabilities of both ends, in the window where it is largest.
        truncated: Whether the question was longer than the model's limit and was truncated.
        segments: Numbers of the first and the last segment; see the module `passages`. -1 if there
            is no answer.
        probabilities: Array `[2, G]`, float32: probability of each segment of the passage as the
            first and as the last of the answer. For a segment in several windows, it is the
            largest of its probabilities.
        no_answer: Probability that the passage has no answer: that of `bos_id` as both ends, in
            the window where it is smallest.
    """

    answer: str
    begin: int
    end: int
    probability: float
    truncated: bool
    segments: tuple = dataclasses.field(compare=False, repr=False)
    probabilities: np.ndarray = dataclasses.field(compare=False, repr=False)  # ty: ignore[incompatible-attribute-override]
    no_answer: float = dataclasses.field(default=0.0, compare=False)

    @property
    def text(self) -> str:
        """The answer, as `predict` writes it."""
        return self.answer

    @property
    def score(self) -> float:
        """The natural logarithm of the probability."""
        return float(log_of(self.probability))

    def score_of(self, other: Any) -> float:
        """Returns the logarithm of the probability of another result's answer."""
        return float(log_of(self._probability(other.segments)))

    def is_tied(self, other: Any, tolerance: float) -> bool:
        """Returns whether the other answer is as probable, within four times the tolerance."""
        gap = self._probability(self.segments) - self._probability(other.segments)
        return bool(gap <= 4 * tolerance)

    def _probability(self, segments):
        if not self.probabilities.shape[1]:
            return 1.0
        if segments == self.segments:
            return self.probability
        if segments[0] < 0:
            return self.no_answer
        return float(np.prod(self.probabilities[[0, 1], list(segments)]))


class AnswerCodec(TextCodec):
    """Converts questions and passages to inputs of a model, and its outputs to answers.

    Args:
        tokenizer: See `TextCodec`.
        max_length: Maximum length of a row in tokens: a question, a window of the passage, and two
            more. A question is truncated to half of it.
        max_answer, stride, pair_layout, no_answer: See `SpanPredictorConfig`.
    """

    verb, example, number = "answer", "question and passage", "probability"
    options = ("max_answer", "stride", "pair_layout", "no_answer")
    nothing = {"start": OUTSIDE, "end": OUTSIDE}
    request_specs = {
        name: tf.TensorSpec([None], tf.string, name=name) for name in ("question", "passage")
    }

    def __init__(
        self, tokenizer, max_length, max_answer, stride, pair_layout="separator", no_answer=False
    ):
        super().__init__(tokenizer, max_length)
        self.max_answer, self.stride = max_answer, stride
        self.pair_layout, self.no_answer = pair_layout, no_answer
        self.layout = LAYOUTS[pair_layout]
        self.rule = RULE.format(self.layout.described("bos", "eos"), ENDS[self.layout.whole])

    @classmethod
    def is_one(cls, examples) -> bool:
        """Returns whether `examples` is a pair of strings, question and passage."""
        return isinstance(examples, (list, tuple)) and [*map(type, examples)] == [str, str]

    @classmethod
    def check(cls, examples) -> list:  # noqa: D102
        listed = isinstance(examples, (list, tuple))
        pairs = listed and all(
            isinstance(pair, (list, tuple)) and [*map(type, pair)] == [str, str]
            for pair in examples
        )
        if not pairs:
            raise TypeError(
                "`examples` must be a list of pairs of strings, question and passage. "
                f"Received: {examples!r}."
            )
        return list(examples)

    @classmethod
    def check_samples(cls, examples) -> list:  # noqa: D102
        examples = cls.check(examples)
        if not any(passage.strip() for _, passage in examples):
            raise ValueError(
                "There must be at least one question with a passage to check an export with. "
                f"Received: {len(examples)}."
            )
        return examples

    @classmethod
    def parse(cls, line) -> Any:  # noqa: D102
        return parse(line)

    @staticmethod
    def size(example) -> int:  # noqa: D102
        return len(example[1])

    @classmethod
    def request(cls, examples) -> dict[str, Tensor]:  # noqa: D102
        questions, passages = zip(*examples, strict=True) if examples else ((), ())
        return {
            "question": tf.constant(questions, tf.string, [len(examples)]),
            "passage": tf.constant(passages, tf.string, [len(examples)]),
        }

    def encode(self, question, passage) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source`, a row for each window, and a dictionary about the windows."""
        pieces, truncated = read_questions(self.tokenizer, question, self.longest)
        passages = Passages.of(self.tokenizer, passage, self.layout)
        limits = self.longest, self.stride, self.layout
        windows = cut_windows(self.tokenizer, pieces, passages, *limits)
        segment = passages.segment_of_piece.to_tensor(-1)  # [B, P]
        rest = {
            "passage": passage,
            "begins": passages.begins.to_tensor(0),  # [B, G]
            "ends": passages.ends.to_tensor(0),
            "count": passages.begins.row_lengths(),  # [B]
            "segment": segment,
            "example": windows.example,  # [R]
            "shift": windows.begin
            - windows.prefix,  # [R], index in the passage minus index in a row
            "prefix": windows.prefix,  # [R]
            "none": windows.none,  # [R], index of "no answer" in a row
            "eos": windows.source.row_lengths() - 1,  # [R], its index in a row
            "truncated": truncated,
        }
        return {"source": windows.source.to_tensor(self.tokenizer.pad_id)}, rest

    def screen(self, source) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: D102
        ids, layout = self.tokenizer, self.layout
        valid = valid_rows(source, ids, separators=1, ends=layout.ends)  # [R]
        if layout.begins:
            valid &= tf.equal(source[:, 0], ids.bos_id)
        if layout.separators == 2:  # next to each other
            is_end = tf.cast(tf.equal(source, ids.eos_id), tf.int32)
            first = tf.equal(tf.cumsum(is_end, axis=1), 1) & tf.equal(is_end, 1)
            after = tf.pad(is_end[:, 1:], [[0, 0], [0, 1]])
            valid &= tf.reduce_any(first & tf.equal(after, 1), axis=1)
        return valid, {"source": empty_where_invalid(source, valid, self.tokenizer)}

    def checked(self, source) -> dict[str, Any]:  # noqa: D102
        return {"source": checked_ids(source, self.tokenizer, self.longest, self.layout.ends)}

    def outputs(self, prediction) -> dict[str, Any]:
        """Returns the logits `start` and `end`, `[R, S]`."""
        return {"start": prediction[:, :, 0], "end": prediction[:, :, 1]}

    def mean(self, outputs, rest) -> dict[str, Any]:
        """Returns the logarithms of the mean probabilities of each token as `start` and `end`."""
        segment = spans.segments_of_rows(rest, tf.shape(outputs[0]["start"])[1])  # [R, S]
        return {
            name: log_mean([spans.possible(output[name], segment, rest) for output in outputs])
            for name in ("start", "end")
        }

    def answers(self, outputs, rest) -> dict[str, Any]:
        """Returns the `answer` `[B]`, its position, and the probabilities of the segments."""
        logits = [tf.convert_to_tensor(outputs[name]) for name in ("start", "end")]  # [R, S]
        segment = spans.segments_of_rows(rest, tf.shape(logits[0])[1])  # [R, S]
        start, end = (spans.log_probabilities(values, segment, rest) for values in logits)
        best, probability = spans.best_of_windows(start, end, segment, rest, self.max_answer)
        probabilities = [spans.of_segments(values, segment, rest) for values in (start, end)]
        none = spans.of_no_answer(*logits, segment, rest)  # [B]
        exists = rest["count"] > 0  # [B]
        if self.no_answer:
            exists &= probability >= none
        ends = [
            tf.where(exists, spans.at(rest[name], place), 0)
            for name, place in zip(("begins", "ends"), best, strict=True)
        ]
        other = tf.where(rest["count"] > 0, none, 1.0)
        first, last = (tf.where(exists | tf.equal(rest["count"], 0), place, -1) for place in best)
        return {
            "answer": tf.strings.substr(rest["passage"], ends[0], ends[1] - ends[0]),
            "probability": tf.where(exists, probability, other),
            "no_answer": none,
            "begin": ends[0],
            "end": ends[1],
            "first": first,
            "last": last,
            "segments": tf.cast(rest["count"], tf.int32),
            "start_probabilities": probabilities[0],
            "end_probabilities": probabilities[1],
            "truncated": rest["truncated"],
        }

    @classmethod
    def results(cls, answers) -> list[Answer]:
        """Returns an `Answer` for each question."""
        results = []
        for row in range(len(answers["answer"])):
            values = {name: answers[name][row] for name in answers}
            count = int(values["segments"])
            both = (values["start_probabilities"][:count], values["end_probabilities"][:count])
            results.append(
                Answer(
                    answer=values["answer"].decode("utf-8", "replace"),
                    begin=int(values["begin"]),
                    end=int(values["end"]),
                    probability=float(values["probability"]),
                    truncated=bool(values["truncated"]),
                    no_answer=float(values["no_answer"]),
                    segments=(int(values["first"]), int(values["last"])),
                    probabilities=np.stack(both),
                )
            )
        return results

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {**{name: getattr(self, name) for name in self.options}, **super().metadata()}

    def _rule(self):
        return self.rule

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "AnswerCodec":  # noqa: D102
        options = {name: metadata[name] for name in cls.options}
        return cls(tokenizers, metadata["max_length"], **options)

    def guide(self, example) -> Guide:  # noqa: D102
        question, passage = example
        segments = dict.fromkeys(("start_probabilities", "end_probabilities"), "B, G")
        kind = (
            "a token"
            if self.layout.whole
            else ("a sequence of letters and digits, or another single character")
        )
        row = self.layout.described(self.tokenizer.bos_id, self.tokenizer.eos_id)
        return Guide(
            purpose="Answers questions with a span of a passage, with its tokenizer inside",
            request={"question": quoted([question]), "passage": quoted([passage])},
            axes={**segments, **dict.fromkeys(("source", "start", "end"), "R, S")},
            notes=[
                "B: number of questions in the request, each about its own passage. `answer` is a "
                "span of the passage, from byte `begin` to before byte `end`.",
                f"G: number of segments of the longest passage. A segment is {kind}. `first` and "
                "`last` are the segments at the ends of the answer, `segments` is the number of "
                "segments of a passage, and the probabilities are those of each segment as an end "
                "of the answer. `no_answer` is the probability that the passage has none.",
                f"R: number of rows of token ids; S: tokens of the longest row, at most "
                f"{self.longest}: {row}; later ids are ignored. `start` and `end` are logits; "
                f"the logits of the id {self.tokenizer.bos_id} stand for an answer that is not in "
                "the row. Invalid ids are an error.",
                f"Strings are UTF-8. A question of more than {self.longest // 2} tokens is "
                "truncated, and `truncated` is true. A long passage is read in windows.",
            ],
            modules=MODULES,
        )

    def quality(self, results, references) -> dict[str, float]:
        """Returns `exact_match` and `f1`, from 0 to 100."""
        return answer_metrics([result.text for result in results], references)
