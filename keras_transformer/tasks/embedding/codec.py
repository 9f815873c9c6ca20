"""The codec of sentence embeddings: texts to token ids, and vectors to results."""

from typing import Any

import numpy as np

from keras_transformer.tasks.answering import PassAnswering
from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.prompted import PromptedCodec
from keras_transformer.tasks.single_pass.text import MODULES, RULE, quoted
from keras_transformer.tasks.single_pass.vectors import Vector
from keras_transformer.tensors import Tensor


class TextVector(Vector):
    """The vector of a text."""


class VectorCodec(PromptedCodec):
    """Converts texts to inputs of a model; its outputs are the vectors of the texts.

    Args:
        tokenizer, max_length, choices: See `PromptedCodec`.
    """

    verb = "embed"
    rule = RULE.format("For any other row all numbers are 0.")
    nothing = {"vector": 0.0}
    max_score_loss = {"none": 0.0, "float16": 0.001, "int8": 0.02, "int4": 0.06}
    score_unit = "of cosine distance"

    def outputs(self, prediction) -> dict[str, Tensor]:
        """Returns `vector` `[B, D]`."""
        return {"vector": prediction}

    def answers(self, outputs, rest) -> dict[str, Any]:  # noqa: D102
        return {"vector": outputs["vector"], "truncated": rest["truncated"]}

    @classmethod
    def results(cls, answers) -> list[TextVector]:
        """Returns a `TextVector` for each text."""
        return [
            TextVector(np.asarray(vector, "float32"), bool(cut))
            for vector, cut in zip(answers["vector"], answers["truncated"], strict=True)
        ]

    def guide(self, example) -> Guide:  # noqa: D102
        texts, strings = self.notes()
        return Guide(
            purpose="Represents texts by vectors, with its tokenizer inside",
            request={"sentences": quoted([example])},
            axes={"source": "B, S", "vector": "B, D"},
            notes=[texts, "D: number of features of a vector.", strings],
            modules=MODULES,
        )


class EmbeddingAnswers(PassAnswering):
    """Something that answers with vectors of texts: a run or an export."""

    task = "embedding"
    output = "vector"
    codec_class = VectorCodec
