"""Subword regularisation: words are split into different tokens in every epoch."""

import threading

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.batching import BUCKETS, choose_widths, plan_batches
from keras_transformer.training.data.permutation import key_of, permuted
from keras_transformer.training.data.stream import Epochs, unconverted

WINDOW = 2**16  # maximum number of examples whose tokens are in memory at a time
WINDOWS = 5  # the key for the order in which examples are assigned to windows


class SubwordSampler:
    """Batches of an epoch with random segmentations of its texts.

    With a BPE vocabulary every merge is skipped with probability `alpha` (BPE dropout); with a
    unigram vocabulary a segmentation is drawn with its probability to the power of `alpha`. In both
    cases a model sees rare tokens more often, and learns which tokens make up a word.

    The examples of an epoch are drawn in windows of at most `WINDOW`; only the tokens of a window
    are in memory, and strings are read from the store. Every window has as many batches as the
    first window of epoch 0, so that an update determines its window and batch. Random segmentations
    sometimes fill one batch more or less: then a random batch is skipped or used twice. A sentence
    that would become longer than `max_length` keeps its usual tokens.

    Args:
        corpus: A `Corpus` whose store keeps the strings of the training's `texts`.
        training: The `Training` of its task.
        max_length: Maximum length of a text in tokens, as for the corpus.
        alpha: Rate or exponent as described above; above 0 and below 1.
        seed: Random seed, which is combined with the index of the epoch.
        window: Maximum number of examples in a window.

    Reference: Provilkov et al. (2020), BPE-Dropout; Kudo (2018), Subword Regularization.
    """

    def __init__(self, corpus, training, max_length, alpha, seed=0, window=WINDOW):
        self._corpus, self._fields = corpus, training.texts
        self._max_length, self._alpha, self._seed = max_length, alpha, seed
        self.windows = -(-corpus.drawn_size // window)
        self._lock = threading.Lock()  # SentencePiece has one seed for all threads
        self._latest = {}  # the latest windows, by epoch, window and plan
        self._widths = {}  # by number of buckets: the widths of the first window, used for all

    def epochs(self, batch_tokens, buckets=BUCKETS) -> Epochs:
        """Returns the `Epochs` of the corpus, each with other segmentations.

        Args:
            batch_tokens: Maximum number of tokens of each text in a batch, including padding.
            buckets: See `Corpus.batches`.
        """
        names = list(self._fields)
        steps = self._window(0, 0, batch_tokens, buckets).plan.steps

        def batch(epoch, number):
            window, place = divmod(int(number), steps)
            drawn = self._window(int(epoch), window, batch_tokens, buckets)
            return drawn.batch(place, steps)

        def make(epoch, number):
            types = [tf.int64] + [tf.int32] * len(names)
            numbers, *columns = tf.numpy_function(batch, [epoch, number], types)
            numbers.set_shape([None])
            for column in columns:
                column.set_shape([None, None])
            given = dict(zip(names, columns, strict=True))
            draws = self._corpus.draws(numbers, self._seed, epoch)
            return self._corpus.gather(numbers, {}, draws, given)

        def batches(epoch, select):
            return select(tf.data.Dataset.range(self.windows * steps)).map(
                unconverted(lambda number: make(epoch, number)),
                num_parallel_calls=tf.data.AUTOTUNE,
            )

        return Epochs(self.windows * steps, batches)

    def _window(self, epoch, window, batch_tokens, buckets):
        """Returns a `_Window` of an epoch; keeps the latest two."""
        key = epoch, window, batch_tokens, buckets
        with self._lock:
            if key not in self._latest:
                kept = list(self._latest.items())[-1:]
                self._latest = dict(kept)
                self._latest[key] = self._draw(epoch, window, batch_tokens, buckets)
            return self._latest[key]

    def _draw(self, epoch, window, batch_tokens, buckets):
        numbers = self._numbers(epoch, window)
        entropy = [self._seed, epoch, window]
        seeds = np.random.SeedSequence(entropy).generate_state(len(self._fields))
        texts = [
            self._segment(field, self._corpus.store.texts(name, numbers), int(seed) % 2**31)
            for (name, field), seed in zip(self._fields.items(), seeds, strict=True)
        ]
        random = np.random.default_rng(entropy)
        pads = [field.padding for field in self._fields.values()]
        lengths = np.max([np.diff(ends) for _, ends in texts], axis=0)
        if buckets not in self._widths:  # up to `max_length`, for longer texts in other windows
            chosen = choose_widths(np.bincount(lengths), buckets)
            self._widths[buckets] = np.unique([*chosen, max(self._max_length, chosen[-1])])
        plan = plan_batches(np.bincount(lengths), batch_tokens, self._widths[buckets])
        return _Window(numbers, texts, pads, np.argsort(lengths, kind="stable"), plan, random)

    def _numbers(self, epoch, window):
        """Returns the indices of the examples in a window, sorted."""
        size = self._corpus.drawn_size
        begin, end = (size * place // self.windows for place in (window, window + 1))
        with tf.init_scope(), tf.device("CPU:0"):
            places = tf.range(begin, end, dtype=tf.int64)
            if self.windows > 1:
                places = permuted(places, size, key_of(self._seed, epoch, WINDOWS))
            return np.sort(self._corpus.drawn(places, epoch).numpy())

    def _segment(self, field, texts, seed):
        """Returns the ids of texts in a flat array, and the offsets of the texts in it."""
        strings = [text.decode("utf-8", "replace") for text in texts]
        drawn = field.tokenizer.sample(strings, self._alpha, seed)
        for number, ids in enumerate(drawn):
            ids.append(field.tokenizer.eos_id)
            if len(ids) > self._max_length:
                usual = field.truncate(
                    field.encode(tf.constant([strings[number]])), self._max_length
                )
                drawn[number] = usual.to_list()[0]
        ends = np.cumsum([0, *map(len, drawn)])
        return np.fromiter((token for ids in drawn for token in ids), np.int32, ends[-1]), ends


class _Window:
    """Some examples of an epoch with their random segmentations, cut into batches.

    Args:
        numbers: Numbers of the examples in the corpus, [examples].
        texts: For each column its flat ids, and the offsets of the texts, [examples + 1].
        pads: Padding of each column.
        order: Indices of the examples, sorted by length, [examples].
        plan: The `Plan` of the batches.
        random: The `numpy.random.Generator` of the order.
    """

    def __init__(self, numbers, texts, pads, order, plan, random):
        self._numbers, self._texts, self._pads, self.plan = numbers, texts, pads, plan
        segments = zip([0, *plan.ends[:-1]], plan.ends, strict=True)
        self._order = np.concatenate([random.permutation(order[a:b]) for a, b in segments])
        self._sequence = random.permutation(self.plan.steps)

    def batch(self, place, steps):
        """Returns a list: the numbers of a batch's examples, [B], and padded ids by column, [B, T].

        Args:
            place: Index of the batch in the window.
            steps: Number of batches that the window must have. If it has fewer or more, some are
                used twice or skipped.
        """
        plan = self.plan
        number = np.resize(self._sequence, steps)[place]
        last = np.cumsum(plan.batches)
        run = int(np.searchsorted(last, number, side="right"))
        start = plan.starts[run] + (number - last[run] + plan.batches[run]) * plan.rows[run]
        own = self._order[start : start + plan.rows[run]]
        width = plan.widths[plan.buckets[run]]
        columns = [
            _padded(ids, ends[own], ends[own + 1], width, pad)
            for (ids, ends), pad in zip(self._texts, self._pads, strict=True)
        ]
        return [self._numbers[own].astype(np.int64), *columns]


def _padded(ids, begins, ends, width, pad):
    places = begins[:, None] + np.arange(width)
    inside = places < ends[:, None]
    return np.where(inside, ids[np.where(inside, places, 0)], pad).astype(np.int32)
