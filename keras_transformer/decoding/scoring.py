"""Scores of given outputs."""

from typing import Any

from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.prompts import Beginning
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.tensors import Tensor


def target_logits(predictor: Any, source: Tensor, target: Tensor) -> Tensor:
    """Returns the logits of every token of given outputs, `[B, T, V]`, in a single pass.

    Args:
        predictor: A `Predictor`, whose forced tokens apply: see `score`.
        source, target: See `score`.
    """
    begin = tf.fill([tf.shape(target)[0], 1], predictor.vocabulary.bos_id)
    shifted = tf.concat([begin, target[:, :-1]], axis=1)  # [B, T]
    logits = predictor.logits(source, shifted)  # [B, T, V]
    positions = tf.expand_dims(tf.range(tf.shape(target)[1]), 0)  # [1, T]
    first, last = tf.equal(positions, 0), tf.equal(positions, predictor.max_length - 1)
    detects = Beginning.of(predictor.vocabulary, source).detects
    return predictor.vocabulary.with_forced(logits, first, last, detects)


def score(model: Any, source: Tensor, target: Tensor) -> "tuple[tf.Tensor, tf.Tensor]":
    """Returns the log-probabilities of the tokens of given outputs, in a single pass.

    If `target` is the output of a search, the sum is the score of the search without a length
    penalty. `forced_bos_id` has probability 1 at the first position, and `forced_eos_id` at the
    predictor's `max_length`.

    Args:
        model: A `Transformer`, or a predictor: see `Predictor.logits`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or the
            inputs of the predictor.
        target: Token ids `[B, T]`, integer, each row ending in `eos_id` and then padding, without
            `bos_id`. A row that does not end in `eos_id` is scored as the beginning of an output.

    Returns:
        Log-probabilities `[B, T]`, float32, 0 for padding; and their sums `[B]`.
    """
    predictor = predictor_of(model)
    target = tf.convert_to_tensor(target, tf.int32)
    logits = target_logits(predictor, source, target)  # [B, T, V]
    chosen = tf.gather(logits, target, batch_dims=2)  # [B, T]
    # A log-softmax would allocate a second tensor of [B, T, V].
    gains = chosen - tf.reduce_logsumexp(logits, axis=-1)  # [B, T]
    padding = tf.equal(target, predictor.vocabulary.pad_id)
    gains = tf.where(padding, 0.0, tf.cast(gains, tf.float32))
    return gains, tf.reduce_sum(gains, axis=1)
