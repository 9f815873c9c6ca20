"""Scores of given outputs by the model in memory: teacher forcing."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.constraints import NEVER
from keras_transformer.decoding.model_predictor import predictor_of

# Rounding of a float32, relative to the number.
ROUNDING = 2.0**-24
# What the log-probability of a token may be off by, in units of `ROUNDING` times the largest logit
# there, or the logarithm of their sum where that is larger. Measured against a copy of the model in
# float64, the largest over all tokens: TensorFlow 1.4 to 5.0, XLA 1.4 to 5.0, CTranslate2 2.0 to
# 5.0, with AVX-512 and with AVX2 alike, the demo's model and random ones of up to 9 layers. It
# grows with the root of the depth. For comparison: with an epsilon of 1e-5 in place of 1e-6 in
# layer normalisation it is 9 (the demo's) to 64.
MARGIN = 32
BATCH_SIZE = 8  # outputs at a time
LOGITS = 2**25  # maximum size of a tensor of logits [B, T, V], of which several exist at a time

IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = tf.TensorSpec([None], tf.int32)


@dataclasses.dataclass(frozen=True)
class Reading:
    """Score of a given output by the model in memory.

    Args:
        score: Sum of the log-probabilities of its tokens.
        tokens: Number of its tokens.
        gap: Largest difference of log-probabilities between the most probable token and the given
            one.
        rounding: Largest change of the log-probability of a token by rounding.
    """

    score: float
    tokens: int
    gap: float
    rounding: float


class Scorer:
    """Scores outputs with the model in memory.

    Each distinct output is scored only once, as several programs and signatures return the same.

    Args:
        pipeline: A `Generator` whose model computes in float32.
    """

    def __init__(self, pipeline):
        self._pipeline = pipeline
        predictor = predictor_of(pipeline.searched)

        def read(source, target, lengths, limits):
            begin = tf.fill([tf.shape(target)[0], 1], predictor.vocabulary.bos_id)
            shifted = tf.concat([begin, target[:, :-1]], axis=1)  # [B, T]
            logits = predictor.logits(source, shifted)  # [B, T, V]
            last = tf.equal(tf.range(tf.shape(target)[1]), tf.expand_dims(limits - 1, 1))  # [B, T]
            logits = predictor.vocabulary.with_forced_end(logits, last)
            given = tf.gather(logits, target, batch_dims=2)  # [B, T]
            highest = tf.reduce_max(logits, axis=-1)  # [B, T]
            # Of the tokens that are possible there: the others were not computed.
            possible = tf.where(logits > NEVER / 2, logits, float("inf"))
            lowest = tf.reduce_min(possible, axis=-1)  # [B, T]
            total = tf.reduce_logsumexp(logits, axis=-1)  # [B, T]
            here = tf.sequence_mask(lengths, tf.shape(target)[1])  # [B, T]
            columns = (
                given - total,
                highest - given,
                # Logits may all be small; the logarithm of their number is not.
                tf.maximum(tf.maximum(highest, -lowest), tf.abs(total)),
            )
            gains, gaps, sizes = (tf.where(here, column, 0.0) for column in columns)
            return (
                tf.reduce_sum(gains, axis=1),
                tf.reduce_max(gaps, axis=1),
                ROUNDING * MARGIN * tf.reduce_max(sizes, axis=1),
            )

        signature = [IDS, IDS, LENGTHS, LENGTHS]
        self._read = tf.function(read, input_signature=signature, autograph=False)
        self._readings = {}

    def read(self, sources, targets, limits=None):
        """Returns a `Reading` of each output.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            targets: List of tuples of token ids.
            limits: List of integers, most tokens of each: a forced end is certain there. `None`:
                the model's for all.
        """
        # A guess of the tokens of a text can have more of them than there are positions.
        longest = self._pipeline.model.config.max_length
        limits = [longest] * len(targets) if limits is None else limits
        outputs = [
            (tuple(source), tuple(target[:longest]), limit)
            for source, target, limit in zip(sources, targets, limits, strict=True)
        ]
        new = dict.fromkeys(output for output in outputs if output not in self._readings)
        for batch in self._batches(sorted(new, key=lambda output: len(output[1]))):
            self._readings.update(zip(batch, self._read_batch(batch), strict=True))
        return [self._readings[output] for output in outputs]

    def _batches(self, outputs):
        """Divides outputs, the shortest first, so that no batch has too many logits."""
        size = self._pipeline.model.config.output_size
        batch = []
        for output in outputs:
            logits = (len(batch) + 1) * len(output[1]) * size
            if batch and (len(batch) == BATCH_SIZE or logits > LOGITS):
                yield batch
                batch = []
            batch.append(output)
        if batch:
            yield batch

    def _read_batch(self, outputs):
        sources, targets, limits = zip(*outputs, strict=True)
        lengths = [len(target) for target in targets]
        columns = self._read(self._padded(sources), self._padded(targets), lengths, list(limits))
        columns = [column.numpy().tolist() for column in columns]
        for length, score, gap, rounding in zip(lengths, *columns, strict=True):
            yield Reading(score, length, gap, rounding)

    def _padded(self, rows):
        pad_id = self._pipeline.source_tokenizer.pad_id
        ids = np.full((len(rows), max(1, *map(len, rows))), pad_id, np.int32)
        for line, row in zip(ids, rows, strict=True):
            line[: len(row)] = row
        return ids
