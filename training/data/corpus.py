"""A corpus of encoded examples, with reproducible batches of few shapes and little padding.

The examples are in a `Store`, sorted by length. The order of an epoch is computed from its number,
batch by batch. Training therefore resumes in the middle of an epoch at no cost, and its memory does
not depend on the size of the corpus.
"""

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.tensors import Tensor
from keras_transformer.training.data.batching import BUCKETS, choose_widths, plan_batches
from keras_transformer.training.data.encoding import Limits
from keras_transformer.training.data.permutation import key_of, permuted, uniform
from keras_transformer.training.data.store import Stores
from keras_transformer.training.data.stream import Epochs, unconverted
from keras_transformer.training.data.weighting import WeightedEpochs

TOGETHER = 64  # number of batches whose order is computed at once
# Keys of the random numbers of an epoch, one for each purpose.
EXAMPLES, BATCHES, VARIATION, FIRST = range(4)  # `FIRST`: of the numbers of a variation


class Corpus:
    """Encoded examples and their batches.

    Args:
        store: The `Store` of the examples.
        training: A `Training`, which makes batches of examples.
        variation: Data augmentation: see `Training.variation`. `None`: none.
        num_draws: Number of random numbers that it needs for each example.

    Attributes:
        size: Number of examples, or of packed rows.
        examples: Number of examples.
        tokens: Number of items in each ragged column, such as tokens including ends, a tuple.
        too_long, empty: Number of examples that were left out because they are too long or empty.
        truncated: Number of examples that were truncated.
        is_weighted: Whether epochs contain some examples more often than others.
        fingerprint: Checksum of all examples in their order, and of their weights.
    """

    def __init__(self, store, training, variation=None, num_draws=2):
        self.store, self._training, self._variation = store, training, variation
        self._num_draws = num_draws
        counts, groups = store.manifest["counts"], store.manifest["groups"]
        self.size, self.examples = store.size, counts["examples"]
        self.too_long, self.empty, self.truncated = (
            counts[n] for n in ("too_long", "empty", "truncated")
        )
        self.fingerprint = store.manifest["fingerprint"]
        self._groups = groups
        self._ragged = [name for name, field in training.fields.items() if field.is_ragged]
        self.tokens = tuple(sum(groups["tokens"][name]) for name in self._ragged)
        self.is_weighted = any(weight != 1 for weight in groups["weight"])
        self._weighted: Any = None
        if self.is_weighted:
            self._weighted = WeightedEpochs(groups["length"], groups["weight"], groups["count"])
        self.drawn_size = self._weighted.size if self.is_weighted else self.size
        self._tables = functools.cache(self._make_tables)

    @classmethod
    def from_rows(
        cls, rows, training, limits=None, *, weights=None, split="train", texts=()
    ) -> "Corpus":
        """Encodes a dataset of examples, into temporary files.

        Args:
            rows: A `tf.data.Dataset` of tuples, the columns of a task.
            training: The `Training` of the task.
            limits: `Limits`, or the maximum length of a sequence. `None`: there is no limit.
            weights: How often an epoch contains each of `rows`, on average, float64 `[examples]`;
                see `WeightedEpochs`. `None`: exactly once.
            split: Name of the split, for errors.
            texts: Names of the columns whose strings are stored, for a `SubwordSampler`.

        Returns:
            A `Corpus`.

        Raises:
            ValueError: If no example is left, a value cannot be used, or the number of weights is
                not the number of rows.
        """
        if not isinstance(limits, Limits):
            limits = Limits(limits, packed=training.packed)
        store = Stores().take(
            lambda: rows,
            training,
            limits,
            split=split,
            weights=None if weights is None else lambda: weights,
            texts=texts,
        )
        return cls(store, training)

    def batches(
        self, batch_size, *, shuffle=False, seed=0, epoch=0, skip=0, buckets=BUCKETS
    ) -> tf.data.Dataset:
        """Returns the batches of one epoch.

        Examples are put into `buckets` by the length of their longest sequence, with the widths
        that need the least padding for this corpus: see `plan_batches`. In each bucket every column
        is padded to a width of its own. All batches of a bucket have the same shape, except for the
        last batch of the widest bucket, which may have fewer rows. No example is lost, and every
        epoch has the same number of batches. Examples without a sequence have length 1.

        Args:
            batch_size: Maximum number of tokens of each text in a batch, including padding; or
                maximum number of examples if they have no sequences.
            shuffle: Whether to shuffle the examples within a bucket, and the batches in the epoch.
                The order depends only on `seed` and `epoch`.
            seed, epoch: Non-negative integers.
            skip: Number of batches to skip at the beginning; they cost nothing.
            buckets: Maximum number of widths.

        Returns:
            A `tf.data.Dataset` of batches: see `Training.assemble`.

        Raises:
            ValueError: If a sequence is longer than `batch_size`.
        """

        def select(dataset):
            return dataset.skip(skip)

        made = self._made(select, batch_size, shuffle, seed, epoch, buckets)
        left = max(0, self.steps(batch_size, buckets) - skip)
        return made.apply(tf.data.experimental.assert_cardinality(left)).prefetch(tf.data.AUTOTUNE)

    def epochs(self, batch_size, seed=0, buckets=BUCKETS) -> Epochs:
        """Returns the `Epochs` of the corpus, each in an order of its own."""

        def batches(epoch, select):
            return self._made(select, batch_size, True, seed, epoch, buckets)

        return Epochs(self.steps(batch_size, buckets), batches)

    def _made(self, select, batch_size, shuffle, seed, epoch, buckets):
        """Returns the selected batches of an epoch."""
        plan, tables = self._tables(batch_size, buckets)

        def order(numbers):
            places, rows, bucket = self._places(numbers, tables, plan.steps, shuffle, seed, epoch)
            ends = tf.cumsum(rows)
            cuts = tf.data.Dataset.from_tensor_slices((ends - rows, ends, bucket))
            examples = self.drawn(places, epoch)
            return cuts.map(unconverted(lambda begin, end, bucket: (examples[begin:end], bucket)))

        def make(numbers, bucket):
            draws = None
            if shuffle:
                draws = self.draws(numbers, seed, epoch)
            widths = {name: width[bucket] for name, width in tables["widths"].items()}
            return self.gather(numbers, widths, draws)

        chosen = select(tf.data.Dataset.range(plan.steps)).batch(TOGETHER)
        ordered = chosen.flat_map(unconverted(order))
        return ordered.map(unconverted(make), num_parallel_calls=tf.data.AUTOTUNE)

    def _places(self, numbers, tables, steps, shuffle, seed, epoch):
        """Returns the examples of some batches, as indices in the order by length.

        Returns:
            The indices, one batch after the other, [examples]; the number of examples and the
            bucket of each batch, [batches] each.
        """
        if shuffle:
            numbers = permuted(numbers, steps, key_of(seed, epoch, BATCHES))
        run = tf.searchsorted(tables["last"], numbers, side="right", out_type=tf.int64)
        rows = tf.gather(tables["rows"], run)
        before = numbers - tf.gather(tables["last"] - tables["batches"], run)
        starts = tf.gather(tables["starts"], run) + before * rows
        begins = tf.repeat(starts - tf.cumsum(rows, exclusive=True), rows)
        places = begins + tf.range(tf.reduce_sum(rows))
        if shuffle:  # within the bucket of each example, which may be narrower than its batch
            own = tf.searchsorted(tables["ends"], places, side="right", out_type=tf.int64)
            begin = tf.gather(tables["begins"], own)
            sizes = tf.gather(tables["ends"], own) - begin
            keys = tf.gather(key_of(seed, epoch, EXAMPLES, tf.range(len(tables["ends"]))), own)
            places = begin + permuted(places - begin, sizes, keys)
        return places, rows, tf.gather(tables["buckets"], run)

    def drawn(self, places, epoch) -> Tensor:
        """Returns the indices of the examples at some places of an epoch.

        Without weights, every epoch contains every example once, and numbers equal places.

        Args:
            places: Indices in the order by length, at least 0 and below `drawn_size`.
            epoch: Number of the epoch, an integer or scalar tensor.
        """
        return places if self._weighted is None else self._weighted.numbers(places, epoch)

    def draws(self, numbers, seed, epoch) -> Tensor | None:
        """Returns random numbers for the data augmentation of examples, `[B, N]`; `None` without.

        Args:
            numbers: Numbers of the examples, `[B]`.
            seed: Random seed, an integer.
            epoch: Number of the epoch, an integer or scalar tensor.
        """
        if self._variation is None:
            return None
        axes = range(FIRST, FIRST + self._num_draws)
        keys = [key_of(seed, epoch, VARIATION, axis, numbers) for axis in axes]
        return tf.stack([uniform(key) for key in keys], axis=1)

    def gather(self, numbers, widths, draws=None, columns=None) -> Any:
        """Returns the batch of some examples: see `batches`.

        Args:
            numbers: Numbers of the examples, [B].
            widths: Dictionary of the lengths to which ragged columns are padded.
            draws: Random numbers of the data augmentation, `[B, N]`. `None`: no augmentation.
            columns: Dictionary of padded columns that are given and need not be read.
        """
        given = columns or {}
        names = [name for name in self._training.fields if name not in given]
        rows = {**given, **self.store.gather(numbers, widths, names)}
        if draws is not None and self._variation is not None:
            rows = self._variation(draws, rows)
        return self._training.assemble(**rows)

    def _make_tables(self, batch_size, buckets):
        """Returns the plan, and a dictionary of its arrays as tensors, for use in a graph.

        The tensors are made outside of any graph, which would otherwise contain them as constants,
        once for each use.
        """
        plan = self._plan(batch_size, buckets)
        arrays = {
            "ends": plan.ends,
            "begins": np.concatenate([[0], plan.ends[:-1]]),
            "last": np.cumsum(plan.batches),
            "batches": plan.batches,
            "starts": plan.starts,
            "rows": plan.rows,
            "buckets": plan.buckets,
            "widths": self._widths(plan),
        }
        with tf.init_scope(), tf.device("CPU:0"):  # tf.data reads them on the CPU
            return plan, tf.nest.map_structure(lambda a: tf.constant(a, tf.int64), arrays)

    def _plan(self, batch_size, buckets):
        counts = np.bincount(self._groups["length"], self._groups["count"]).astype(np.int64)
        if self.is_weighted:
            counts = self._weighted.counts
        return plan_batches(counts, batch_size, choose_widths(counts, buckets))

    def _widths(self, plan):
        """Returns the maximum length of each ragged column in each bucket and all narrower ones."""
        lengths = np.asarray(self._groups["length"])
        return {
            name: np.array([longest[lengths <= width].max() for width in plan.widths])
            for name, longest in (
                (name, np.asarray(self._groups["longest"][name])) for name in self._ragged
            )
        }

    def steps(self, batch_size, buckets=BUCKETS) -> int:
        """Returns the number of batches of an epoch."""
        return self._tables(batch_size, buckets)[0].steps

    def padding(self, batch_size, buckets=BUCKETS) -> float:
        """Returns the mean share of padding in the batches of an epoch."""
        plan = self._tables(batch_size, buckets)[0]
        widths = sum(self._widths(plan).values())
        places = (plan.batches * plan.rows * widths[plan.buckets]).sum()
        tokens = sum(np.asarray(self._groups["tokens"][name]) for name in self._ragged)
        return 1 - float((tokens * np.asarray(self._groups["weight"])).sum()) / float(places)
