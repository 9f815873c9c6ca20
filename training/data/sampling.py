"""Subword regularisation: sentences cut into other pieces in every epoch."""

import threading

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.batching import plan_batches


class SubwordSampler:
    """Makes the batches of an epoch from segmentations that are drawn for it.

    With a BPE vocabulary every merge is left out with probability `alpha` (BPE dropout); with a
    unigram vocabulary a segmentation is drawn with its probability to the power of `alpha`. Either
    way a model sees rare pieces more often, and learns which pieces make up a word.

    Every epoch has as many batches as epoch 0, so that any update's place is known. What is drawn
    fills a batch more or less now and then: such a batch is left out or seen twice, each time
    another one. A sentence that would grow beyond `max_length` keeps its usual pieces.

    The sentences, and the pieces of an epoch while they are drawn, are Python objects in memory:
    some 100 bytes a token, for corpora up to a few million pairs.

    Args:
        corpus: The `TokenizedCorpus` of the same pairs.
        pairs: The `tf.data.Dataset` of pairs of strings that it was made from.
        tokenizer: Its `Tokenizer`.
        max_length: Longest side of a pair in tokens, as for the corpus.
        alpha: See above; above 0 and below 1.
        seed: Together with the number of the epoch it decides what is drawn.

    Reference: Provilkov et al. (2020), BPE-Dropout; Kudo (2018), Subword Regularization.
    """

    def __init__(self, corpus, pairs, tokenizer, max_length, alpha, seed=0):
        self._corpus = corpus
        self._tokenizer = tokenizer
        self._strings = _strings(corpus, pairs, tokenizer, max_length)
        self._max_length, self._alpha, self._seed = max_length, alpha, seed
        self._lock = threading.Lock()  # SentencePiece has one seed for all threads
        self._latest = None  # epoch and what was drawn for it

    def batches(self, batch_tokens, epoch, skip=0, buckets=16):
        """Returns the batches of one epoch, as `TokenizedCorpus.batches` does.

        Args:
            batch_tokens, buckets: As there.
            epoch, skip: Integers or scalar tensors.

        Returns:
            A `tf.data.Dataset`.
        """
        steps = self.steps(batch_tokens, buckets)

        def plan(epoch, pairs):
            return self._plan(int(epoch), pairs, batch_tokens, buckets, steps)

        arrays = tf.numpy_function(plan, [epoch, self._corpus.drawn(epoch)], [tf.int64] * 8)
        order, source_ids, source_splits, target_ids, target_splits, *cuts = arrays
        for array in arrays:
            array.set_shape([None])
        sides = [
            tf.RaggedTensor.from_row_splits(ids, splits, validate=False)
            for ids, splits in ((source_ids, source_splits), (target_ids, target_splits))
        ]
        return (
            tf.data.Dataset.from_tensor_slices(tuple(cuts))
            .skip(tf.cast(skip, tf.int64))
            .map(
                lambda start, rows, width: self._corpus.pad(
                    *sides, order[start : start + rows], width
                ),
                num_parallel_calls=tf.data.AUTOTUNE,
            )
        )

    def steps(self, batch_tokens, buckets=16):
        """Returns the number of batches of an epoch."""
        with tf.init_scope():
            pairs = self._corpus.drawn(0).numpy()
        return len(self._cut(self._drawn(0), pairs, batch_tokens, buckets).starts)

    def _plan(self, epoch, pairs, batch_tokens, buckets, steps):
        sides = self._drawn(epoch)
        plan = self._cut(sides, pairs, batch_tokens, buckets)
        random = np.random.default_rng([self._seed, epoch])
        order = np.concatenate([random.permutation(plan.order[a:b]) for a, b in plan.segments])
        order = pairs[order]
        sequence = np.resize(random.permutation(len(plan.starts)), steps)
        cuts = (values[sequence] for values in (plan.starts, plan.rows, plan.widths))
        arrays = (order, *sides[0], *sides[1], *cuts)
        return [np.asarray(array, np.int64) for array in arrays]

    def _cut(self, sides, pairs, batch_tokens, buckets):
        lengths = np.maximum(*(np.diff(splits) for _, splits in sides))
        return plan_batches(lengths[pairs], batch_tokens, buckets)

    def _drawn(self, epoch):
        """What `_draw` returns, remembered for the latest epoch."""
        with self._lock:
            if self._latest is None or self._latest[0] != epoch:
                self._latest = epoch, self._draw(epoch)
            return self._latest[1]

    def _draw(self, epoch):
        """The ids and the row splits of both sides in an epoch."""
        seeds = np.random.SeedSequence([self._seed, epoch]).generate_state(2)
        return [
            self._segment(strings, int(seed) % 2**31)
            for strings, seed in zip(self._strings, seeds, strict=True)
        ]

    def _segment(self, strings, seed):
        drawn = self._tokenizer.sample(strings, self._alpha, seed)
        for number, ids in enumerate(drawn):
            ids.append(self._tokenizer.eos_id)
            if len(ids) > self._max_length:
                drawn[number] = self._tokenizer.encode([strings[number]]).to_list()[0]
        splits = np.cumsum([0, *map(len, drawn)])
        return np.fromiter((token for ids in drawn for token in ids), np.int64, splits[-1]), splits


def _strings(corpus, pairs, tokenizer, max_length):
    """Both sides of the pairs that the corpus holds, as lists of strings."""
    sides = ([], [])
    for both in pairs.batch(1024).prefetch(1):
        lengths = np.stack([tokenizer.encode(texts).row_lengths().numpy() for texts in both])
        kept = (lengths.min(axis=0) > 1) & (lengths.max(axis=0) <= max_length)
        for side, texts in zip(sides, both, strict=True):
            side += [text.decode("utf-8", "replace") for text in texts.numpy()[kept]]
    if len(sides[0]) != corpus.size:
        raise ValueError(
            "`pairs` must be those that `corpus` was made from. "
            f"Received: {len(sides[0])} pairs, and a corpus of {corpus.size}."
        )
    return sides
