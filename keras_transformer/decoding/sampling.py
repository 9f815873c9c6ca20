"""Sampling from the model, or from the most probable part of it."""

import tensorflow as tf

from keras_transformer.decoding.constraints import NEVER, Constraints
from keras_transformer.decoding.loop import STAGES, check_lengths
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.single import decode_single
from keras_transformer.decoding.threefry import uniforms
from keras_transformer.decoding.top_k import top_k as top_k_of
from keras_transformer.search_settings import SampleSettings, check_numbers

# Instead of any temperature below but 0: all but the largest probability are 0 there already.
COLDEST = 1e-6


def sample_decode(
    model,
    source,
    temperature=None,
    top_k=None,
    top_p=None,
    seed=(0, 0),
    max_length=None,
    cache_length=None,
    constraints=None,
    token_scores=False,
    alignment=None,
    cache_stages=STAGES,
):
    """Draws tokens with the probabilities the model gives them, until all sentences have ended.

    The logits are divided by `temperature`; of the tokens the `top_k` most probable are kept; of
    those, as few of the most probable as have together a probability of `top_p` or more. `pad_id`
    and `bos_id` are never emitted. The score is the model's own, untouched by all of this: that
    which `greedy_decode` would give to the same sentence.

    A loop in the graph with a cache of fixed size in each of its stages: works eagerly, in a
    `tf.function`, under XLA, in a SavedModel and in LiteRT, with the same numbers for the same
    seed. What a sentence becomes depends on itself and its seed, neither on the others in its batch
    nor on its place among them: with one seed for all, equal sentences become equal ones.

    Args:
        model: A `Transformer`, or any `Predictor`: several models, or one of another kind.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or
            whatever the predictor begins with.
        temperature: At least 0, number or tensor, scalar or `[B]`. 0 is greedy search: of equally
            probable tokens the first, whatever the seed. `None`: 1.
        top_k: Tokens to keep, integer or tensor, scalar or `[B]`. `None` or 0: all.
        top_p: Probability to keep, number or tensor, scalar or `[B]`. The most probable token is
            kept in any case. `None` or 1: all.
        seed: Two integers of 32 bits, int32, for all sentences, or `[B, 2]`, two for each.
        max_length: See `greedy_decode`.
        cache_length: See `greedy_decode`.
        constraints: See `greedy_decode`.
        token_scores: See `greedy_decode`.
        alignment: See `greedy_decode`.
        cache_stages: See `greedy_decode`.

    Returns:
        What `greedy_decode` returns.

    Raises:
        ValueError: If a number is out of range, which the values of tensors cannot be checked for,
            or an argument has the wrong shape.

    Reference: Holtzman et al. (2020), "The Curious Case of Neural Text Degeneration", for `top_p`;
        Fan et al. (2018), "Hierarchical Neural Story Generation", for `top_k`.
    """
    check_numbers(SampleSettings, temperature=temperature, top_k=top_k, top_p=top_p)
    predictor = predictor_of(model, alignment)
    length = check_lengths(predictor.max_length, 1, max_length, cache_length)
    draws = uniforms(_seeds(seed), length)  # [B or 1, L]

    def choose(logits, index):
        draw = tf.gather(draws, [index], axis=1)  # [B or 1, 1]
        token = draw_token(tf.cast(logits, tf.float32), draw, temperature, top_k, top_p)
        return token, tf.gather(logits, token, batch_dims=1)

    if constraints is None:
        constraints = Constraints()  # never `pad_id` and `bos_id`
    return decode_single(
        predictor,
        source,
        choose,
        max_length,
        length,
        constraints,
        token_scores,
        cache_stages,
    )


def draw_token(logits, draw, temperature=None, top_k=None, top_p=None):
    """Draws from the distribution that is left, by the inverse of its cumulative probabilities.

    Args:
        logits: `[B, V]`, float32; `NEVER` for a token that is not to be drawn.
        draw: Numbers from 0 to below 1, `[B, 1]` or `[1, 1]`.
        temperature: See `sample_decode`.
        top_k: See `sample_decode`.
        top_p: See `sample_decode`.

    Returns:
        Tokens `[B]`, int32.
    """
    kept = logits > NEVER / 2  # [B, V]
    if temperature is not None:
        warmth = tf.maximum(_column(temperature, tf.float32), COLDEST)
        best, most_probable = top_k_of(logits, 1)  # [B, 1]
        most_probable = tf.squeeze(most_probable, 1)
        logits = tf.where(kept, (logits - best) / warmth, NEVER)
    if top_k is not None or top_p is not None:
        kept = tf.logical_and(kept, _most_probable(logits, top_k, top_p))
    cumulative = tf.cumsum(tf.nn.softmax(tf.where(kept, logits, NEVER)), axis=1)  # [B, V]
    reached = cumulative > draw * cumulative[:, -1:]
    # The first that reaches the draw, of those that are kept: rounding can raise the sum at one
    # that is not, and can keep it below the draw at the last.
    size = logits.shape[1]
    places = tf.range(size)
    order = tf.where(kept, tf.where(reached, 2 * size - places, places), -1)
    drawn = tf.argmax(order, axis=1, output_type=tf.int32)
    if temperature is None:
        return drawn
    frozen = _column(temperature, tf.float32)[:, 0] <= 0  # [B or 1]
    return tf.where(frozen, most_probable, drawn)


def _most_probable(logits, top_k, top_p):
    """A mask of the tokens among the `top_k` and `top_p`; the first of equally probable ones."""
    size = logits.shape[1]
    values, tokens = tf.math.top_k(logits, size)  # [B, V], the most probable first
    ranks = tf.range(size)
    kept = tf.ones_like(values, tf.bool)
    if top_k is not None:
        top_k = _column(top_k, tf.int32)
        kept = tf.logical_and(kept, tf.logical_or(tf.equal(top_k, 0), ranks < top_k))
    if top_p is not None:
        top_p = _column(top_p, tf.float32)
        before = tf.cumsum(tf.nn.softmax(tf.where(kept, values, NEVER)), axis=1, exclusive=True)
        # The sum is rounded: it can be 1 before the last.
        among = (before < top_p) | tf.equal(ranks, 0) | (top_p >= 1)
        kept = tf.logical_and(kept, among)
    last = _count(kept) - 1  # [B, 1]
    value = tf.gather(values, last, batch_dims=1)
    token = tf.gather(tokens, last, batch_dims=1)
    return (logits > value) | (tf.equal(logits, value) & (ranks <= token))


def _seeds(seed):
    """A seed for each sentence or one for all, `[B or 1, 2]`."""
    seed = tf.convert_to_tensor(seed)
    if seed.shape.rank not in (1, 2) or seed.shape[-1] != 2:
        raise ValueError(
            "`seed` must be two integers, or two for each sentence, [B, 2]. "
            f"Received: shape {seed.shape}."
        )
    return tf.reshape(tf.cast(seed, tf.int32), [-1, 2])


def _count(which):
    return tf.reduce_sum(tf.cast(which, tf.int32), axis=1, keepdims=True)


def _column(control, dtype):
    return tf.reshape(tf.cast(control, dtype), [-1, 1])  # [B or 1, 1]
