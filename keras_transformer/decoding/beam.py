"""Beam search with a key/value cache (section 6.1)."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_transformer.checks import check_choice, check_count
from keras_transformer.decoding.beam_step import BeamStep
from keras_transformer.decoding.beginnings import Beginning
from keras_transformer.decoding.constraints import Constraints, Rules, with_rules_of
from keras_transformer.decoding.loop import (
    STAGES,
    cache_of,
    limit_of,
    make_result,
    mean_of_sums,
    result_length,
)
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.prompts import prompts_of
from keras_transformer.search_settings import (
    NORMALIZATIONS,
    STOPPINGS,
    BeamSettings,
    check_numbers,
)
from keras_transformer.tensors import Tensor


def beam_decode(
    model: Any,
    source: Tensor,
    beam_size: int = 4,
    n_best: int = 1,
    length_penalty: float | Tensor = 0.6,
    normalization: str = "gnmt",
    min_length: int | Tensor = 1,
    max_length: int | Tensor | None = None,
    cache_length: int | None = None,
    stopping: str = "count",
    early_stopping: bool = True,
    constraints: Constraints | None = None,
    token_scores: bool = False,
    alignment: tuple[int, int | None] | None = None,
    cache_stages: Sequence[int] | None = STAGES,
    beam_sizes: Tensor | None = None,
    confidence: bool = False,
) -> tuple[tf.Tensor, tf.Tensor] | dict[str, tf.Tensor]:
    """Keeps the `beam_size` most probable hypotheses at each step; ranks finished ones by score.

    The score of a hypothesis of `n` tokens, `eos_id` included, is the sum of their
    log-probabilities, divided by `((5 + n) / 6) ** length_penalty` (`"gnmt"`), by
    `n ** length_penalty` (`"power"`), by `n` (`"average"`) or by nothing (`"none"`); the
    tokens of the model's `prompt_ids` do not count, but those of a language model's prompt do, as
    in CTranslate2 and unlike `generate` of `transformers`. A hypothesis finishes when its `eos_id`
    is among the best `beam_size` continuations of all hypotheses. The search of a sentence is done
    when `beam_size` hypotheses have finished or the maximum length is reached. Hypotheses cut there
    rank after all finished ones. `pad_id` and `bos_id` are never emitted.

    With `stopping="score"` the search continues after that. It keeps the best `beam_size` finished
    hypotheses, and is done when the score of the best running hypothesis, divided by its current
    length, is not above the lowest of their scores. Hypotheses cut at the maximum length rank by
    their scores among the finished ones. This is the beam search of Hugging Face's
    `generate(early_stopping=False)`.

    With `stopping="narrow"` the beam shrinks by one for every finished hypothesis, and the search
    is done when no hypothesis is running. Hypotheses cut at the maximum length rank by their scores
    among the finished ones. This is Marian's beam search.

    The search is a loop in the graph, whose cache has a fixed size in each stage: it works eagerly,
    in a `tf.function`, under XLA, in a SavedModel and in LiteRT. The result of a sentence does not
    depend on the others in its batch. A beam of 1 returns the result of `greedy_decode`.

    Args:
        model: A `Transformer`, or any `Predictor`, such as an `Ensemble` or a `DecoderOnly`.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or
            the inputs of the predictor.
        beam_size: Number of running hypotheses N.
        n_best: Number of hypotheses M to return for each sentence, at most `beam_size`.
        length_penalty: Exponent of `"gnmt"` and `"power"`, at least 0: number, or tensor, scalar or
            `[B]`.
        normalization: `"gnmt"`, `"power"`, `"average"` or `"none"`.
        min_length: Minimum number of new tokens, counted like `max_length`: integer, or tensor,
            scalar or `[B]`. Constraints can force an earlier end.
        max_length: See `greedy_decode`.
        cache_length: See `greedy_decode`.
        stopping: `"count"`, `"score"` or `"narrow"`.
        early_stopping: Whether the search of a sentence is also done when no running hypothesis
            can still be among the best `n_best`. Without it the result is the same but takes
            longer. Ignored with `stopping="score"`.
        constraints: `Constraints` of the outputs.
        token_scores: Whether to also return the log-probability of each token.
        alignment: A pair of integers, layer and head of the decoder: also returns the attention of
            each token to the source. `None` in place of the head: the mean of all heads. A
            predictor with attention weights always returns them.
        cache_stages: Cache sizes to grow through, in positions: the cost of a step then depends on
            the actual length of the outputs. Empty: one loop instead of several, a smaller graph.
            `None`: the cache grows while the search runs, so that the memory also depends on the
            actual length; neither XLA nor LiteRT can compile this.
        beam_sizes: Beam size of each sentence, integer tensor `[B]` of values from 1 to
            `beam_size`. A sentence gets the result of a beam of its size, which is at most that
            many hypotheses; the time is the same as for `beam_size`. `None`: `beam_size` for all.
        confidence: Whether to also return numbers that tell whether an output is invented, as in
            Whisper: the probability that the inputs contain no speech, if the vocabulary has a
            `no_speech_id`; and the mean log-probability of the tokens after the prompt among those
            that the rules of the model allow.

    Returns:
        Token ids `[B, n_best, L]`, int32, each row ending in `eos_id` and then padding (without
        `eos_id` where the maximum length came first), and scores `[B, n_best]`, float32. The
        hypotheses of a sentence are distinct, the best first. If there are fewer than `n_best`, the
        remaining rows are padding with a score of -1e9.

        With `token_scores`, `alignment` or `confidence` a dictionary: `"tokens"` and `"scores"`;
        `"token_scores"`, float32 `[B, n_best, L]`; `"alignment"`, float32 `[B, n_best, L, S]`, both
        0 for padding; `"no_speech"` and `"mean_log_probability"`, float32 `[B, n_best]`.

    Raises:
        ValueError: If an argument is out of range or unknown, or has the wrong shape.

    Reference: Vaswani et al. (2017), section 6.1; the penalty is Eq. 14 of Wu et al. (2016),
        "Google's Neural Machine Translation System", without coverage.
    """
    _check(beam_size, n_best, length_penalty)
    check_choice("normalization", normalization, NORMALIZATIONS)
    check_choice("stopping", stopping, STOPPINGS)
    predictor = predictor_of(model, alignment)
    length = result_length(predictor, source, min_length, max_length, cache_length)
    cache = cache_of(length, cache_stages, predictor)
    used = None if beam_sizes is None else tf.reshape(tf.cast(beam_sizes, tf.int32), [-1, 1])

    def search(predictor, constraints):
        constraints = with_rules_of(predictor.vocabulary, constraints)
        if constraints is None and predictor.prompts(source) is not None:
            constraints = Constraints()  # prompts may contain tokens that are never emitted
        batch, positions = predictor.sizes(source)
        vocabulary = predictor.vocabulary
        beginning = Beginning.of(vocabulary, source)
        limit = limit_of(max_length, length, batch, predictor, source)
        counts = tf.reshape(predictor.beginning_lengths(source), [-1, 1])  # [B or 1, 1]
        shortest = tf.reshape(tf.cast(min_length, tf.int32), [-1, 1]) + counts
        step = BeamStep(
            predictor,
            beam_size,
            length,
            limit=limit,
            shortest=tf.minimum(shortest, tf.expand_dims(limit, 1)),  # [B, 1]
            penalty=_penalty(length_penalty, normalization, beginning.count),
            by_score=stopping == "score",
            narrowing=stopping == "narrow",
            early_stopping=early_stopping,
            rules=None
            if constraints is None
            else Rules(constraints, vocabulary, length, beginning),
            used=used,
            detects=beginning.detects,
        )
        kept = beam_size if step.by_score else n_best
        prompts = prompts_of(predictor, source, length, step.limit, step.rules)
        state = predictor.begin(source, cache.first(prompts), beam_size)
        read = None if prompts is None else prompts.read(predictor, state)
        no_speech = predictor.no_speech(state) if confidence else None
        details = {"token_scores": token_scores, "sums": confidence}
        state = step.beginning(batch, positions, kept, state, details, read)
        state = cache.run(predictor, step.running, step, state, read)
        rows, scores = tf.nest.map_structure(lambda value: value[:, :n_best], step.results(state))
        attention = step.attended(rows, state.attention)
        mean = ()
        if confidence:
            mean = mean_of_sums(rows.sums, rows.tokens, vocabulary, beginning.count)
        no_speech = () if no_speech is None else _for_each(no_speech, n_best)
        return make_result(rows.tokens, scores, rows.token_scores, attention, no_speech, mean)

    return predictor.searched(search, source, constraints)


def _for_each(values, count):
    """Returns values `[B]` for each of several hypotheses, `[B, count]`."""
    return tf.repeat(tf.expand_dims(values, 1), count, axis=1)


def _penalty(length_penalty, normalization, prompt):
    """Returns the divisor of the scores as a function of a length, `[]` or `[B, 1]`.

    The tokens of a prompt, whose number is `prompt`, an integer or `[B, 1]`, do not count.
    """
    exponent = tf.cast(length_penalty, tf.float32)
    if exponent.shape.rank == 1:
        exponent = tf.expand_dims(exponent, 1)  # [B, 1]
    divisor, is_empty = NORMALIZATIONS[normalization], isinstance(prompt, int) and not prompt

    def penalty(length):
        counted = length if is_empty else tf.maximum(length - prompt, 1)
        return divisor(tf.cast(counted, tf.float32), exponent)

    return penalty


def _check(beam_size, n_best, length_penalty):
    """Checks arguments of `beam_decode`, except the values of tensors, which are not known yet."""
    check_count("beam_size", beam_size)
    check_numbers(BeamSettings, length_penalty=length_penalty)
    if not 1 <= n_best <= beam_size:
        raise ValueError(
            "`n_best` must be between 1 and `beam_size`. "
            f"Received: n_best={n_best}, beam_size={beam_size}."
        )
