"""Graphs of a pipeline that are traced on first use: searches, scores and alignments.

Each graph is a `tf.function` of strings, with an argument for everything that can vary. The graphs
are not methods of the pipeline, because a SavedModel contains every `tf.function` of a `tf.Module`.
"""

import functools
import threading
from collections.abc import Callable

import tensorflow as tf

from keras_transformer.decoding import score
from keras_transformer.tasks.results import COLUMNS, COMPLETE
from keras_transformer.tasks.strings import encode
from keras_transformer.text.languages import with_front

STRINGS = tf.TensorSpec([None], tf.string)
# Shared by all pipelines: a process crashed when threads traced several graphs at the same time.
TRACING = threading.RLock()


def traced_once(trace) -> Callable:
    """Returns a version of `trace` that traces each graph once, for all threads.

    The result is a function and not an object, so that a SavedModel does not track it.

    Args:
        trace: Function that returns a `tf.function` with an input signature, or a concrete
            function.
    """

    @functools.cache
    def traced(*arguments):
        graph = trace(*arguments)
        if hasattr(graph, "get_concrete_function"):
            graph.get_concrete_function()  # trace now: the first call is outside of the lock
        return graph

    def graph(*arguments):
        with TRACING:  # with `functools.cache` alone, every thread would trace a graph of its own
            return traced(*arguments)

    return graph


def trace_search(translator, search, n_best) -> Callable:
    """Returns a function of sentences, their languages if any, and the `inputs` of a search."""
    front = _front(translator)

    def translate(sentences, *values):
        languages, values = values[: len(front)], values[len(front) :]
        chosen = search.with_values(values)
        outputs = _translate(translator, sentences, chosen, *languages, n_best=n_best)
        return {name: outputs[name] for name in (*COLUMNS, COMPLETE)}

    signature = [tf.TensorSpec([None], tf.string, name="sentences"), *front, *search.inputs]
    return tf.function(translate, input_signature=signature, autograph=False)


def trace_score(translator) -> Callable:
    """Returns a function of sentences, their translations, and the languages if any."""

    def score_pairs(sources, targets, *front):
        pad_id, longest = translator.model.config.tokens.pad_id, translator.max_length
        tokenizers = translator.tokenizers.with_any_languages()
        (source, source_truncated), (target, target_truncated) = (
            _encoded(tokenizer, texts, longest, front)  # ragged [B, (S)] or [B, (T)]; [B]
            for tokenizer, texts in zip(tokenizers, (sources, targets), strict=True)
        )
        source, target = source.to_tensor(pad_id), _padded(_whole(target, target_truncated), pad_id)
        _, scores = score(translator.whole, source, target)
        real = tf.not_equal(target, pad_id)  # [B, T]
        return {
            "score": scores,
            "tokens": tf.reduce_sum(tf.cast(real, tf.int32), axis=1),
            "truncated": tf.logical_or(source_truncated, target_truncated),
        }

    signature = [STRINGS, STRINGS, *_front(translator)]
    return tf.function(score_pairs, input_signature=signature, autograph=False)


def _encoded(tokenizer, texts, longest, front):
    """Returns ragged ids with the languages in `front`, and whether each text was truncated."""
    ids, truncated, _ = encode(tokenizer, texts, longest)
    if front and tokenizer.languages is not None:
        ids = with_front(ids, front[0][:, : len(tokenizer.languages.sides)])
    return ids, truncated


def _front(translator):
    """Returns the specification of the ids of languages in front of a source, a list."""
    languages = translator.tokenizers.languages
    if languages is None:
        return []
    return [tf.TensorSpec([None, len(languages.sides)], tf.int32, name="languages")]


def trace_alignment(translator, search, layer, head) -> Callable:
    """Returns a function of the same arguments as that of `trace_search`, for one translation each.

    It also returns the attention weights of the translations.

    Args:
        translator: A `Translator`.
        search: A `Greedy`.
        layer: Number of the decoder's layer whose attention to the source is returned.
        head: Number of its head; `None` is the mean of all heads.
    """
    front = _front(translator)

    def align(sentences, *values):
        languages, values = values[: len(front)], values[len(front) :]
        chosen = search.with_values(values)
        outputs = _translate(translator, sentences, chosen, *languages, alignment=(layer, head))
        pad_id, target = (
            translator.model.config.tokens.pad_id,
            tf.squeeze(outputs["found"].tokens, 1),
        )
        return {
            **{name: outputs[name] for name in (*COLUMNS, COMPLETE)},
            "source": translator.model.read_source(outputs["source"].to_tensor(pad_id)),  # [B, S]
            "target": tf.where(tf.expand_dims(outputs["empty"], 1), pad_id, target),  # [B, L]
            "weights": tf.squeeze(outputs["found"].alignment, 1),  # [B, L, S]
        }

    signature = [STRINGS, *front, *search.inputs]
    return tf.function(align, input_signature=signature, autograph=False)


def _translate(translator, sentences, search, languages=None, **asked):
    """Returns the outputs of a search with the translator's model; see `Generator.generate`."""

    def find(source):  # [B, S]
        return search(translator.searched, source, translator.options(**asked))

    return translator.generate(sentences, find, languages)


def trace_text_score(generator) -> Callable:
    """Returns a function of texts that scores each from its first token on.

    If no token begins a text for the model, or for one of several, it scores each from its second
    token on.
    """
    hides_start = generator.hides_start

    def score_texts(texts):
        config, longest = generator.model.config, generator.max_length
        ids, truncated, _ = encode(generator.target_tokenizer, texts, longest)
        ids = _whole(ids, truncated)
        text = _padded(ids, config.tokens.pad_id)  # [B, T]
        tokens = tf.cast(ids.row_lengths(), tf.int32)
        prompt = tf.fill([tf.shape(text)[0], 1], config.tokens.eos_id)  # an empty prompt
        if hides_start:
            prompt = text[:, :1]
            tokens -= tf.cast(
                (tokens > 0) & tf.not_equal(prompt[:, 0], config.tokens.eos_id), tf.int32
            )
        _, scores = score(generator.whole, prompt, text)
        return {"score": scores, "tokens": tokens, "truncated": truncated}

    return tf.function(score_texts, input_signature=[STRINGS], autograph=False)


def _whole(ids, truncated):
    """Returns ragged ids in which truncated texts have no end token."""
    lengths = ids.row_lengths() - tf.cast(truncated, tf.int64)
    return tf.RaggedTensor.from_tensor(ids.to_tensor(), lengths=lengths)


def _padded(ids, pad_id):
    """Returns ragged ids as a tensor `[B, T]` with at least one column, also without any token."""
    padded = ids.to_tensor(pad_id)
    missing = tf.cast(tf.equal(tf.shape(padded)[1], 0), tf.int32)
    return tf.pad(padded, [[0, 0], [0, missing]], constant_values=pad_id)
