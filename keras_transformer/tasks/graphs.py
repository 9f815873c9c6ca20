"""The graphs that a `Translator` makes when they are needed: samples, scores, alignments.

Each is a `tf.function` of strings in which what can change is an argument. They are no methods of
the translator: every `tf.function` of a `tf.Module` would be part of its SavedModel.
"""

import tensorflow as tf

from keras_transformer.decoding import greedy_decode, sample_decode, score

STRINGS = tf.TensorSpec([None], tf.string)


def trace_sample(translator):
    """A function of sentences, temperature, top k, top p and seeds `[B, 2]`."""

    def sample(sentences, temperature, top_k, top_p, seed):
        source, truncated, empty = translator.encode(sentences)  # [B, S], [B], [B]
        tokens, scores = sample_decode(
            translator.model, source, temperature, top_k, top_p, seed, translator.max_length
        )
        return {
            "translation": tf.where(empty, "", translator.tokenizer.decode(tokens)),
            "score": tf.where(empty, 0.0, scores),
            "truncated": truncated,
        }

    number, count = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)
    seeds = tf.TensorSpec([None, 2], tf.int32)
    signature = [STRINGS, number, count, number, seeds]
    return tf.function(sample, input_signature=signature, autograph=False)


def trace_score(translator):
    """A function of sentences and their translations."""

    def score_pairs(sources, targets):
        source, source_cut, _ = translator.encode(sources)  # [B, S], [B]
        target, target_cut, _ = translator.encode(targets)  # [B, T], [B]
        _, scores = score(translator.model, source, target)
        said = tf.not_equal(target, translator.model.config.pad_id)  # [B, T]
        return {
            "score": scores,
            "tokens": tf.reduce_sum(tf.cast(said, tf.int32), axis=1),
            "truncated": tf.logical_or(source_cut, target_cut),
        }

    return tf.function(score_pairs, input_signature=[STRINGS, STRINGS], autograph=False)


def trace_alignment(translator, layer, head):
    """A function of sentences, for one layer and head of the decoder."""

    def align(sentences):
        source, truncated, empty = translator.encode(sentences)  # [B, S], [B], [B]
        found = greedy_decode(
            translator.model, source, translator.max_length, alignment=(layer, head)
        )
        texts = translator.tokenizer.decode(found["tokens"])
        return {
            "source": source,
            "target": found["tokens"],
            "weights": found["alignment"],
            "translation": tf.where(empty, "", texts),
            "score": tf.where(empty, 0.0, found["scores"]),
            "truncated": truncated,
        }

    return tf.function(align, input_signature=[STRINGS], autograph=False)
