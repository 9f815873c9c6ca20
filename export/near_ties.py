"""Near ties: whether an export differs from the model in memory by rounding alone.

Two programs add up the same numbers in another order, on another processor in yet another. So their
scores differ in the last digits, and where two tokens or two hypotheses are nearly tied, the
searches may take either. Teacher forcing separates that from a mistake: the model in memory is
given the tokens of the export's output, and then

- it must find the log-probability that the export reports,
- in greedy search, no token that is more probable than the one taken, at any position,
- in a beam, a hypothesis as good as its own of the same rank,

each within what rounding can do.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Greedy
from keras_transformer.decoding.constraints import NEVER
from keras_transformer.decoding.hypotheses import exists
from keras_transformer.decoding.predictor import predictor_of
from keras_transformer.decoding.search import Search

# Rounding of a float32, relative to the number.
ROUNDING = 2.0**-24
# What the log-probability of a token may be off by, in units of `ROUNDING` times the largest logit
# there, or the logarithm of their sum where that is larger. Measured against a copy of the model in
# float64, the largest over all tokens: TensorFlow 1.4 to 5.0, XLA 1.4 to 5.0, CTranslate2 2.0 to
# 5.0, with AVX-512 and with AVX2 alike, the demo's model and random ones of up to 9 layers. It
# grows with the root of the depth. For comparison: with an epsilon of 1e-5 in place of 1e-6 in
# layer normalisation it is 9 (the demo's) to 64.
MARGIN = 32
BATCH_SIZE = 8  # of whole logits [B, T, V]

IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = tf.TensorSpec([None], tf.int32)


@dataclasses.dataclass(frozen=True)
class Reading:
    """What the model in memory makes of an output that is given.

    Args:
        score: Sum of the log-probabilities of its tokens.
        tokens: Their number.
        gap: By how much the most probable token was more probable than the one given, as a
            difference of log-probabilities, where that is largest.
        rounding: What rounding can change the log-probability of a token by.
    """

    score: float
    tokens: int
    gap: float
    rounding: float


class Teacher:
    """Reads outputs with the model in memory.

    Args:
        translator: A `Generator` whose model computes in float32.
    """

    def __init__(self, translator):
        self._translator = translator
        predictor = predictor_of(translator.searched)

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

    def read(self, sources, targets, limits=None):
        """Returns a `Reading` of each output.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            targets: List of tuples of token ids.
            limits: List of integers, most tokens of each: a forced end is certain there. `None`:
                the model's for all.
        """
        # A guess of the tokens of a text can have more of them than there are positions.
        longest = self._translator.model.config.max_length
        targets = [target[:longest] for target in targets]
        limits = [longest] * len(targets) if limits is None else limits
        readings = [None] * len(sources)
        order = sorted(range(len(sources)), key=lambda number: len(targets[number]))
        for begin in range(0, len(order), BATCH_SIZE):
            numbers = order[begin : begin + BATCH_SIZE]
            lengths = [len(targets[number]) for number in numbers]
            batch = (
                self._padded([rows[number] for number in numbers]) for rows in (sources, targets)
            )
            ends = [limits[number] for number in numbers]
            columns = (column.numpy().tolist() for column in self._read(*batch, lengths, ends))
            for number, length, (score, gap, rounding) in zip(
                numbers, lengths, zip(*columns, strict=True), strict=True
            ):
                readings[number] = Reading(score, length, gap, rounding)
        return readings

    def _padded(self, rows):
        pad_id = self._translator.source_tokenizer.pad_id
        ids = np.full((len(rows), max(1, *map(len, rows))), pad_id, np.int32)
        for line, row in zip(ids, rows, strict=True):
            line[: len(row)] = row
        return ids


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two outputs for the same sentence, by the model in memory and by an export.

    Args:
        search: The `Search`.
        rank: Rank of the hypothesis, from 0.
        sentence: The sentence.
        limit: Most tokens of an output.
        eos_id: The end of an output.
        expected: `Output` of the model in memory.
        exported: `Output` of the export, with tokens.
        read_expected: `Reading` of the one.
        read_exported: `Reading` of the other.
    """

    search: Search
    rank: int
    sentence: str
    limit: int
    eos_id: int
    expected: object
    exported: object
    read_expected: Reading
    read_exported: Reading

    @property
    def same(self):
        """Whether both are the same translation."""
        return (self.expected.text, self.expected.truncated) == (
            self.exported.text,
            self.exported.truncated,
        )

    @property
    def is_padded(self):
        """Whether the model in memory emitted `pad_id`: nothing else stops without an end."""
        tokens, score = self.expected.tokens, self.expected.score
        if self.expected.guessed:
            return False
        if not tokens:
            return exists(score) and score != 0
        return tokens[-1] != self.eos_id and len(tokens) < self.limit

    @property
    def score_error(self):
        """How wrong the score is that the export reports, in nats per token."""
        penalty = self.search.penalty(self.read_exported.tokens)
        return (
            abs(self.exported.score * penalty - self.read_exported.score)
            / self.read_exported.tokens
        )

    def mistake(self):
        """Returns what is wrong with the export's output, as a clause; `None` if nothing is."""
        if self.expected.truncated != self.exported.truncated:
            return "only one of them read the whole source"
        if bool(self.expected.tokens) != bool(self.exported.tokens):
            return "only one of them has such a hypothesis"
        guessed = self.expected.guessed or self.exported.guessed
        if self.expected.tokens == self.exported.tokens and not self.same and not guessed:
            return "the same tokens are written in another way"
        if not self.exported.tokens:
            same = self.expected.score == self.exported.score
            return None if same else f"its score is {self.exported.score:.7g}"
        if self.same and guessed:
            return self._other_score()
        return self._wrong_score() or self._wrong_end()

    def other_choice(self):
        """Returns how a search chose otherwise without a near tie, as a clause; `None` if not."""
        guessed = self.expected.guessed or self.exported.guessed
        if self.exported.tokens == self.expected.tokens or self.same and guessed:
            return None
        ours, theirs = self.read_expected, self.read_exported
        if isinstance(self.search, Greedy):
            gap, bound = theirs.gap, 2 * theirs.rounding
        else:
            pair = [
                reading.score / self.search.penalty(reading.tokens) for reading in (ours, theirs)
            ]
            gap, bound = (
                abs(pair[0] - pair[1]),
                _bound(ours, self.search) + _bound(theirs, self.search),
            )
        if gap <= bound:
            return None
        return f"the model in memory prefers its own by {gap:.2g}; rounding explains {bound:.1g}"

    def _other_score(self):
        """Of the same text, whose tokens are not known for certain."""
        bound = 2 * _bound(self.read_exported, self.search)
        if abs(self.exported.score - self.expected.score) <= bound:
            return None
        return (
            f"its score is {self.exported.score:.7g}, not {self.expected.score:.7g}; rounding "
            f"explains {bound:.1g}"
        )

    def _wrong_score(self):
        reading = self.read_exported
        scored = reading.score / self.search.penalty(reading.tokens)
        bound = _bound(reading, self.search)
        if abs(self.exported.score - scored) <= bound:
            return None
        return (
            f"its score is {self.exported.score:.7g}, where the model in memory finds {scored:.7g} "
            f"for the same tokens; rounding explains {bound:.1g}"
        )

    def _wrong_end(self):
        tokens, limit = self.exported.tokens, self.limit
        ended = tokens[-1] == self.eos_id
        if len(tokens) > limit or not ended and len(tokens) < limit:
            return f"it stops after {len(tokens)} tokens, where the limit is {limit}"
        return None


def _bound(reading, search):
    """What rounding can change a score by: every token adds its part."""
    return reading.tokens * reading.rounding / search.penalty(reading.tokens)
