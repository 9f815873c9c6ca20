"""The graphs that a `Translator` makes when they are needed: searches, scores, alignments.

Each is a `tf.function` of strings in which what can change is an argument. They are no methods of
the translator: every `tf.function` of a `tf.Module` would be part of its SavedModel.
"""

import tensorflow as tf

from keras_transformer.decoding import Greedy, score
from keras_transformer.tasks.translation import COLUMNS, translate_strings

STRINGS = tf.TensorSpec([None], tf.string)


def trace_search(translator, search, n_best):
    """A function of sentences and of the `inputs` of a search."""

    def translate(sentences, *values):
        asked = search.with_values(values)
        outputs = _translate(translator, sentences, asked, n_best=n_best)
        return {name: outputs[name] for name in COLUMNS}

    signature = [tf.TensorSpec([None], tf.string, name="sentences"), *search.inputs]
    return tf.function(translate, input_signature=signature, autograph=False)


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
        outputs = _translate(translator, sentences, Greedy(), alignment=(layer, head))
        return {
            **{name: outputs[name] for name in COLUMNS},
            "source": outputs["source"].to_tensor(translator.model.config.pad_id),  # [B, S]
            "target": tf.squeeze(outputs["found"].tokens, 1),  # [B, L]
            "weights": tf.squeeze(outputs["found"].alignment, 1),  # [B, L, S]
        }

    return tf.function(align, input_signature=[STRINGS], autograph=False)


def _translate(translator, sentences, search, **options):
    """What `translate_strings` makes of a search of the translator's model."""
    model, longest = translator.model, translator.max_length

    def decode(ids):
        source = ids.to_tensor(model.config.pad_id)  # [B, S]
        return search(model, source, cache_length=longest, **options)

    return translate_strings(translator.tokenizer, longest, decode, sentences)
