"""Scores that the model in memory gives to outputs of other programs: teacher forcing."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.model_predictor import predictor_of
from keras_transformer.decoding.predictor import NEVER
from keras_transformer.decoding.repetition import Repetition
from keras_transformer.export.runtime import padded

# Rounding of a float32, relative to the number.
ROUNDING = 2.0**-24
# Maximum error of a token's log-probability, in units of `ROUNDING` times the largest logit at the
# position, or times the logarithm of the sum of their exponentials if that is larger. Measured
# against a copy of the model in float64, the maximum over all tokens: TensorFlow 1.4 to 5.0, XLA
# 1.4 to 5.0, CTranslate2 2.0 to 5.0, with AVX-512 as well as with AVX2, for the demo's model and
# random models of up to 9 layers. The error grows with the square root of the depth. For
# comparison: with an epsilon of 1e-5 instead of 1e-6 in layer normalisation it is 9 (the demo's
# model) to 64.
MARGIN = 32
BATCH_SIZE = 8  # outputs
LOGITS = 2**25  # maximum size of the logits [B, T, V], which are held several times

IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = tf.TensorSpec([None], tf.int32)


@dataclasses.dataclass(frozen=True)
class Reading:
    """The model in memory's score of a given output.

    Args:
        score: Sum of the log-probabilities of its tokens.
        tokens: Number of its tokens.
        gap: Largest difference between the logits of the token that greedy search chooses and of
            the given token at the same position, after the repetition penalty.
        rounding: Maximum error of the log-probability of a token because of rounding.
    """

    score: float
    tokens: int
    gap: float
    rounding: float


class Scorer:
    """Scores outputs with the model in memory.

    Scores are kept, because several programs and signatures return the same output.

    Args:
        pipeline: A `Generator` whose model computes in float32.
    """

    def __init__(self, pipeline):
        self._pipeline, self._graphs, self._readings = pipeline, {}, {}

    def _graph(self, penalty, of_beam):
        """Returns the graph that reads outputs of a search with a repetition penalty."""
        predictor = predictor_of(self._pipeline.searched)
        repetition = None if penalty == 1 else Repetition(penalty, predictor.vocabulary)

        def read(source, target, lengths, limits):
            begin = tf.fill([tf.shape(target)[0], 1], predictor.vocabulary.bos_id)
            shifted = tf.concat([begin, target[:, :-1]], axis=1)  # [B, T]
            logits = predictor.logits(source, shifted)  # [B, T, V]
            positions = tf.expand_dims(tf.range(tf.shape(target)[1]), 0)  # [1, T]
            last = tf.equal(positions, tf.expand_dims(limits - 1, 1))  # [B, T]
            ends = tf.equal(positions, 0), last
            logits, choice, scored = (
                predictor.vocabulary.with_forced(values, *ends)
                for values in (logits, *_penalised(logits, target, repetition, of_beam))
            )
            given = tf.gather(scored, target, batch_dims=2)  # [B, T]
            chosen = tf.gather(choice, target, batch_dims=2)  # [B, T]
            highest = tf.reduce_max(logits, axis=-1)  # [B, T]
            # Minimum over the tokens that are possible at the position; others are not computed.
            possible = tf.where(logits > NEVER / 2, logits, float("inf"))
            lowest = tf.reduce_min(possible, axis=-1)  # [B, T]
            total = tf.reduce_logsumexp(logits, axis=-1)  # [B, T]
            here = tf.sequence_mask(lengths, tf.shape(target)[1])  # [B, T]
            columns = (
                given - total,
                tf.reduce_max(choice, axis=-1) - chosen,
                # Even if all logits are small, the logarithm of their number is not.
                tf.maximum(tf.maximum(highest, -lowest), tf.abs(total)),
            )
            gains, gaps, sizes = (tf.where(here, column, 0.0) for column in columns)
            return (
                tf.reduce_sum(gains, axis=1),
                tf.reduce_max(gaps, axis=1),
                ROUNDING * MARGIN * tf.reduce_max(sizes, axis=1),
            )

        signature = [IDS, IDS, LENGTHS, LENGTHS]
        return tf.function(read, input_signature=signature, autograph=False)

    def read(self, sources, targets, limits=None, search=Greedy()) -> list:
        """Returns a `Reading` of each output.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            targets: List of tuples of token ids.
            limits: List of integers, the maximum length of each output, at which a forced end has a
                probability of 1. `None`: the model's maximum length for all.
            search: The search of all outputs, or of each, whose repetition penalty counts.
        """
        # Guessed tokens of a text can be more than the model has positions.
        longest = self._pipeline.model.config.max_length
        limits = [longest] * len(targets) if limits is None else limits
        searches = search if isinstance(search, list) else [search] * len(targets)
        outputs = [
            (tuple(source), tuple(target[:longest]), limit, _kind(one))
            for source, target, limit, one in zip(sources, targets, limits, searches, strict=True)
        ]
        new = dict.fromkeys(output for output in outputs if output not in self._readings)
        for batch in self._batches(sorted(new, key=lambda output: (output[3], len(output[1])))):
            self._readings.update(zip(batch, self._read_batch(batch), strict=True))
        return [self._readings[output] for output in outputs]

    def _batches(self, outputs):
        """Yields batches of outputs of one kind of search, with at most `LOGITS` logits.

        The outputs are sorted by that and by length.
        """
        size = self._pipeline.model.config.output_size
        batch = []
        for output in outputs:
            logits = (len(batch) + 1) * len(output[1]) * size
            full = len(batch) == BATCH_SIZE or logits > LOGITS
            if batch and (full or output[3] != batch[0][3]):
                yield batch
                batch = []
            batch.append(output)
        if batch:
            yield batch

    def _read_batch(self, outputs):
        sources, targets, limits, (kind, *_) = zip(*outputs, strict=True)
        lengths = [len(target) for target in targets]
        if kind not in self._graphs:
            self._graphs[kind] = self._graph(*kind)
        read = self._graphs[kind]
        columns = read(self._padded(sources), self._padded(targets), lengths, list(limits))
        columns = [column.numpy().tolist() for column in columns]
        for length, score, gap, rounding in zip(lengths, *columns, strict=True):
            yield Reading(score, length, gap, rounding)

    def _padded(self, rows):
        shape = [max(1, *map(len, rows))]
        return padded(rows, self._pipeline.source_tokenizer.pad_id, shape).astype(np.int32)


def _kind(search):
    """Returns how outputs of a search are read: its repetition penalty, and whether of a beam."""
    return getattr(search, "repetition_penalty", 1.0), isinstance(search, Beam)


def _penalised(logits, target, repetition, of_beam):
    """Returns the logits that a search chooses by, and those that its scores add up.

    Both are `[B, T, V]`.

    Args:
        logits: `[B, T, V]`.
        target: Token ids `[B, T]`.
        repetition: The `Repetition`, or `None`.
        of_beam: Whether the search is a beam, whose scores include the penalty.
    """
    if repetition is None:
        return logits, logits
    length = tf.shape(target)[1]
    rows = tf.repeat(tf.expand_dims(target, 1), length, axis=1)  # [B, T, T]
    before = tf.range(length) < tf.expand_dims(tf.range(length), 1)  # [T, T]
    seen = repetition.seen(rows, before)  # [B, T, V]
    if not of_beam:
        return repetition.of_logits(logits, seen), logits
    total = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)  # [B, T, 1]
    penalised = repetition.of_log_probabilities(logits, seen, total)
    return penalised, penalised
