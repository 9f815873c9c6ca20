"""A corpus of sequences and its batches: few shapes, little padding, the same every time.

A corpus is tokenised once, in the graph, and kept in memory: 2 bytes a token (4 for a vocabulary
above 65,536), about 0.5 GB for the 4.5 million pairs of WMT14 English-German. That is what makes
any epoch's order known before it begins, so that a training can continue in the middle of one.
"""

import functools
import zlib

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.batching import plan_batches
from keras_transformer.training.data.encoding import encode_rows
from keras_transformer.training.data.packing import pack_texts
from keras_transformer.training.data.stream import Epochs, unconverted
from keras_transformer.training.data.weighting import WeightedEpochs

BUCKETS = 16  # most widths of the batches of a corpus


def strings(rows, columns):
    """Yields the strings of some columns of every row of a dataset, as bytes.

    Args:
        rows: A `tf.data.Dataset` of tuples of scalar strings.
        columns: Numbers of the columns.
    """
    for batch in rows.batch(1024).prefetch(1).as_numpy_iterator():
        for column in columns:
            yield from batch[column]


class TokenizedCorpus:
    """Examples as numbers, in memory: sequences, such as token ids, and what belongs to each.

    Args:
        columns: What `Training.encode` returned, all examples together, a dictionary: of a ragged
            field a `tf.RaggedTensor` `[examples, (T), ...]`, otherwise a tensor `[examples, ...]`.
        training: A `Training`, which makes batches of them.
        too_long, empty: How many examples were left out, and why.
        cut: How many examples have a text that was cut.
        weights: How often an epoch holds each example on average, `[examples]`; see
            `WeightedEpochs`. `None`: once, exactly.
        examples: How many there are, in rows that hold several. `None`: one in each.

    Attributes:
        size: Number of examples, or of packed rows.
        examples: Number of examples.
        tokens: Number of items of each ragged column, such as tokens with ends, a tuple.
        too_long, empty, cut: As above.
        fingerprint: A checksum of every number in its place, and of the weights.
    """

    def __init__(
        self, columns, training, *, too_long=0, empty=0, cut=0, weights=None, examples=None
    ):
        self._columns, self._training = columns, training
        self.too_long, self.empty, self.cut = too_long, empty, cut
        texts = [column for column in columns.values() if isinstance(column, tf.RaggedTensor)]
        lengths = np.stack([text.row_lengths().numpy() for text in texts])
        self.tokens = tuple(int(total) for total in lengths.sum(axis=1))
        self.size = lengths.shape[1]
        self.examples = self.size if examples is None else int(examples)
        self._weights, self._weighted = weights, None
        planned = lengths.max(axis=0)
        if weights is not None:
            self._weighted = WeightedEpochs(weights, planned)
            planned = self._weighted.lengths
        self._plan = functools.cache(functools.partial(plan_batches, planned))
        self._tensors = functools.cache(self._make_tensors)

    @functools.cached_property
    def fingerprint(self):
        # What a training that continues compares with the corpus that it began with.
        checksum = 0
        for column in self._columns.values():
            ragged = isinstance(column, tf.RaggedTensor)
            for tensor in (column.values, column.row_splits) if ragged else (column,):
                checksum = zlib.crc32(tensor.numpy(), checksum)
        if self._weights is not None:
            checksum = zlib.crc32(self._weights, checksum)
        return f"{checksum:08x}"

    @classmethod
    def from_rows(cls, rows, training, max_length, weights=None, split="train", cut_source=False):
        """Tokenises a dataset of examples.

        Args:
            rows: A `tf.data.Dataset` of tuples, the columns of a task.
            training: The `Training` of the task.
            max_length: Longest text in tokens, the end of the sentence included. Examples with a
                longer one are left out, and so are those of which a text holds no token but that
                end. Packed rows hold longer ones in pieces: see `pack_texts`.
            weights: How often an epoch is to hold each of `rows`, float64 `[examples]`; see
                `WeightedEpochs`. `None`: once, exactly.
            split: Name of the split that `rows` are of, for errors.
            cut_source: Whether the first text of an example is cut where it is too long.

        Returns:
            A `TokenizedCorpus`.

        Raises:
            ValueError: If no example is left, a value cannot be used, or `weights` are not as many
                as `rows`.
        """
        encoded = encode_rows(rows, training, max_length, split, cut_source)
        if training.packed:
            ((name, texts),) = encoded.columns.items()
            packed, cut = pack_texts(texts, max_length)
            columns = {name: packed}
            return cls(columns, training, empty=encoded.empty, cut=cut, examples=texts.nrows())
        weights = _weights_of(weights, encoded.kept)
        counts = {name: getattr(encoded, name) for name in ("too_long", "empty", "cut")}
        return cls(encoded.columns, training, **counts, weights=weights)

    def batches(self, batch_tokens, *, shuffle=False, seed=0, epoch=0, skip=0, buckets=BUCKETS):
        """Returns the batches of one epoch.

        Examples are sorted by their longest text into `buckets`, at the widths that need the least
        padding for this corpus, and all texts are padded to that width; see `plan_batches`. All
        batches of a width have the same shape, except for the last of the widest, which may have
        fewer rows. No example is lost, and the number of batches is the same in every epoch.

        Args:
            batch_tokens: Most tokens of each text in a batch, padding included.
            shuffle: Whether examples change their places within a bucket, and batches theirs in the
                epoch. The order follows from `seed` and `epoch` alone.
            seed, epoch: Non-negative integers.
            skip: Batches at the beginning to leave out; they cost nothing.
            buckets: Most widths to use.

        Returns:
            A `tf.data.Dataset` of what `Training.assemble` makes of the examples.

        Raises:
            ValueError: If a text is longer than `batch_tokens`.
        """
        cuts = self._cuts(batch_tokens, shuffle, seed, epoch, buckets)
        numbers = cuts.skip(tf.cast(skip, tf.int64))
        return self._gathered(numbers).prefetch(tf.data.AUTOTUNE)

    def epochs(self, batch_tokens, seed=0, buckets=BUCKETS):
        """Returns the `Epochs` of a training, each in an order of its own."""

        def batches(epoch, select):
            return self._gathered(select(self._cuts(batch_tokens, True, seed, epoch, buckets)))

        return Epochs(self.steps(batch_tokens, buckets), batches)

    def _cuts(self, batch_tokens, shuffle, seed, epoch, buckets):
        """Which examples are in each batch: (their numbers [B], width), integers."""
        order, bucket, *cuts = self._tensors(batch_tokens, buckets)
        if self._weighted is not None:
            order = self.drawn(epoch)  # sorted by length, as the plan's order is
        if shuffle:
            order, sequence = _shuffled(order, bucket, len(cuts[0]), seed, epoch)
            cuts = [tf.gather(values, sequence) for values in cuts]
        dataset = tf.data.Dataset.from_tensor_slices(tuple(cuts))
        return dataset.map(
            unconverted(lambda start, rows, width: (order[start : start + rows], width))
        )

    def drawn(self, epoch):
        """Returns the numbers of the examples that an epoch holds, int64 [examples of an epoch].

        Args:
            epoch: Integer or scalar tensor; without weights every epoch holds every example.
        """
        if self._weighted is None:
            return tf.range(self.size, dtype=tf.int64)
        return self._weighted.numbers(epoch)

    def _gathered(self, numbers):
        """The batches for a dataset of `_cuts`."""
        return numbers.map(
            unconverted(lambda numbers, width: self.pad(self._columns, numbers, width)),
            num_parallel_calls=tf.data.AUTOTUNE,
        )

    def pad(self, columns, numbers, width):
        """Returns the batch of some examples, as `batches` describes it.

        Args:
            columns: As those of the corpus.
            numbers: Which examples, [B].
            width: Number of items to pad sequences to.
        """
        fields = self._training.fields

        def rows(name, column):
            values = tf.gather(column, numbers)
            values = tf.cast(values, tf.float32 if values.dtype.is_floating else tf.int32)
            if not fields[name].is_ragged:
                return values  # [B, ...]
            shape = tf.stack([-1, width, *fields[name].item_shape])
            return values.to_tensor(fields[name].padding, shape=shape)

        batch = {name: rows(name, column) for name, column in columns.items()}
        return self._training.assemble(**batch)

    def replaced(self, columns):
        """Returns the columns with others in the place of some, a dictionary."""
        return {**self._columns, **columns}

    def _make_tensors(self, batch_tokens, buckets):
        """The plan as tensors: the order, the bucket of each example in it, and the three cuts.

        Made outside of any graph, of which they would be constants otherwise, once for each use.
        """
        plan = self._plan(batch_tokens, buckets)
        sizes = [end - begin for begin, end in plan.segments]
        bucket = np.repeat(np.arange(len(sizes)), sizes)
        arrays = (plan.order, bucket, plan.starts, plan.rows, plan.widths)
        with tf.init_scope(), tf.device("CPU:0"):  # or a GPU would hold what tf.data reads
            return [tf.constant(array, tf.int64) for array in arrays]

    def steps(self, batch_tokens, buckets=BUCKETS):
        """Returns the number of batches of an epoch."""
        return len(self._plan(batch_tokens, buckets).starts)

    def padding(self, batch_tokens, buckets=BUCKETS):
        """Returns the share of padding among the tokens of epoch 0's batches."""
        columns = self._columns.values()
        texts = [column for column in columns if isinstance(column, tf.RaggedTensor)]
        places = len(texts) * self._plan(batch_tokens, buckets).tokens
        lengths = tf.add_n([text.row_lengths() for text in texts])
        return 1 - int(tf.reduce_sum(tf.gather(lengths, self.drawn(0)))) / places


def _shuffled(order, bucket, batches, seed, epoch):
    """The order of the examples, each within its bucket, and the order of the batches."""
    seeds = tf.stack([tf.cast(seed, tf.int64), tf.cast(epoch, tf.int64)])
    of_examples, of_batches = (
        tf.random.stateless_uniform([count], folded, None, None, tf.uint32, alg="philox")
        for count, folded in (
            (tf.size(order), tf.random.fold_in(seeds, 0)),
            (batches, tf.random.fold_in(seeds, 1)),
        )
    )
    keys = tf.bitwise.left_shift(bucket, 32) + tf.cast(of_examples, tf.int64)
    return tf.gather(order, tf.argsort(keys)), tf.argsort(tf.cast(of_batches, tf.int64))


def _weights_of(weights, kept):
    """The weights of the examples that are kept."""
    if weights is None:
        return None
    if len(weights) != len(kept):
        raise ValueError(
            "`weights` must hold a number for each example. "
            f"Received: {len(weights)} for {len(kept)}."
        )
    return np.ascontiguousarray(weights[kept], np.float64)
