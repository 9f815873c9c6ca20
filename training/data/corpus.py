"""A corpus of encoded examples and its batches: few shapes, little padding, the same every time.

The examples are in a `Store`, sorted by length. The order of an epoch is computed from its number,
batch by batch, so that a training continues in the middle of an epoch at no cost and its memory
does not depend on the size of the corpus.
"""

import functools

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.batching import choose_widths, plan_batches
from keras_transformer.training.data.encoding import Limits
from keras_transformer.training.data.permutation import key_of, permuted, uniform
from keras_transformer.training.data.store import Stores
from keras_transformer.training.data.stream import Epochs, unconverted
from keras_transformer.training.data.weighting import WeightedEpochs

BUCKETS = 16  # most widths of the batches of a corpus
TOGETHER = 64  # batches whose order is computed at once
# What is drawn for an epoch, each from a key of its own.
EXAMPLES, BATCHES, VARIATION, DOWN, RIGHT = range(5)


class Corpus:
    """Examples as numbers: sequences such as token ids, and what belongs to each.

    Args:
        store: The `Store`.
        training: A `Training`, which makes batches of them.
        variation: What every epoch of a training changes of its examples: see
            `Training.variation`. `None`: nothing.

    Attributes:
        size: Number of examples, or of packed rows.
        examples: Number of examples.
        tokens: Number of items of each ragged column, such as tokens with ends, a tuple.
        too_long, empty, cut: How many examples were left out, and why; and how many were cut.
        is_weighted: Whether epochs hold some examples more often than others.
        fingerprint: A checksum of every number in its place, and of the weights.
    """

    def __init__(self, store, training, variation=None):
        self.store, self._training, self._variation = store, training, variation
        counts, groups = store.manifest["counts"], store.manifest["groups"]
        self.size, self.examples = store.size, counts["examples"]
        self.too_long, self.empty, self.cut = (counts[n] for n in ("too_long", "empty", "cut"))
        self.fingerprint = store.manifest["fingerprint"]
        self._groups = groups
        self._ragged = [name for name, field in training.fields.items() if field.is_ragged]
        self.tokens = tuple(sum(groups["tokens"][name]) for name in self._ragged)
        self.is_weighted = any(weight != 1 for weight in groups["weight"])
        self._weighted = None
        if self.is_weighted:
            self._weighted = WeightedEpochs(groups["length"], groups["weight"], groups["count"])
        self.drawn_size = self._weighted.size if self.is_weighted else self.size
        self._tables = functools.cache(self._make_tables)

    @classmethod
    def from_rows(cls, rows, training, limits=None, *, weights=None, split="train", texts=()):
        """Encodes a dataset of examples, into temporary files.

        Args:
            rows: A `tf.data.Dataset` of tuples, the columns of a task.
            training: The `Training` of the task.
            limits: `Limits`, or the longest sequence. `None`: there is no limit.
            weights: How often an epoch is to hold each of `rows`, float64 `[examples]`; see
                `WeightedEpochs`. `None`: once, exactly.
            split: Name of the split that `rows` are of, for errors.
            texts: Names of the columns whose strings are kept, for a `SubwordSampler`.

        Returns:
            A `Corpus`.

        Raises:
            ValueError: If no example is left, a value cannot be used, or `weights` are not as many
                as `rows`.
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

    def batches(self, batch_size, *, shuffle=False, seed=0, epoch=0, skip=0, buckets=BUCKETS):
        """Returns the batches of one epoch.

        Examples are sorted by their longest sequence into `buckets`, at the widths that need the
        least padding for this corpus. In each bucket every column is padded to a width of its own;
        see `plan_batches`. All batches of a bucket have the same shape, except for the last of the
        widest, which may have fewer rows. No example is lost, and the number of batches is the same
        in every epoch. Examples without a sequence have length 1.

        Args:
            batch_size: Most tokens of each text in a batch, padding included; most examples where
                none is a sequence.
            shuffle: Whether examples change their places within a bucket, and batches theirs in the
                epoch. The order follows from `seed` and `epoch` alone.
            seed, epoch: Non-negative integers.
            skip: Batches at the beginning to leave out; they cost nothing.
            buckets: Most widths to use.

        Returns:
            A `tf.data.Dataset` of what `Training.assemble` makes of the examples.

        Raises:
            ValueError: If a sequence is longer than `batch_size`.
        """

        def select(dataset):
            return dataset.skip(skip)

        made = self._made(select, batch_size, shuffle, seed, epoch, buckets)
        left = max(0, self.steps(batch_size, buckets) - skip)
        return made.apply(tf.data.experimental.assert_cardinality(left)).prefetch(tf.data.AUTOTUNE)

    def epochs(self, batch_size, seed=0, buckets=BUCKETS):
        """Returns the `Epochs` of a training, each in an order of its own."""

        def batches(epoch, select):
            return self._made(select, batch_size, True, seed, epoch, buckets)

        return Epochs(self.steps(batch_size, buckets), batches)

    def _made(self, select, batch_size, shuffle, seed, epoch, buckets):
        """The batches that are selected of an epoch."""
        plan, tables = self._tables(batch_size, buckets)

        def order(numbers):
            places, rows, bucket = self._places(numbers, tables, plan.steps, shuffle, seed, epoch)
            ends = tf.cumsum(rows)
            cuts = tf.data.Dataset.from_tensor_slices((ends - rows, ends, bucket))
            examples = self.drawn(places, epoch)
            return cuts.map(unconverted(lambda begin, end, bucket: (examples[begin:end], bucket)))

        def make(numbers, bucket):
            draws = None
            if shuffle and self._variation is not None:
                keys = [key_of(seed, epoch, VARIATION, axis, numbers) for axis in (DOWN, RIGHT)]
                draws = tf.stack([uniform(key) for key in keys], axis=1)  # [B, 2]
            widths = {name: width[bucket] for name, width in tables["widths"].items()}
            return self.gather(numbers, widths, draws)

        chosen = select(tf.data.Dataset.range(plan.steps)).batch(TOGETHER)
        ordered = chosen.flat_map(unconverted(order))
        return ordered.map(unconverted(make), num_parallel_calls=tf.data.AUTOTUNE)

    def _places(self, numbers, tables, steps, shuffle, seed, epoch):
        """The places of some batches' examples in their order by length.

        Returns:
            The places of all, one batch after the other; the examples of each batch, and its
            bucket, [batches].
        """
        if shuffle:
            numbers = permuted(numbers, steps, key_of(seed, epoch, BATCHES))
        run = tf.searchsorted(tables["last"], numbers, side="right", out_type=tf.int64)
        rows = tf.gather(tables["rows"], run)
        before = numbers - tf.gather(tables["last"] - tables["batches"], run)
        starts = tf.gather(tables["starts"], run) + before * rows
        begins = tf.repeat(starts - tf.cumsum(rows, exclusive=True), rows)
        places = begins + tf.range(tf.reduce_sum(rows))
        if shuffle:  # within the bucket of each, which may be narrower than that of the batch
            own = tf.searchsorted(tables["ends"], places, side="right", out_type=tf.int64)
            begin = tf.gather(tables["begins"], own)
            sizes = tf.gather(tables["ends"], own) - begin
            keys = tf.gather(key_of(seed, epoch, EXAMPLES, tf.range(len(tables["ends"]))), own)
            places = begin + permuted(places - begin, sizes, keys)
        return places, rows, tf.gather(tables["buckets"], run)

    def drawn(self, places, epoch):
        """Returns the numbers of the examples at some places of an epoch.

        Args:
            places: Integers from 0 to below `drawn_size`, in the order by length.
            epoch: Integer or scalar tensor; without weights every epoch holds every example.
        """
        return places if self._weighted is None else self._weighted.numbers(places, epoch)

    def gather(self, numbers, widths, draws=None, columns=None):
        """Returns the batch of some examples, as `batches` describes it.

        Args:
            numbers: Which examples, [B].
            widths: Dictionary of the lengths that ragged columns are padded to.
            draws: Random numbers, `[B, 2]`, for what an epoch changes; `None`: nothing.
            columns: Dictionary of columns that are given, padded; they are not read.
        """
        given = columns or {}
        names = [name for name in self._training.fields if name not in given]
        rows = {**given, **self.store.gather(numbers, widths, names)}
        if draws is not None:
            rows = self._variation(draws, rows)
        return self._training.assemble(**rows)

    def _make_tables(self, batch_size, buckets):
        """The plan, and what of it is needed in a graph, a dictionary of tensors.

        Made outside of any graph, of which they would be constants otherwise, once for each use.
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
        with tf.init_scope(), tf.device("CPU:0"):  # or a GPU would hold what tf.data reads
            return plan, tf.nest.map_structure(lambda a: tf.constant(a, tf.int64), arrays)

    def _plan(self, batch_size, buckets):
        counts = np.bincount(self._groups["length"], self._groups["count"]).astype(np.int64)
        if self.is_weighted:
            counts = self._weighted.counts
        return plan_batches(counts, batch_size, choose_widths(counts, buckets))

    def _widths(self, plan):
        """For each ragged column its longest sequence in each bucket or in a narrower one."""
        lengths = np.asarray(self._groups["length"])
        return {
            name: np.array([longest[lengths <= width].max() for width in plan.widths])
            for name, longest in (
                (name, np.asarray(self._groups["longest"][name])) for name in self._ragged
            )
        }

    def steps(self, batch_size, buckets=BUCKETS):
        """Returns the number of batches of an epoch."""
        return self._tables(batch_size, buckets)[0].steps

    def padding(self, batch_size, buckets=BUCKETS):
        """Returns the share of padding among the items of an epoch's batches, on average."""
        plan = self._tables(batch_size, buckets)[0]
        widths = sum(self._widths(plan).values())
        places = (plan.batches * plan.rows * widths[plan.buckets]).sum()
        tokens = sum(np.asarray(self._groups["tokens"][name]) for name in self._ragged)
        return 1 - float((tokens * np.asarray(self._groups["weight"])).sum()) / float(places)
