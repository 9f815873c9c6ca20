"""Word-level targets: the share of the target distribution that a teacher's predictions have."""

from typing import Any

import tensorflow as tf

from keras_transformer.tensors import Tensor

DISTILLATION_WEIGHT = 0.5  # default share of the teacher
# Names of the inputs of a batch with the teacher's K most probable tokens, `[B, T, K]`.
TOKENS, PROBABILITIES = "teacher_tokens", "teacher_probabilities"


def without_teacher(inputs) -> tuple[Any, list]:
    """Returns the inputs of a model, and a list of `TOKENS` and `PROBABILITIES` if they are there.

    Args:
        inputs: The inputs of a batch; a dictionary if it has predictions of a teacher.
    """
    if not isinstance(inputs, dict) or TOKENS not in inputs:
        return inputs, []
    others = {name: value for name, value in inputs.items() if name not in (TOKENS, PROBABILITIES)}
    return others, [inputs[TOKENS], inputs[PROBABILITIES]]


def teacher_shares(probabilities, weight) -> Tensor:
    """Returns the shares of a teacher's most probable tokens in the target distribution.

    The K probabilities are renormalised: a teacher that gives 0.9 to its K tokens together is
    learned as if it gave them 1. Where they are all 0, the teacher did not score the position, and
    the target is the label alone.

    Args:
        probabilities: Probabilities of the teacher's K most probable tokens, float32 `[..., K]`.
        weight: Share of the teacher, above 0 and at most 1; the label has the rest.

    Returns:
        float32 `[..., K]`; the sum over K is `weight` or 0.

    Reference: Kim and Rush (2016), section 3.1, whose sum over the vocabulary is over the K tokens.
    """
    total = tf.reduce_sum(probabilities, axis=-1, keepdims=True)  # [..., 1]
    return weight * tf.math.divide_no_nan(probabilities, total)
