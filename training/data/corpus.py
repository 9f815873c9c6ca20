"""A corpus of token ids and its batches: few shapes, little padding, the same every time.

A corpus is tokenised once, in the graph, and kept in memory: 2 bytes a token (4 for a vocabulary
above 65,536), about 0.5 GB for the 4.5 million pairs of WMT14 English-German. That is what makes
any epoch's order known before it begins, so that a training can continue in the middle of one.
"""

import functools
import zlib

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.batching import plan_batches
from keras_transformer.training.data.cutting import cut_texts
from keras_transformer.training.data.packing import pack_texts
from keras_transformer.training.data.stream import Epochs
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
    """Examples as numbers, in memory: texts as token ids, and what else belongs to each.

    Args:
        columns: What `Training.encode` returned, all examples together: of a text ragged token ids
            `[examples, (T)]`, each ending in the end-of-sentence id; otherwise int32 `[examples]`.
        training: A `Training`, which makes batches of them.
        too_long, empty: How many examples were left out, and why.
        cut: How many examples have a text that was cut.
        weights: How often an epoch holds each example in the mean, `[examples]`; see
            `WeightedEpochs`. `None`: once, exactly.
        examples: How many there are, in rows that hold several. `None`: one in each.

    Attributes:
        size: Number of examples, or of packed rows.
        examples: Number of examples.
        tokens: Number of tokens of each text, ends included, a tuple.
        too_long, empty, cut: As above.
        fingerprint: A checksum of every number in its place, and of the weights.
    """

    def __init__(
        self, columns, training, *, too_long=0, empty=0, cut=0, weights=None, examples=None
    ):
        self._columns, self._training = columns, training
        self.too_long, self.empty, self.cut = too_long, empty, cut
        texts = [column for column in columns if isinstance(column, tf.RaggedTensor)]
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
        for column in self._columns:
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
            rows: A `tf.data.Dataset` of tuples of scalar strings, the columns of a task.
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
            ValueError: If no example is left, a column that is no text has what cannot be, or
                `weights` are not as many as `rows`.
        """
        chunks, too_long, empty, cut, every = {}, 0, 0, 0, []
        encoded = rows.batch(1024).map(
            lambda *columns: (training.encode(*columns), columns),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        for batch, strings_of_batch in encoded.prefetch(1):
            lengths = np.stack([batch[number].row_lengths().numpy() for number in training.texts])
            is_empty = lengths.min(axis=0) < 2
            if cut_source:
                batch = (cut_texts(batch[0], max_length), *batch[1:])
                is_cut, lengths[0] = lengths[0] > max_length, batch[0].row_lengths()
            is_long = ~is_empty & (lengths.max(axis=0) > max_length) & (not training.packed)
            empty, too_long = empty + int(is_empty.sum()), too_long + int(is_long.sum())
            kept = ~(is_empty | is_long)
            cut += int((kept & is_cut).sum()) if cut_source else 0
            before = sum(map(len, every))
            _check_numbers(batch, strings_of_batch, training, split, before)
            every.append(kept)
            for number, column in enumerate(batch):
                chunks.setdefault(number, []).append(_kept(column, kept, training.texts, number))
        if not sum(kept.sum() for kept in every):
            raise ValueError(
                "The data must hold at least one example with words in each text and at most "
                f"`max_length` tokens. Received: {empty} empty and {too_long} longer examples, "
                f"with max_length={max_length}."
            )
        columns = tuple(
            _ragged(batches) if number in training.texts else tf.constant(np.concatenate(batches))
            for number, batches in sorted(chunks.items())
        )
        if training.packed:
            rows, cut = pack_texts(columns[0], max_length)
            return cls((rows,), training, empty=empty, cut=cut, examples=columns[0].nrows())
        weights = _weights_of(weights, np.concatenate(every))
        return cls(columns, training, too_long=too_long, empty=empty, cut=cut, weights=weights)

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
        return dataset.map(lambda start, rows, width: (order[start : start + rows], width))

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
            lambda numbers, width: self.pad(self._columns, numbers, width),
            num_parallel_calls=tf.data.AUTOTUNE,
        )

    def pad(self, columns, numbers, width):
        """Returns the batch of some examples, as `batches` describes it.

        Args:
            columns: As those of the corpus.
            numbers: Which examples, [B].
            width: Number of tokens to pad texts to.
        """

        def rows(column):
            values = tf.cast(tf.gather(column, numbers), tf.int32)
            if not isinstance(column, tf.RaggedTensor):
                return values  # [B]
            return values.to_tensor(self._training.pad_id, shape=tf.stack([-1, width]))

        return self._training.assemble(*map(rows, columns))

    def replaced(self, texts):
        """Returns the columns with others in the place of the texts, a tuple."""
        texts = iter(texts)
        return tuple(
            next(texts) if isinstance(column, tf.RaggedTensor) else column
            for column in self._columns
        )

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
        texts = [column for column in self._columns if isinstance(column, tf.RaggedTensor)]
        places = len(texts) * self._plan(batch_tokens, buckets).tokens
        lengths = tf.add_n([text.row_lengths() for text in texts])
        return 1 - int(tf.reduce_sum(tf.gather(lengths, self.drawn(0)))) / places


def _shuffled(order, bucket, batches, seed, epoch):
    """The order of the examples, each within its bucket, and the order of the batches."""
    seeds = tf.stack([tf.cast(seed, tf.int64), tf.cast(epoch, tf.int64)])
    of_examples, of_batches = (
        tf.random.stateless_uniform([count], folded, None, None, tf.uint32, alg="philox")
        for count, folded in (
            (len(order), tf.random.fold_in(seeds, 0)),
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


def _check_numbers(batch, columns, training, split, before):
    """Raises if a column has what cannot be, which is numbered below 0."""
    for number, column in enumerate(batch):
        rows = column
        if isinstance(column, tf.RaggedTensor):
            rows = tf.reduce_min(column, axis=1)
        if (wrong := np.flatnonzero(rows.numpy() < 0)).size:
            value = columns[number].numpy()[wrong[0]].decode("utf-8", "replace")
            raise ValueError(
                f"the {split} split of the data, example {before + wrong[0] + 1}: column "
                f"{number + 1} must be {training.explain(number)}. Received: {value!r}."
            )


def _kept(column, kept, texts, number):
    """What is kept of a column of a batch: values, and of a text the lengths as well."""
    if number not in texts:
        return column.numpy()[kept]
    lengths = column.row_lengths().numpy()
    values = column.flat_values.numpy()[np.repeat(kept, lengths)]
    compact = np.uint16 if texts[number].vocab_size <= 2**16 else np.int32
    return values.astype(compact), lengths[kept]


def _ragged(chunks):
    """Joins (ids, lengths) of many batches into one `tf.RaggedTensor`."""
    values, lengths = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
    with tf.device("CPU:0"):  # a GPU is no place for a corpus, and tf.data could not read it there
        return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
