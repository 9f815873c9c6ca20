"""Sampling from the model's distribution, optionally restricted to the most probable tokens."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.blocks import top_k as top_k_of
from keras_transformer.decoding.constraints import NEVER, Constraints
from keras_transformer.decoding.loop import STAGES, result_length
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.single import decode_single
from keras_transformer.decoding.threefry import uniforms
from keras_transformer.search_settings import SampleSettings, check_numbers
from keras_transformer.tensors import Tensor

# Smallest temperature in use: it already gives all probability to the most probable token.
COLDEST = 1e-6


def sample_decode(
    model: Any,
    source: Tensor,
    temperature: float | Tensor | None = None,
    top_k: int | Tensor | None = None,
    top_p: float | Tensor | None = None,
    seed: tuple[int, int] | Tensor = (0, 0),
    max_length: int | Tensor | None = None,
    cache_length: int | None = None,
    constraints: Constraints | None = None,
    token_scores: bool = False,
    alignment: tuple[int, int | None] | None = None,
    cache_stages: Sequence[int] | None = STAGES,
) -> tuple[tf.Tensor, tf.Tensor] | dict[str, tf.Tensor]:
    """Draws tokens from the model's distribution, until all sentences have ended.

    The logits are divided by `temperature`. The `top_k` most probable tokens are kept, and of these
    the smallest set of most probable tokens whose total probability is at least `top_p`. `pad_id`
    and `bos_id` are never emitted. The score is not affected by temperature, top-k and top-p: it is
    the score that `greedy_decode` would give to the same tokens.

    The search is a loop in the graph, whose cache has a fixed size in each stage: it works eagerly,
    in a `tf.function`, under XLA, in a SavedModel and in LiteRT, with the same random numbers for
    the same seed. A sample depends only on its source and its seed, not on the other sentences in
    the batch or the position in the batch: with one seed for all, equal sources get equal outputs.

    Args:
        model: A `Transformer`, or any `Predictor`, such as an `Ensemble` or a `DecoderOnly`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or
            the inputs of the predictor.
        temperature: At least 0, number or tensor, scalar or `[B]`. 0 is greedy search, which
            returns the first of equally probable tokens whatever the seed. `None`: 1.
        top_k: Number of tokens to keep, integer or tensor, scalar or `[B]`. `None` or 0: all.
        top_p: Probability to keep, number or tensor, scalar or `[B]`. The most probable token is
            always kept. `None` or 1: all.
        seed: Two 32-bit integers, int32, for all sentences, or `[B, 2]`, two for each sentence.
        max_length: See `greedy_decode`.
        cache_length: See `greedy_decode`.
        constraints: See `greedy_decode`.
        token_scores: See `greedy_decode`.
        alignment: See `greedy_decode`.
        cache_stages: See `greedy_decode`.

    Returns:
        Tokens and scores, like `greedy_decode`.

    Raises:
        ValueError: If a number is out of range or an argument has the wrong shape. The values of
            tensors are not checked.

    Reference: Holtzman et al. (2020), "The Curious Case of Neural Text Degeneration", for `top_p`;
        Fan et al. (2018), "Hierarchical Neural Story Generation", for `top_k`.
    """
    check_numbers(SampleSettings, temperature=temperature, top_k=top_k, top_p=top_p)
    predictor = predictor_of(model, alignment)
    length = result_length(predictor, source, 1, max_length, cache_length)
    draws = uniforms(_seeds(seed), length)  # [B or 1, L]

    def choose(logits, index):
        draw = tf.gather(draws, [index], axis=1)  # [B or 1, 1]
        values = logits.values
        token = draw_token(tf.cast(values, tf.float32), draw, temperature, top_k, top_p)
        return token, tf.gather(values, token, batch_dims=1)

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


def draw_token(logits, draw, temperature=None, top_k=None, top_p=None) -> Tensor:
    """Draws a token by inverting the cumulative distribution of the tokens that are kept.

    Args:
        logits: `[B, V]`, float32; `NEVER` for forbidden tokens.
        draw: Uniform random numbers in [0, 1), `[B, 1]` or `[1, 1]`.
        temperature: See `sample_decode`.
        top_k: See `sample_decode`.
        top_p: See `sample_decode`.

    Returns:
        Tokens `[B]`, int32.
    """
    kept = logits > NEVER / 2  # [B, V]
    if temperature is not None:
        divisor = tf.maximum(_column(temperature, tf.float32), COLDEST)
        best, most_probable = top_k_of(logits, 1)  # [B, 1]
        most_probable = tf.squeeze(most_probable, 1)
        logits = tf.where(kept, (logits - best) / divisor, NEVER)
    if top_k is not None or top_p is not None:
        kept = tf.logical_and(kept, _most_probable(logits, top_k, top_p))
    cumulative = tf.cumsum(tf.nn.softmax(tf.where(kept, logits, NEVER)), axis=1)  # [B, V]
    reached = cumulative > draw * cumulative[:, -1:]
    # Choose the first kept token whose cumulative probability exceeds the draw, otherwise the last
    # kept one: rounding can raise the sum at a token that is not kept, or keep all sums below the
    # draw.
    size = logits.shape[1]
    places = tf.range(size)
    order = tf.where(kept, tf.where(reached, 2 * size - places, places), -1)
    drawn = tf.argmax(order, axis=1, output_type=tf.int32)
    if temperature is None:
        return drawn
    frozen = _column(temperature, tf.float32)[:, 0] <= 0  # [B or 1]
    return tf.where(frozen, most_probable, drawn)


def _most_probable(logits, top_k, top_p):
    """Returns the mask of the tokens in `top_k` and `top_p`; ties go to the lower id."""
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
        # With top_p = 1 keep all: the rounded sum can reach 1 before the last token.
        among = (before < top_p) | tf.equal(ranks, 0) | (top_p >= 1)
        kept = tf.logical_and(kept, among)
    last = _count(kept) - 1  # [B, 1]
    value = tf.gather(values, last, batch_dims=1)
    token = tf.gather(tokens, last, batch_dims=1)
    return (logits > value) | (tf.equal(logits, value) & (ranks <= token))


def _seeds(seed):
    """Returns one seed for each sentence or one for all, `[B or 1, 2]`."""
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
