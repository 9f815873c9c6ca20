"""How the hypotheses of a beam may go on, and which of the ways are the best."""

import typing

import tensorflow as tf

from keras_transformer.decoding.hypotheses import NONE, count_of
from keras_transformer.decoding.top_k import top_k


class Continuations(typing.NamedTuple):
    """The best N continuations of a sentence, the best first, and how its N hypotheses would end.

    All are `[B, N]`.
    """

    scores: tf.Tensor
    parents: tf.Tensor  # number of the hypothesis that goes on
    tokens: tf.Tensor
    gains: tf.Tensor  # log-probabilities of the tokens; () if not asked for
    ends: tf.Tensor  # score of each hypothesis with `eos_id`
    end_gains: tf.Tensor  # log-probability of `eos_id` in each


def best_continuations(logits, allowed, scores, config, gains=False):
    """The best continuations of all hypotheses, and what each scores if it ends here.

    The best few of each hypothesis by logits, then the best N of those: neither a softmax nor a
    sort of all N * V, which would cost more than the network.

    Args:
        logits: `[B, N, V]`.
        allowed: The same with `NEVER` where a token is forbidden, `pad_id` and `bos_id` among
            them; `None` without constraints.
        scores: Sums of log-probabilities `[B, N]`.
        config: The `TransformerConfig`.
        gains: Whether the log-probabilities of the tokens are asked for.

    Returns:
        `Continuations`.
    """
    beam_size, vocab_size = logits.shape[1:]
    logits = tf.cast(logits, tf.float32)
    special = {config.eos_id}
    if allowed is None:  # masking all of V would read and write it once more
        allowed, special = logits, {config.pad_id, config.bos_id, config.eos_id}
    allowed = tf.cast(allowed, tf.float32)
    # The special ones are left out only then.
    count = min(beam_size + len(special), vocab_size)
    best, tokens = top_k(allowed, count)  # [B, N, count]
    for token in special:
        best = tf.where(tf.equal(tokens, token), NONE, best)
    base = tf.expand_dims(scores, 2)  # [B, N, 1]
    total = tf.reduce_logsumexp(logits, axis=2, keepdims=True)  # [B, N, 1]
    # Not above 0, whatever the rounding: early stopping relies on it.
    gain = tf.minimum(best - total, 0.0)  # [B, N, count]
    flat = tf.reshape(base + gain, [-1, beam_size * count])
    end_gain = tf.minimum(allowed[:, :, config.eos_id : config.eos_id + 1] - total, 0.0)
    best_scores, chosen = tf.math.top_k(flat, beam_size)  # [B, N]

    def take(values):
        return tf.gather(tf.reshape(values, [-1, beam_size * count]), chosen, batch_dims=1)

    return Continuations(
        scores=best_scores,
        parents=chosen // count,
        tokens=take(tokens),
        gains=take(gain) if gains else (),
        ends=tf.squeeze(base + end_gain, 2),
        end_gains=tf.squeeze(end_gain, 2),
    )


def among_the_best(ends, scores, size):
    """`ends` where fewer than `size` of all `ends` and `scores` are better, elsewhere none.

    Args:
        ends: `[B, N]`.
        scores: `[B, N]`.
        size: Number, or tensor `[B, 1]`.
    """
    rivals = tf.expand_dims(tf.concat([scores, ends], 1), 1)  # [B, 1, 2 * N]
    better = count_of(rivals > tf.expand_dims(ends, 2))  # [B, N]
    return tf.where(better < size, ends, NONE)
