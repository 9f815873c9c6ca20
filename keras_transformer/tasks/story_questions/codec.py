"""The codec of questions about stories."""

import dataclasses
import json
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.labels import Classification
from keras_transformer.tasks.single_pass.text import MODULES, quoted
from keras_transformer.tasks.single_pass.text_labels import TextLabelCodec
from keras_transformer.tasks.story_questions.lines import is_pair, pair_of, parse
from keras_transformer.tasks.story_questions.rows import story_rows
from keras_transformer.tasks.strings import is_utf8
from keras_transformer.tasks.token_rows import empty_where_invalid, valid_rows
from keras_transformer.tensors import Tensor

RULE = (
    "Each row: the ids of a question's tokens; for each sentence of the story, the oldest first, "
    "bos and the ids of its tokens; eos, once; then pad up to source_length. The ids of tokens are "
    "at least 0 and below vocab_size, none of them pad, bos or eos. For any other row all "
    "probabilities are 0. Other rows are not affected."
)


@dataclasses.dataclass(frozen=True)
class StoryAnswer(Classification):
    """The answer to a question about a story.

    Args:
        label, probability, truncated, probabilities: See `Classification`.
        sentences: The sentences that the memory held, the oldest first. Empty: unknown.
        hops: Array `[K, N]`, float32: attention weight of each hop to each of the `sentences`; the
            rest, up to 1, is the weight of empty places. `None`: it was not asked for.
    """

    sentences: tuple = dataclasses.field(default=(), compare=False, repr=False)
    hops: np.ndarray | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The answer; with `hops`, an object in JSON that also has the weights."""
        if self.hops is None:
            return self.label
        hops = [[round(float(weight), 4) for weight in row] for row in self.hops]
        content = {"answer": self.label, "sentences": list(self.sentences), "hops": hops}
        return json.dumps(content, ensure_ascii=False)

    @property
    def choice(self) -> str:
        """The answer."""
        return self.label


class StoryCodec(TextLabelCodec):
    """Converts stories and questions to rows of tokens, and the model's outputs to answers.

    Args:
        tokenizer, max_length, labels: See `TextLabelCodec`.
        memory_size: Maximum number of sentences of a story, the most recent ones. `None`: no limit.
    """

    verb, example = "answer", "story and question"
    rule = RULE
    request_specs = {
        name: tf.TensorSpec([None], tf.string, name=name) for name in ("story", "question")
    }

    def __init__(self, tokenizer, max_length, labels, memory_size=None):
        super().__init__(tokenizer, max_length, labels)
        self.memory_size = memory_size

    @classmethod
    def is_one(cls, examples) -> bool:
        """Returns whether `examples` is a pair of a story and a question."""
        return is_pair(examples)

    @classmethod
    def check(cls, examples) -> list:  # noqa: D102
        rule = (
            "`examples` must be a list of pairs of a story, which is a list of sentences, and a "
            "question."
        )
        if not isinstance(examples, (list, tuple)):
            raise TypeError(f"{rule} Received: {examples!r}.")
        try:
            return [pair_of(example) for example in examples]
        except TypeError as error:
            raise TypeError(f"{rule} {error}") from None

    @classmethod
    def check_samples(cls, examples) -> list:  # noqa: D102
        examples = cls.check(examples)
        if not any(question.strip() for _, question in examples):
            raise ValueError(
                "There must be at least one story with a question to check an export with. "
                f"Received: {len(examples)}."
            )
        return examples

    @classmethod
    def parse(cls, line) -> Any:  # noqa: D102
        return parse(line)

    @staticmethod
    def size(example) -> int:  # noqa: D102
        return len(example[0])

    @classmethod
    def request(cls, examples) -> dict[str, Tensor]:  # noqa: D102
        columns = zip(*examples, strict=True) if examples else ((), ())
        return {
            name: tf.constant(column, tf.string, [len(examples)])
            for name, column in zip(cls.request_specs, columns, strict=True)
        }

    def encode(self, story, question) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns `source`, padded token ids `[B, S]`, and `truncated`, `[B]`."""
        texts = [tf.where(is_utf8(text), text, "") for text in (story, question)]
        rows, truncated = story_rows(self.tokenizer, *texts, self.longest, self.memory_size)
        return {"source": rows.to_tensor(self.tokenizer.pad_id)}, {"truncated": truncated}

    def screen(self, source) -> tuple[Tensor, dict[str, Tensor]]:  # noqa: D102
        valid = valid_rows(source, self.tokenizer, separators=None)  # [B]
        return valid, {"source": empty_where_invalid(source, valid, self.tokenizer)}

    def answers(self, outputs, rest) -> dict[str, Any]:  # noqa: D102
        return {**self.named(outputs), "truncated": rest["truncated"]}

    @classmethod
    def results(cls, answers) -> list[StoryAnswer]:
        """Returns a `StoryAnswer` for each question."""
        columns = (answers[name] for name in ("label", "probability", "truncated", "probabilities"))
        return [
            StoryAnswer(label.decode(), float(probability), bool(truncated), row)
            for label, probability, truncated, row in zip(*columns, strict=True)
        ]

    def metadata(self) -> dict[str, Any]:  # noqa: D102
        return {"memory_size": self.memory_size, **super().metadata()}

    def _rule(self):
        return self.rule

    @classmethod
    def from_metadata(cls, metadata, tokenizers) -> "StoryCodec":  # noqa: D102
        fields = (metadata[name] for name in ("max_length", "labels", "memory_size"))
        return cls(tokenizers, *fields)

    def guide(self, example) -> Guide:  # noqa: D102
        story, question = example
        labels = ", ".join(f"`{label}`" for label in self.labels)
        ids = self.tokenizer
        most = "" if self.memory_size is None else f" and of at most {self.memory_size} sentences"
        return Guide(
            purpose=f"Answers questions about stories with one of {labels}, with its tokenizer "
            "inside",
            request={"story": quoted([story]), "question": quoted([question])},
            axes={"source": "B, S", "probabilities": "B, C"},
            notes=[
                "B: number of questions in the request, each about its own story, a string with a "
                "sentence on each line, the oldest first.",
                f"C: the {len(self.labels)} answers, in the order above. `label` is the most "
                "probable of them.",
                f"S: number of tokens of the longest row, at most {self.longest}: a question; the "
                f"id {ids.bos_id} before each sentence of the story; the id {ids.eos_id}. Invalid "
                "ids are an error.",
                f"Strings are UTF-8. The oldest sentences of a story of more tokens than fit{most} "
                "are left out, and `truncated` is true.",
            ],
            modules=MODULES,
        )
