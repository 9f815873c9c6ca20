"""The pipeline of a `Counter`: texts in, numbers out."""

import dataclasses

import numpy as np

from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.result import Result
from keras_transformer.tasks.single_pass.text import MODULES, RULE, TextCodec, quoted
from keras_transformer.tasks.single_pass.text_pass import TextPass

from .model import Counter


@dataclasses.dataclass(frozen=True)
class Count(Result):
    """The number of a text."""

    value: float
    truncated: bool

    @property
    def text(self):
        return f"{self.value:.3f}"

    @property
    def score(self):
        return 0.0

    @property
    def numbers(self):
        return np.array([self.value], "float32")

    def score_of(self, other):
        return abs(self.value - other.value)


class CountCodec(TextCodec):
    """Texts to token ids, and the model's output to a `Count`."""

    verb = "count"
    rule = RULE.format("For any other row the number is 0.")
    nothing = {"number": 0.0}

    def outputs(self, prediction):
        return {"number": prediction[:, 0]}

    def answers(self, outputs, rest):
        return {"number": outputs["number"], "truncated": rest["truncated"]}

    @classmethod
    def results(cls, answers):
        pairs = zip(answers["number"], answers["truncated"], strict=True)
        return [Count(float(number), bool(cut)) for number, cut in pairs]

    def guide(self, example):
        texts, strings = self.notes()
        return Guide(
            purpose="Counts a letter in texts, with its tokenizer inside",
            request={"sentences": quoted([example])},
            axes={"source": "B, S"},
            notes=[texts, strings],
            modules=MODULES,
        )


class Counting(TextPass):
    """A trained `Counter` with its tokenizer."""

    task = "tally"
    model_class = Counter
    output = "number"
    codec_class = CountCodec
