"""Greedy decoding with a key/value cache."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.loop import STAGES
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.single import decode_single
from keras_transformer.tensors import Tensor


def greedy_decode(
    model: Any,
    source: Tensor,
    max_length: int | Tensor | None = None,
    cache_length: int | None = None,
    constraints: Constraints | None = None,
    token_scores: bool = False,
    alignment: tuple[int, int | None] | None = None,
    cache_stages: Sequence[int] | None = STAGES,
    confidence: bool = False,
) -> tuple[tf.Tensor, tf.Tensor] | dict[str, tf.Tensor]:
    """Takes the most probable token at each step, until every sentence has ended.

    The search is a loop in the graph, whose cache has a fixed size in each stage: it works eagerly,
    in a `tf.function`, under XLA, in a SavedModel and in LiteRT. The result of a sentence does not
    depend on the others in its batch.

    Args:
        model: A `Transformer`, or any `Predictor`, such as an `Ensemble` or a `DecoderOnly`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or
            the inputs of the predictor.
        max_length: Maximum number of new tokens, `eos_id` included: integer, or tensor, scalar or
            `[B]`. The tokens with which an output begins do not count: its prompt, those of the
            model's `prompt_ids`, and a `forced_bos_id` or a language. A `prefix` of `constraints`
            counts. An output is at most `cache_length` long. `None`: only that limits it.
        cache_length: Length L of the cache and of the result, an integer. `None`: as many as the
            longest output may have if `max_length` is an integer and the prompts are known when
            the graph is made, otherwise the model's `max_length`.
        constraints: `Constraints` of the outputs. With constraints, even empty ones, `pad_id` and
            `bos_id` are never emitted.
        token_scores: Whether to also return the log-probability of each token.
        alignment: A pair of integers, layer and head of the decoder: also returns the attention of
            each token to the source. `None` in place of the head: the mean of all heads. A
            predictor with attention weights always returns them.
        cache_stages: Cache sizes to grow through, in positions: the cost of a step then depends on
            the actual length of the outputs. Empty: one loop instead of several, a smaller graph.
            `None`: the cache grows while the search runs, so that the memory also depends on the
            actual length; neither XLA nor LiteRT can compile this.
        confidence: Whether to also return numbers that tell whether an output is invented, as in
            Whisper: the probability that the inputs contain no speech, if the vocabulary has a
            `no_speech_id`; and the mean log-probability of the tokens after the prompt among those
            that the rules of the model allow.

    Returns:
        Token ids `[B, L]`, int32, each row ending in `eos_id` and then padding (without `eos_id`
        where the maximum length came first), and scores `[B]`, float32: the sum of the
        log-probabilities of the tokens, `eos_id` included.

        With `token_scores`, `alignment` or `confidence` a dictionary: `"tokens"` and `"scores"`;
        `"token_scores"`, float32 `[B, L]`; `"alignment"`, float32 `[B, L, S]`, both 0 for padding;
        `"no_speech"` and `"mean_log_probability"`, float32 `[B]`.

    Raises:
        ValueError: If a length is out of range, or another argument has the wrong shape or value.
    """

    def choose(logits, index):
        values, tokens = logits.top_k(1)  # [B, 1]; one pass fewer than maximum and argmax
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
        confidence,
    )
