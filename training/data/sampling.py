"""Subword regularisation: sentences cut into other pieces in every epoch."""

import itertools
import threading

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.batching import plan_batches
from keras_transformer.training.data.corpus import BUCKETS
from keras_transformer.training.data.stream import Epochs


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
        corpus: The `TokenizedCorpus` of the same examples.
        rows: The `tf.data.Dataset` that it was made from.
        training: The `Training` of its task.
        max_length: Longest text in tokens, as for the corpus.
        alpha: See above; above 0 and below 1.
        seed: Together with the number of the epoch it decides what is drawn.
        cut_source: As for the corpus.

    Reference: Provilkov et al. (2020), BPE-Dropout; Kudo (2018), Subword Regularization.
    """

    def __init__(self, corpus, rows, training, max_length, alpha, seed=0, cut_source=False):
        self._corpus, self._fields = corpus, training.texts
        self._strings = _strings(corpus, rows, training, max_length, cut_source)
        self._max_length, self._alpha, self._seed = max_length, alpha, seed
        self._lock = threading.Lock()  # SentencePiece has one seed for all threads
        self._latest = None  # epoch and what was drawn for it

    def epochs(self, batch_tokens, buckets=BUCKETS):
        """Returns the `Epochs` of a training, each cut into other pieces.

        Args:
            batch_tokens, buckets: As in `TokenizedCorpus.batches`.
        """
        with tf.init_scope():
            examples = self._corpus.drawn(0).numpy()
        steps = len(self._cut(self._drawn(0), examples, batch_tokens, buckets).starts)

        def batches(epoch, select):
            def plan(epoch, examples):
                return self._plan(int(epoch), examples, batch_tokens, buckets, steps)

            types = [tf.int64] * (4 + 2 * len(self._fields))
            arrays = tf.numpy_function(plan, [epoch, self._corpus.drawn(epoch)], types)
            for array in arrays:
                array.set_shape([None])
            order, starts, rows, widths, *ragged = arrays
            pairs = zip(self._fields, ragged[::2], ragged[1::2], strict=True)
            columns = self._corpus.replaced(
                {
                    name: tf.RaggedTensor.from_row_splits(values, splits, validate=False)
                    for name, values, splits in pairs
                }
            )
            cuts = tf.data.Dataset.from_tensor_slices((starts, rows, widths))
            return select(cuts).map(
                lambda start, count, width: self._corpus.pad(
                    columns, order[start : start + count], width
                ),
                num_parallel_calls=tf.data.AUTOTUNE,
            )

        return Epochs(steps, batches)

    def _plan(self, epoch, examples, batch_tokens, buckets, steps):
        """What the batches of an epoch are made of, arrays."""
        texts = self._drawn(epoch)
        plan = self._cut(texts, examples, batch_tokens, buckets)
        random = np.random.default_rng([self._seed, epoch])
        order = np.concatenate([random.permutation(plan.order[a:b]) for a, b in plan.segments])
        order = examples[order]
        sequence = np.resize(random.permutation(len(plan.starts)), steps)
        cuts = (values[sequence] for values in (plan.starts, plan.rows, plan.widths))
        arrays = (order, *cuts, *itertools.chain(*texts))
        return [np.asarray(array, np.int64) for array in arrays]

    def _cut(self, texts, examples, batch_tokens, buckets):
        lengths = np.max([np.diff(splits) for _, splits in texts], axis=0)
        return plan_batches(lengths[examples], batch_tokens, buckets)

    def _drawn(self, epoch):
        """What `_draw` returns, remembered for the latest epoch."""
        with self._lock:
            if self._latest is None or self._latest[0] != epoch:
                self._latest = epoch, self._draw(epoch)
            return self._latest[1]

    def _draw(self, epoch):
        """The ids and the row splits of every text in an epoch."""
        seeds = np.random.SeedSequence([self._seed, epoch]).generate_state(len(self._fields))
        return [
            self._segment(field, strings, int(seed) % 2**31)
            for field, strings, seed in zip(
                self._fields.values(), self._strings, seeds, strict=True
            )
        ]

    def _segment(self, field, strings, seed):
        drawn = field.tokenizer.sample(strings, self._alpha, seed)
        for number, ids in enumerate(drawn):
            ids.append(field.tokenizer.eos_id)
            if len(ids) > self._max_length:
                usual = field.cut(field.encode([strings[number]]), self._max_length)
                drawn[number] = usual.to_list()[0]
        splits = np.cumsum([0, *map(len, drawn)])
        return np.fromiter((token for ids in drawn for token in ids), np.int64, splits[-1]), splits


def _strings(corpus, rows, training, max_length, cut_source):
    """The texts of the examples that the corpus holds, a list of strings for each column."""
    texts = training.texts
    kept_strings = [[] for _ in texts]
    for batch in rows.batch(1024).prefetch(1):
        named = dict(zip(training.columns, batch, strict=True))
        columns = [named[name] for name in texts]
        lengths = np.stack(
            [
                field.encode(column).row_lengths().numpy()
                for field, column in zip(texts.values(), columns, strict=True)
            ]
        )
        if cut_source:
            lengths[0] = np.minimum(lengths[0], max_length)
        kept = (lengths.min(axis=0) > 1) & (lengths.max(axis=0) <= max_length)
        for strings, column in zip(kept_strings, columns, strict=True):
            strings += [text.decode("utf-8", "replace") for text in column.numpy()[kept]]
    if len(kept_strings[0]) != corpus.size:
        raise ValueError(
            "`rows` must be those that `corpus` was made from. "
            f"Received: {len(kept_strings[0])} examples, and a corpus of {corpus.size}."
        )
    return kept_strings
