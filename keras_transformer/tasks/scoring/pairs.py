"""Pairs of texts in a graph: two texts and the marks around them in one row of tokens."""

import tensorflow as tf

from keras_transformer.tensors import Tensor


def encode_pairs(tokenizer, layout, first, second, longest) -> tuple[Tensor, Tensor]:
    """Tokenises pairs of texts for a model that reads both as one row.

    A pair that is too long loses tokens from the end of the longer text until both are equally
    long, and then from both in turn: the truncation `longest_first` of `transformers`.

    Args:
        tokenizer: A `Tokenizer`.
        layout: The `PairLayout`, with `begins`.
        first, second: Strings, `[B]`.
        longest: Maximum number of tokens of a row, including its marks.

    Returns:
        Ragged token ids `[B, (S)]`, and whether a text was truncated, `[B]`.
    """
    # A text beyond the limit in bytes would be truncated in tokens anyway, see `strings.encode`.
    limit = tokenizer.bytes_per_token * longest
    texts = [tokenizer.tokenize(tf.strings.substr(text, 0, limit)) for text in (first, second)]
    sizes = [text.row_lengths() for text in texts]
    kept = longest_first(*sizes, longest - layout.marks)
    texts = [
        tf.RaggedTensor.from_row_lengths(_flat_beginnings(text, size), size, validate=False)
        for text, size in zip(texts, kept, strict=True)
    ]
    cut = [before > after for before, after in zip(sizes, kept, strict=True)]
    cut += [tf.strings.length(text) > limit for text in (first, second)]
    rows = tf.size(kept[0])

    def column(token):
        return tf.RaggedTensor.from_tensor(tf.fill([rows, 1], token))

    separators = [column(getattr(tokenizer, layout.separator))] * layout.separators
    parts = [column(tokenizer.bos_id), texts[0], *separators, texts[1], column(tokenizer.eos_id)]
    return tf.concat(parts, axis=1), tf.reduce_any(tf.stack(cut), axis=0)


def longest_first(first, second, space) -> tuple[Tensor, Tensor]:
    """Returns the lengths to which two texts are truncated, `[B]` each.

    Args:
        first, second: Numbers of tokens, int64 `[B]`.
        space: Maximum sum of both.
    """
    space = tf.cast(space, first.dtype)
    shorter = tf.minimum(first, second)
    longer = tf.where(
        shorter > space, shorter, tf.maximum(shorter, space - shorter)
    )  # if only the longer text is truncated
    longer = tf.minimum(longer, tf.maximum(first, second))
    both = shorter + longer > space
    half = space // 2
    shorter = tf.where(both, half, shorter)
    longer = tf.where(both, space - half, longer)
    swapped = first > second
    return tf.where(swapped, longer, shorter), tf.where(swapped, shorter, longer)


def _flat_beginnings(texts, sizes):
    """Returns the first `sizes` tokens of each row of ragged `[B, (T)]`, in one vector."""
    begins = texts.row_splits[:-1]
    places = tf.ragged.range(begins, begins + sizes)
    return tf.gather(texts.flat_values, places.flat_values)
