"""The codec of sparse vectors of texts."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tasks.single_pass.guide import Guide
from keras_transformer.tasks.single_pass.prompted import PromptedCodec
from keras_transformer.tasks.single_pass.text import MODULES, RULE, quoted
from keras_transformer.tasks.sparse_embedding.vector import SparseVector
from keras_transformer.tensors import Tensor

NONE = -1  # id of no token


class SparseVectorCodec(PromptedCodec):
    """Converts texts to inputs of a model, and its weights of all tokens to the largest ones.

    Args:
        tokenizer, max_length, choices: See `PromptedCodec`.
        max_active: Largest number of tokens in a vector.
    """

    verb, number = "weigh", "weight"
    rule = RULE.format(
        "ids are those of the tokens with the largest weights, the largest first, and -1 with the "
        "weight 0 after the last one. For any other row all ids are -1 and all weights 0."
    )
    nothing = {"ids": NONE, "weights": 0.0}
    max_score_loss = {"none": 0.0, "float16": 0.001, "int8": 0.02, "int4": 0.06}
    score_unit = "of cosine distance"
    further = ("max_active",)

    def __init__(self, tokenizer, max_length, choices=None, max_active=256):
        super().__init__(tokenizer, max_length, choices)
        self.max_active = max_active

    def outputs(self, prediction) -> dict[str, Tensor]:
        """Returns `ids`, int32 `[B, K]`, and `weights`, float32, the largest first.

        Args:
            prediction: Weights of all tokens, `[B, V]`.
        """
        count = min(self.max_active, self.tokenizer.vocab_size)
        weights, ids = tf.math.top_k(prediction, count)  # [B, K]
        return {"ids": tf.where(weights > 0, ids, NONE), "weights": weights}

    def named(self, outputs) -> dict[str, Any]:
        """Adds `tokens`, the texts of the ids, empty where there is no token."""
        ids = tf.convert_to_tensor(outputs["ids"])  # [B, K]
        names = tf.constant(self.tokenizer.pieces(range(self.tokenizer.vocab_size)))
        return {**outputs, "tokens": tf.where(ids >= 0, tf.gather(names, tf.maximum(ids, 0)), "")}

    def answers(self, outputs, rest) -> dict[str, Any]:  # noqa: D102
        return {**self.named(outputs), "truncated": rest["truncated"]}

    @classmethod
    def results(cls, answers) -> list[SparseVector]:
        """Returns a `SparseVector` for each text."""
        columns = (answers[name] for name in ("ids", "weights", "tokens", "truncated"))
        vectors = []
        for ids, weights, tokens, cut in zip(*columns, strict=True):
            count = int(np.count_nonzero(np.asarray(ids) >= 0))
            names = tuple(token.decode(errors="replace") for token in tokens[:count])
            kept = np.asarray(weights[:count], "float32")
            least = float(kept[-1]) if count and count == len(ids) else 0.0
            vectors.append(
                SparseVector(np.asarray(ids[:count], "int32"), kept, names, bool(cut), least)
            )
        return vectors

    def guide(self, example) -> Guide:  # noqa: D102
        texts, strings = self.notes()
        return Guide(
            purpose="Gives the tokens of its vocabulary weights for texts (sparse vectors), with "
            "its tokenizer inside",
            request={"sentences": quoted([example])},
            axes={"source": "B, S", **dict.fromkeys(("ids", "weights", "tokens"), "B, K")},
            notes=[
                texts,
                f"K: the {min(self.max_active, self.tokenizer.vocab_size)} tokens with the largest "
                "weights, the largest first. After the last token with a weight, ids are -1, "
                "weights 0 and tokens empty. The similarity of two texts is the sum over their "
                "common ids of the products of both weights.",
                strings,
            ],
            modules=MODULES,
        )
