"""Greedy decoding with a key/value cache."""

import tensorflow as tf

from keras_transformer.decoding.loop import STAGES
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.single import decode_single
from keras_transformer.decoding.top_k import top_k


def greedy_decode(
    model,
    source,
    max_length=None,
    cache_length=None,
    constraints=None,
    token_scores=False,
    alignment=None,
    cache_stages=STAGES,
):
    """Takes the most probable token at each step, until every sentence has ended.

    A loop in the graph with a cache of fixed size in each of its stages: works eagerly, in a
    `tf.function`, under XLA, in a SavedModel and in LiteRT. The result of a sentence does not
    depend on the others in its batch.

    Args:
        model: A `Transformer`, or any `Predictor`: several models, or one of another kind.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or
            whatever the predictor begins with.
        max_length: Longest output in tokens, `eos_id` included: integer, or tensor, scalar or
            `[B]`; a tensor is cut at `cache_length`. `None`: `cache_length`.
        cache_length: Length L of the cache and of the result, an integer. `None`: `max_length`
            where that is an integer, else the model's `max_length`.
        constraints: `Constraints` of the outputs. With any, even empty ones, `pad_id` and
            `bos_id` are never emitted.
        token_scores: Whether to return the log-probability of each token as well.
        alignment: A pair of integers, layer and head of the decoder: whether to return what each
            token attended to in the source as well. `None` in place of the head: the mean of all.
            A predictor with weights returns it in any case.
        cache_stages: Positions for which the cache has room at first, and then, so that a step
            costs what the outputs are long. Empty: one loop instead of a few, a smaller graph.

    Returns:
        Token ids `[B, L]`, int32, each row ending in `eos_id` and then padding (without `eos_id`
        where the limit came first), and scores `[B]`, float32: the sum of the log-probabilities of
        the tokens, `eos_id` included.

        With `token_scores` or `alignment` a dictionary: `"tokens"` and `"scores"`;
        `"token_scores"`, float32 `[B, L]`; `"alignment"`, float32 `[B, L, S]`. After the end both
        are 0.

    Raises:
        ValueError: If a length is out of range, or another argument has the wrong shape or value.
    """

    def choose(logits, index):
        values, tokens = top_k(logits, 1)  # [B, 1]: one pass fewer than the largest and its place
        return tf.squeeze(tokens, 1), tf.squeeze(values, 1)

    return decode_single(
        predictor_of(model, alignment),
        source,
        choose,
        max_length,
        cache_length,
        constraints,
        token_scores,
        cache_stages,
    )
