"""Tokenisation of texts word by word, in a graph."""

import tensorflow as tf

from keras_transformer.tensors import Tensor


def encode_words(tokenizer, texts, max_length=None) -> tuple[Tensor, Tensor, Tensor]:
    """Tokenises texts word by word, so that the tokens of each word are known.

    The result is the same as for the whole text if single spaces separate its words: tokens do not
    contain spaces inside, and byte-level BPE gets the space before a word. A word without tokens,
    such as a zero-width space, becomes the unknown token.

    Args:
        tokenizer: A `Tokenizer`.
        texts: `[B]`, string. Words are separated by ASCII white space.
        max_length: Maximum number of tokens, including the end token. `None`: no limit.

    Returns:
        Ragged token ids `[B, (S)]`, int32, with the marks of an encoded text; the index of the
        first token of each word, including words beyond the limit, ragged `[B, (W)]`, int64; and
        whether each text was truncated, `[B]`.
    """
    words = tf.strings.split(texts)  # [B, (W)]
    flat = words.flat_values
    limit = None if max_length is None else tokenizer.bytes_per_token * max_length
    if limit is not None:  # SentencePiece needs minutes for a megabyte in an unknown script
        flat = tf.strings.substr(flat, 0, limit)
    begins = tf.not_equal(tf.strings.substr(texts, 0, 1), "")
    begins &= tf.not_equal(tf.strings.strip(tf.strings.substr(texts, 0, 1)), "")  # no white space
    first = tf.gather(begins, words.value_rowids()) & tf.equal(_numbers(words), 0)  # [words]
    pieces = tokenizer.tokenize_words(flat, first)  # [words, (P)]
    missing = tf.equal(pieces.row_lengths(), 0)
    unknown = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(tf.cast(missing, tf.int32))], tokenizer.unk_id),
        tf.cast(missing, tf.int64),
        validate=False,
    )
    pieces = tf.concat([pieces, unknown], axis=1)
    lengths = pieces.row_lengths()  # [words]
    begins = tf.cumsum(lengths, exclusive=True)  # in the batch
    by_word = words.with_flat_values(begins)  # [B, (W)]
    splits = tf.gather(tf.concat([begins, [tf.reduce_sum(lengths)]], 0), words.row_splits)  # [B+1]
    first = by_word - tf.expand_dims(splits[:-1], 1)
    ids = tf.RaggedTensor.from_row_splits(pieces.flat_values, splits, validate=False)  # [B, (S-1)]
    truncated = tf.zeros([tf.shape(texts)[0]], tf.bool)
    if max_length is not None:
        is_long = words.with_flat_values(tf.strings.length(words.flat_values) > limit)
        truncated = ids.row_lengths() > max_length - tokenizer.num_marks
        truncated |= tf.reduce_any(is_long, axis=1)
        ids = ids[:, : max_length - tokenizer.num_marks]
    ends = tf.fill([tf.shape(texts)[0], 1], tokenizer.eos_id)
    ids = tf.concat([ids, tf.RaggedTensor.from_tensor(ends)], axis=1)
    if tokenizer.starts_with_bos:
        begin = tf.fill([tf.shape(texts)[0], 1], tokenizer.bos_id)
        ids, first = tf.concat([tf.RaggedTensor.from_tensor(begin), ids], axis=1), first + 1
    return ids, first, truncated


def _numbers(words):
    """Returns the number of each word in its text, counted from 0, `[words]`."""
    return tf.ragged.range(words.row_lengths()).flat_values
