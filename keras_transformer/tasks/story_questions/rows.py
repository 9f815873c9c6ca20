"""Rows of token ids: a question and the sentences of a story."""

import tensorflow as tf

from keras_transformer.tensors import Tensor


def story_rows(
    tokenizer, story, question, longest, memory_size=None
) -> tuple[tf.RaggedTensor, Tensor]:
    """Returns rows of token ids: question; `bos_id` and a sentence, several times; `eos_id`.

    The oldest sentences are left out if a row would be too long. A question is truncated to half
    of a row. Sentences without tokens are left out.

    Args:
        tokenizer: A `Tokenizer`.
        story: Strings `[B]` with a sentence on each line, the oldest first.
        question: Strings `[B]`.
        longest: Maximum length of a row.
        memory_size: Maximum number of sentences. `None`: no limit.

    Returns:
        Ragged token ids `[B, (S)]`, int32, and whether something was left out, boolean `[B]`.
    """
    question = tokenizer.tokenize(question)  # [B, (Q)]
    limit = max(longest // 2, 1)
    truncated = question.row_lengths() > limit  # [B]
    question = question[:, :limit]
    lines = tf.strings.split(story, "\n")  # [B, (N)]
    ids = lines.with_values(tokenizer.tokenize(lines.values))  # [B, (N), (W)]
    lengths = lines.with_values(ids.values.row_lengths())  # [B, (N)]
    sizes = lengths.to_tensor(0)  # [B, N], 0 for a sentence without tokens
    exists = sizes > 0
    after = tf.cumsum(sizes + tf.cast(exists, sizes.dtype), axis=1, reverse=True)
    space = tf.cast(longest - 1, sizes.dtype) - question.row_lengths()  # [B], for the story
    kept = exists & (after <= tf.expand_dims(space, 1))
    if memory_size is not None:
        recent = tf.cumsum(tf.cast(exists, tf.int32), axis=1, reverse=True)
        kept &= recent <= memory_size
    truncated |= tf.reduce_any(exists & ~kept, axis=1)
    is_kept = tf.RaggedTensor.from_tensor(kept, lengths=lines.row_lengths())  # [B, (N)]
    ids = tf.ragged.boolean_mask(ids, is_kept)
    begins = tf.fill([tf.shape(ids.values.row_lengths())[0], 1], tokenizer.bos_id)
    sentences = tf.concat([begins, ids.values], axis=1)
    words = ids.with_values(sentences).merge_dims(1, 2)  # [B, (S)]
    ends = tf.fill([tf.shape(story)[0], 1], tokenizer.eos_id)
    return tf.concat([question, words, ends], axis=1), truncated
