"""From pairs of strings to batches of token ids: few shapes, little padding, the same every time.

A corpus is tokenised once, in the graph, and kept in memory: 2 bytes a token (4 for a vocabulary
above 65,536), about 0.5 GB for the 4.5 million pairs of WMT14 English-German. That is what makes
any epoch's order known before it begins, so that a training can continue in the middle of one.
"""

import functools
import zlib

import numpy as np
import tensorflow as tf

from keras_transformer.training.data.batching import plan_batches
from keras_transformer.training.data.sources import ParallelData, parallel_data
from keras_transformer.training.data.weighting import WeightedEpochs

__all__ = ["ParallelData", "TokenizedCorpus", "make_batches", "parallel_data", "sentences"]


def sentences(pairs):
    """Yields both strings of every pair of a dataset, as bytes; to learn a vocabulary from."""
    for source, target in pairs.batch(1024).prefetch(1).as_numpy_iterator():
        yield from source
        yield from target


def make_batches(
    pairs, tokenizer, *, batch_tokens, max_length, shuffle=False, seed=0, epoch=0, skip=0
):
    """Tokenises pairs and returns one epoch of batches; see `TokenizedCorpus`, which keeps tokens.

    Args:
        pairs: A `tf.data.Dataset` of pairs of strings.
        tokenizer: A `Tokenizer`.
        max_length: As in `TokenizedCorpus.from_pairs`.
        batch_tokens, shuffle, seed, epoch, skip: As in `TokenizedCorpus.batches`.

    Returns:
        A `tf.data.Dataset`.
    """
    corpus = TokenizedCorpus.from_pairs(pairs, tokenizer, max_length)
    return corpus.batches(batch_tokens, shuffle=shuffle, seed=seed, epoch=epoch, skip=skip)


class TokenizedCorpus:
    """Pairs of sentences as token ids, in memory.

    Args:
        source, target: Ragged int32 token ids, [pairs, (S)] and [pairs, (T)], each sentence ending
            in the end-of-sentence id.
        bos_id, eos_id: Ids that begin the decoder's input and end every sentence.
        pad_id: Id that fills up.
        too_long, empty: How many pairs were left out, and why.
        weights: How often an epoch holds each pair in the mean, [pairs]; see `WeightedEpochs`.
            `None`: once, exactly.

    Attributes:
        size: Number of pairs.
        source_tokens, target_tokens: Number of tokens, ends of sentences included.
        too_long, empty: As above.
        fingerprint: A checksum of every token in its place, and of the weights.
    """

    def __init__(
        self, source, target, *, bos_id, eos_id, pad_id, too_long=0, empty=0, weights=None
    ):
        self._source, self._target = source, target
        self._bos_id, self._eos_id, self._pad_id = bos_id, eos_id, pad_id
        self.too_long, self.empty = too_long, empty
        lengths = np.stack([source.row_lengths().numpy(), target.row_lengths().numpy()])
        self.source_tokens, self.target_tokens = (int(total) for total in lengths.sum(axis=1))
        self.size = lengths.shape[1]
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
        for side in (self._source, self._target):
            for part in (side.values, side.row_splits):
                checksum = zlib.crc32(part.numpy(), checksum)
        if self._weights is not None:
            checksum = zlib.crc32(self._weights, checksum)
        return f"{checksum:08x}"

    @classmethod
    def from_pairs(cls, pairs, tokenizer, max_length, weights=None):
        """Tokenises a dataset of pairs of strings.

        Args:
            pairs: A `tf.data.Dataset` of pairs of scalar strings, source and target.
            tokenizer: A `Tokenizer`.
            max_length: Longest side of a pair in tokens, the end of the sentence included. Longer
                pairs are left out, and so are those of which a side holds no token but that end.
            weights: How often an epoch is to hold each of `pairs`, float64 [pairs]; see
                `WeightedEpochs`. `None`: once, exactly.

        Returns:
            A `TokenizedCorpus`.

        Raises:
            ValueError: If no pair is left, or `weights` are not as many as `pairs`.
        """
        sides, too_long, empty, every = ([], []), 0, 0, []
        compact = np.uint16 if tokenizer.vocab_size <= 2**16 else np.int32
        tokens = pairs.batch(1024).map(
            lambda source, target: (tokenizer.encode(source), tokenizer.encode(target)),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        for batch in tokens.prefetch(1):
            lengths = np.stack([side.row_lengths().numpy() for side in batch])
            is_empty = lengths.min(axis=0) < 2
            is_long = ~is_empty & (lengths.max(axis=0) > max_length)
            empty, too_long = empty + int(is_empty.sum()), too_long + int(is_long.sum())
            kept = ~(is_empty | is_long)
            every.append(kept)
            for side, ids, length in zip(sides, batch, lengths, strict=True):
                values = ids.flat_values.numpy()[np.repeat(kept, length)]
                side.append((values.astype(compact), length[kept]))
        if not sum(len(length) for _, length in sides[0]):
            raise ValueError(
                "`pairs` must hold at least one pair with words on both sides and at most "
                f"`max_length` tokens on each. Received: {empty} empty and {too_long} longer "
                f"pairs, with max_length={max_length}."
            )
        return cls(
            *map(_ragged, sides), bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
            pad_id=tokenizer.pad_id, too_long=too_long, empty=empty,
            weights=_weights_of(weights, np.concatenate(every)),
        )  # fmt: skip

    def batches(self, batch_tokens, *, shuffle=False, seed=0, epoch=0, skip=0, buckets=16):
        """Returns the batches of one epoch.

        Pairs are sorted by their longer side into `buckets`, at the widths that need the least
        padding for this corpus, and both sides are padded to that width; see `plan_batches`. All
        batches of a width have the same shape, except for the last of the widest, which may have
        fewer rows. No pair is lost, and the number of batches is the same in every epoch.

        Args:
            batch_tokens: Most tokens of either side in a batch, padding included.
            shuffle: Whether pairs change their places within a bucket, and batches theirs in the
                epoch. The order follows from `seed` and `epoch` alone.
            seed, epoch: Non-negative integers.
            skip: Batches at the beginning to leave out; they cost nothing.
            buckets: Most widths to use.

        Returns:
            A `tf.data.Dataset` of ({"source": [B, S], "target": [B, T]}, labels [B, T]), all int32,
            S = T. A row of `target` begins with the id that begins sentences, a row of `labels` is
            the same sentence one to the left and ends in the one that ends them.

        Raises:
            ValueError: If a pair is longer than `batch_tokens`.
        """
        numbers = self.numbers(
            batch_tokens, shuffle=shuffle, seed=seed, epoch=epoch, skip=skip, buckets=buckets
        )
        return self.gathered(numbers).prefetch(tf.data.AUTOTUNE)

    def numbers(self, batch_tokens, *, shuffle=False, seed=0, epoch=0, skip=0, buckets=16):
        """Returns which pairs are in each batch: (numbers of the pairs [B], width), integers.

        The arguments are those of `batches`; `epoch` and `skip` may be scalar tensors.
        """
        order, bucket, *cuts = self._tensors(batch_tokens, buckets)
        if self._weighted is not None:
            order = self.drawn(epoch)  # sorted by length, as the plan's order is
        if shuffle:
            order, sequence = _shuffled(order, bucket, len(cuts[0]), seed, epoch)
            cuts = [tf.gather(values, sequence) for values in cuts]
        return (
            tf.data.Dataset.from_tensor_slices(tuple(cuts))
            .skip(tf.cast(skip, tf.int64))
            .map(lambda start, rows, width: (order[start : start + rows], width))
        )

    def drawn(self, epoch):
        """Returns the numbers of the pairs that an epoch holds, int64 [pairs of an epoch].

        Args:
            epoch: Integer or scalar tensor; without weights every epoch holds every pair.
        """
        if self._weighted is None:
            return tf.range(self.size, dtype=tf.int64)
        return self._weighted.numbers(epoch)

    def gathered(self, numbers):
        """Returns the batches for a dataset of `numbers`."""
        return numbers.map(
            lambda numbers, width: self.pad(self._source, self._target, numbers, width),
            num_parallel_calls=tf.data.AUTOTUNE,
        )

    def pad(self, source, target, numbers, width):
        """Returns the batch of some pairs, as `batches` describes it.

        Args:
            source, target: Ragged token ids, [pairs, (S)] and [pairs, (T)].
            numbers: Which pairs, [B].
            width: Number of tokens to fill them up to.
        """

        def rows(side):
            ids = tf.cast(tf.gather(side, numbers), tf.int32)
            return ids.to_tensor(self._pad_id, shape=tf.stack([-1, width]))  # [B, width]

        source, labels = rows(source), rows(target)
        words = tf.where(tf.equal(labels, self._eos_id), self._pad_id, labels)
        begin = tf.fill([tf.shape(labels)[0], 1], self._bos_id)
        target = tf.concat([begin, words[:, :-1]], axis=1)
        return {"source": source, "target": target}, labels

    def _make_tensors(self, batch_tokens, buckets):
        """The plan as tensors: the order, the bucket of each pair in it, and the three cuts.

        Made outside of any graph, of which they would be constants otherwise, once for each use.
        """
        plan = self._plan(batch_tokens, buckets)
        sizes = [end - begin for begin, end in plan.segments]
        bucket = np.repeat(np.arange(len(sizes)), sizes)
        arrays = (plan.order, bucket, plan.starts, plan.rows, plan.widths)
        with tf.init_scope(), tf.device("CPU:0"):  # or a GPU would hold what tf.data reads
            return [tf.constant(array, tf.int64) for array in arrays]

    def steps(self, batch_tokens, buckets=16):
        """Returns the number of batches of an epoch."""
        return len(self._plan(batch_tokens, buckets).starts)

    def padding(self, batch_tokens, buckets=16):
        """Returns the share of padding among the source and target tokens of epoch 0's batches."""
        places = 2 * self._plan(batch_tokens, buckets).tokens
        lengths = self._source.row_lengths() + self._target.row_lengths()
        return 1 - int(tf.reduce_sum(tf.gather(lengths, self.drawn(0)))) / places


def _shuffled(order, bucket, batches, seed, epoch):
    """The order of the pairs, each within its bucket, and the order of the batches."""
    seeds = tf.stack([tf.cast(seed, tf.int64), tf.cast(epoch, tf.int64)])
    of_pairs, of_batches = (
        tf.random.stateless_uniform([count], each, None, None, tf.uint32, alg="philox")
        for count, each in (
            (len(order), tf.random.fold_in(seeds, 0)),
            (batches, tf.random.fold_in(seeds, 1)),
        )
    )
    keys = tf.bitwise.left_shift(bucket, 32) + tf.cast(of_pairs, tf.int64)
    return tf.gather(order, tf.argsort(keys)), tf.argsort(tf.cast(of_batches, tf.int64))


def _weights_of(weights, kept):
    """The weights of the pairs that are kept."""
    if weights is None:
        return None
    if len(weights) != len(kept):
        raise ValueError(
            "`weights` must hold a number for each of `pairs`. "
            f"Received: {len(weights)} for {len(kept)}."
        )
    return np.ascontiguousarray(weights[kept], np.float64)


def _ragged(chunks):
    """Joins (ids, lengths) of many batches into one `tf.RaggedTensor`."""
    values, lengths = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    with tf.device("CPU:0"):  # a GPU is no place for a corpus, and tf.data could not read it there
        return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
