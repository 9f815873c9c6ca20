"""Beam search with a key/value cache (section 6.1)."""

import tensorflow as tf

from keras_transformer.checks import check_choice, check_count
from keras_transformer.decoding.beam_step import BeamStep
from keras_transformer.decoding.constraints import Rules
from keras_transformer.decoding.loop import (
    STAGES,
    check_lengths,
    in_stages,
    limit_of,
    make_result,
    stages,
)
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.search_settings import (
    NORMALIZATIONS,
    STOPPINGS,
    BeamSettings,
    check_numbers,
)


def beam_decode(
    model,
    source,
    beam_size=4,
    n_best=1,
    length_penalty=0.6,
    normalization="gnmt",
    min_length=1,
    max_length=None,
    cache_length=None,
    stopping="count",
    early_stopping=True,
    constraints=None,
    token_scores=False,
    alignment=None,
    cache_stages=STAGES,
    beam_sizes=None,
):
    """Keeps the `beam_size` most probable hypotheses at each step; ranks those that end by score.

    The score of a hypothesis of `n` tokens, `eos_id` included, is the sum of their
    log-probabilities, divided by `((5 + n) / 6) ** length_penalty` (`"gnmt"`), by
    `n ** length_penalty` (`"power"`), by `n` (`"average"`) or by nothing (`"none"`). A hypothesis
    ends when its `eos_id` is among the best `beam_size` continuations of all; then it is put aside,
    unchanged. A sentence is done when `beam_size` hypotheses have ended or its longest length is
    reached. Hypotheses that had not ended there rank after all that had. `pad_id` and `bos_id` are
    never emitted.

    With `stopping="score"` a sentence goes on after that, with the best `beam_size` hypotheses that
    have ended put aside, until the score of the best running one, divided by its present length, is
    not above the lowest of theirs; and those that the longest length cuts rank by their scores
    among the others. That is beam search as in Hugging Face's `generate(early_stopping=False)`.

    With `stopping="narrow"` a hypothesis that ends leaves its place empty: one less runs from then
    on, and a sentence is done when none does; those that the longest length cuts rank by their
    scores among the others. That is beam search as in Marian.

    A loop in the graph with a cache of fixed size in each of its stages: works eagerly, in a
    `tf.function`, under XLA, in a SavedModel and in LiteRT. The result of a sentence does not
    depend on the others in its batch. With a beam of 1 it is that of `greedy_decode`.

    Args:
        model: A `Transformer`, or any `Predictor`: several models, or one of another kind.
        source: Token ids `[B, S]`, integer, each row ending in `eos_id` and then padding; or
            whatever the predictor begins with.
        beam_size: Hypotheses N that run at a time.
        n_best: Hypotheses M that are returned for each sentence, at most `beam_size`.
        length_penalty: Exponent of `"gnmt"` and `"power"`, at least 0: number, or tensor, scalar or
            `[B]`.
        normalization: `"gnmt"`, `"power"`, `"average"` or `"none"`.
        min_length: Shortest output in tokens, `eos_id` included: integer, or tensor, scalar or
            `[B]`. An end that the constraints force comes earlier.
        max_length: Longest output in tokens, `eos_id` included: integer, or tensor, scalar or
            `[B]`; a tensor is cut at `cache_length`. `None`: `cache_length`.
        cache_length: Length L of the cache and of the result, an integer. `None`: `max_length`
            where that is an integer, else the model's `max_length`.
        stopping: `"count"`, `"score"` or `"narrow"`.
        early_stopping: But for `"score"`, whether a sentence is also done when no running
            hypothesis can still get into the best `n_best`. The result is the same without, only
            later.
        constraints: `Constraints` of the outputs.
        token_scores: Whether to return the log-probability of each token as well.
        alignment: A pair of integers, layer and head of the decoder: whether to return what each
            token attended to in the source as well. `None` in place of the head: the mean of all.
            A predictor with weights returns it in any case.
        cache_stages: Positions for which the cache has room at first, and then, so that a step
            costs what the outputs are long. Empty: one loop instead of a few, a smaller graph.
        beam_sizes: Hypotheses of each sentence's own search, integer tensor `[B]` of values from 1
            to `beam_size`: what it returns is what a beam of that size finds, and no more than so
            many. The time is that of `beam_size`. `None`: `beam_size` for all.

    Returns:
        Token ids `[B, n_best, L]`, int32, each row ending in `eos_id` and then padding (without
        `eos_id` where the limit came first), and scores `[B, n_best]`, float32; distinct, the best
        first. Where there are fewer than `n_best`, rows of padding with a score of -1e9.

        With `token_scores` or `alignment` a dictionary: `"tokens"` and `"scores"`;
        `"token_scores"`, float32 `[B, n_best, L]`; `"alignment"`, float32 `[B, n_best, L, S]`.
        Both are 0 for padding.

    Raises:
        ValueError: If an argument is out of range or unknown, or has the wrong shape.

    Reference: Vaswani et al. (2017), section 6.1; the penalty is Eq. 14 of Wu et al. (2016),
        "Google's Neural Machine Translation System", without coverage.
    """
    _check(beam_size, n_best, length_penalty)
    check_choice("normalization", normalization, NORMALIZATIONS)
    check_choice("stopping", stopping, STOPPINGS)
    predictor = predictor_of(model, alignment)
    length = check_lengths(predictor.max_length, min_length, max_length, cache_length)
    ends = stages(length, cache_stages, predictor.grows)
    used = None if beam_sizes is None else tf.reshape(tf.cast(beam_sizes, tf.int32), [-1, 1])

    def search(predictor, constraints):
        batch, positions = predictor.sizes(source)
        vocabulary = predictor.vocabulary
        step = BeamStep(
            predictor,
            beam_size,
            length,
            limit=limit_of(max_length, length, batch),
            shortest=tf.reshape(tf.cast(min_length, tf.int32), [-1, 1]),  # [B or 1, 1]
            penalty=_penalty(length_penalty, normalization),
            by_score=stopping == "score",
            narrowing=stopping == "narrow",
            early_stopping=early_stopping,
            rules=None if constraints is None else Rules(constraints, vocabulary, length),
            used=used,
        )
        state = predictor.begin(source, ends[0], beam_size)
        kept = beam_size if step.by_score else n_best
        beginning = step.beginning(batch, positions, kept, state, token_scores)
        state = in_stages(predictor, step.running, step, beginning, ends)
        rows, scores = tf.nest.map_structure(lambda value: value[:, :n_best], step.results(state))
        attention = step.attended(rows, state.attention)
        return make_result(rows.tokens, scores, rows.token_scores, attention)

    return predictor.searched(search, source, constraints)


def _penalty(length_penalty, normalization):
    """The divisor of sums of log-probabilities: a function of a length, `[]` or `[B, 1]`."""
    exponent = tf.cast(length_penalty, tf.float32)
    if exponent.shape.rank == 1:
        exponent = tf.expand_dims(exponent, 1)  # [B, 1]
    divisor = NORMALIZATIONS[normalization]
    return lambda length: divisor(tf.cast(length, tf.float32), exponent)


def _check(beam_size, n_best, length_penalty):
    """Raises unless `beam_decode` takes these. The values of tensors cannot be checked here."""
    check_count("beam_size", beam_size)
    check_numbers(BeamSettings, length_penalty=length_penalty)
    if not 1 <= n_best <= beam_size:
        raise ValueError(
            "`n_best` must be between 1 and `beam_size`. "
            f"Received: n_best={n_best}, beam_size={beam_size}."
        )
