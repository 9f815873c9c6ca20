"""The kinds of signatures of a SavedModel that generates text."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Found
from keras_transformer.export.saved_model.inputs import of_these_shapes
from keras_transformer.export.searches import RequestedSearch
from keras_transformer.tasks.generator import SENTENCES, SOURCE
from keras_transformer.tasks.token_rows import assertions


class Endpoint:
    """A signature: inputs, a search, and named outputs, all with the same first axis.

    Args:
        name: The signature's name.
        search: The `ModelSearch`.
        graph: The same in a graph.
        beam: The `Beam` of all endpoints with one.
        several: Whether it answers with all M outputs of a sentence; otherwise with the best one,
            without that axis.

    Attributes:
        pipeline: The `Generator`, which knows the vocabulary and the longest length L.
        inputs: The `tf.TensorSpec`s of the inputs.
        last_axes: The letters of an output's last axes, by its name, where it has other than the
            batch and the n-best list.
        function: The `tf.function` to export, from the inputs to a dictionary.
    """

    inputs = ()
    last_axes = {}

    def __init__(self, name, search, graph, beam, several):
        self.name, self.search, self.beam = name, search, beam
        self.pipeline = search.pipeline
        self._graph, self._several = graph, several
        answer = of_these_shapes(self.answer, {spec.name: spec for spec in self.inputs})
        self.function = tf.function(answer, input_signature=self.inputs, autograph=False)

    def answer(self, *inputs):
        """Returns the outputs for the inputs, by name."""
        raise NotImplementedError

    def searches(self, sentences):
        """Returns for each of a list of strings the search by which its answer is judged."""
        return [self.search.search] * len(sentences)

    def example(self, sentences):
        """Returns the inputs that request the translation of a list of strings, by name."""
        raise NotImplementedError

    def _find(self, *inputs):
        """Returns the `Found` of the search."""
        return Found(**self._graph(*inputs))

    def _answers(self, value):
        """`[B, M, ...]` as it is, or the first of each sentence, `[B, ...]`."""
        return value if self._several else tf.squeeze(value, 1)


class Sentences(Endpoint):
    """Strings to translations.

    `sentences`, string `[B]`, UTF-8, to `translation` (of a language model `text`), string, and
    `score`, float32, both `[B]`, or `[B, M]` with the best first; and `truncated`, boolean `[B]`:
    whether the sentence was longer than `max_length` tokens and was cut. An empty sentence stays
    empty, where a model translates. Where a search finds fewer than M, the others are empty and
    have a score of -1e9. So is all that a string gets which is not UTF-8; the other sentences of
    its batch are as without it.
    """

    inputs = (SENTENCES,)

    def answer(self, sentences):  # noqa: D102
        return self._written(self._translate(sentences))

    def _translate(self, sentences, *settings):
        """Returns the outputs that `Generator.generate` has for the search."""
        return self.pipeline.generate(sentences, lambda ids: self._find(ids, *settings))

    def _written(self, outputs):
        return {
            self.pipeline.output: self._answers(outputs["text"]),
            "score": self._answers(outputs["score"]),
            "truncated": outputs["truncated"],
        }

    def example(self, sentences):  # noqa: D102
        return {"sentences": tf.constant(sentences, tf.string, [len(sentences)])}


class SentencesAndSettings(Sentences):
    """Strings to their best translations, by the search that the request names.

    `sentences`, string `[B]`, and for each of them `beam_size`, int32 `[B]`, from 1 to the size of
    the beam N; `length_penalty`, float32 `[B]`, see `beam_decode`; and `max_length`, int32 `[B]`,
    the longest output in tokens; to what `Sentences` gives, `[B, M]`. Of `beam_size` hypotheses no
    more than `beam_size` are given. Settings that are out of range are an error.
    """

    inputs = (*Sentences.inputs, *RequestedSearch.settings)

    def answer(self, sentences, beam_size, length_penalty, max_length):  # noqa: D102
        settings = beam_size, length_penalty, max_length
        with tf.control_dependencies(self._checks(sentences, *settings)):
            sentences = tf.identity(sentences)
        return self._written(self._translate(sentences, *settings))

    def _checks(self, sentences, beam_size, length_penalty, max_length):
        """Assertions about the settings."""
        settings = beam_size, length_penalty, max_length
        hypotheses, (shortest, longest) = self.beam.size, self._lengths()
        checks = {
            f"`{spec.name}` must have one number for each of `sentences`.": tf.equal(
                tf.size(values), tf.size(sentences)
            )
            for spec, values in zip(RequestedSearch.settings, settings, strict=True)
        }
        checks |= {
            f"`beam_size` must be from 1 to {hypotheses}.": (beam_size >= 1)
            & (beam_size <= hypotheses),
            # Not a number is not below infinity either.
            "`length_penalty` must be at least 0 and finite.": (length_penalty >= 0)
            & (length_penalty < float("inf")),
            f"`max_length` must be from {shortest} to {longest}.": (max_length >= shortest)
            & (max_length <= longest),
        }
        return assertions(checks)

    def _lengths(self):
        return self.beam.min_length, self.pipeline.max_length

    def searches(self, sentences):
        """Returns the searches that `example` requests, one for each sentence."""
        settings = self.example(sentences)
        penalties, lengths = (settings[name].numpy() for name in ("length_penalty", "max_length"))
        return [
            self.search.requested(float(penalty), int(length))
            for penalty, length in zip(penalties, lengths, strict=True)
        ]

    def example(self, sentences):
        """Returns inputs by name; the settings are of every kind, each sentence has its own."""
        numbers = np.array([len(sentence) for sentence in sentences], "int32")
        shortest, longest = self._lengths()
        return {
            **super().example(sentences),
            "beam_size": tf.constant(1 + numbers % self.beam.size, tf.int32),
            "length_penalty": tf.constant(0.5 * (numbers % 3), tf.float32),
            "max_length": tf.constant(longest - numbers % (longest - shortest + 1), tf.int32),
        }


class Alignments(Sentences):
    """Strings to the best translation of each and what its tokens attended to in the source.

    `sentences`, string `[B]`, UTF-8, to what `Sentences` gives; `tokens`, int32 `[B, T]`;
    `source_pieces`, string `[B, S]`, and `target_pieces`, string `[B, T]`, as SentencePiece writes
    them, the end of the sentence included; and `alignment`, float32 `[B, T, S]`. S and T are the
    lengths of the longest source and translation of the batch. After the end, tokens are
    `pad_id`, pieces are empty and weights are 0. Of an empty sentence there is only the end of
    the source.
    """

    last_axes = {
        "tokens": ("T",),
        "source_pieces": ("S",),
        "target_pieces": ("T",),
        "alignment": ("T", "S"),
    }

    def answer(self, sentences):  # noqa: D102
        outputs, pad_id = self._translate(sentences), self.pipeline.target_tokenizer.pad_id
        tokens = self._answers(outputs["found"].tokens)  # [B, L]
        source = outputs["source"].to_tensor(pad_id)  # [B, S]
        empty = tf.expand_dims(outputs["empty"], 1)  # [B, 1]
        real = tf.not_equal(tokens, pad_id) & ~empty  # [B, L]
        columns = tf.range(1, real.shape[1] + 1)  # [L]
        longest = tf.reduce_max(tf.where(tf.reduce_any(real, axis=0), columns, 0))  # T
        real = real[:, :longest]  # [B, T]
        tokens = tf.where(real, tokens[:, :longest], pad_id)
        # A compiled search has padded the sources: S may be less than the width it looked at.
        weights = self._answers(outputs["found"].alignment)  # [B, L, S or more]
        weights = weights[:, :longest, : tf.shape(source)[1]]  # [B, T, S]
        return {
            **self._written(outputs),
            "tokens": tokens,
            "source_pieces": _pieces(self.pipeline.source_tokenizer, source),
            "target_pieces": _pieces(self.pipeline.target_tokenizer, tokens),
            "alignment": tf.where(tf.expand_dims(real, 2), weights, 0.0),
        }


def _pieces(tokenizer, ids):
    """Names of ids. TensorFlow Serving knows no operation of SentencePiece that gives them."""
    names = tokenizer.pieces(range(tokenizer.vocab_size))
    names[tokenizer.pad_id] = ""
    return tf.gather(tf.constant(names), ids)


class Ids(Endpoint):
    """Token ids to token ids.

    `source`, int32 `[B, S]`, each row ending in `eos_id`, to `tokens`, int32 `[B, L]`, each row
    ending in `eos_id` and then padding, and `score`, float32 `[B]`; or `[B, M, L]` and `[B, M]`
    with the best first. Whatever follows the first `eos_id` of a row is ignored: TensorFlow Serving
    pads the rows of a batch with the first id of a request, not with `pad_id`. A row without
    `eos_id`, longer than `max_length`, or with ids that are not in the vocabulary is an error.
    """

    inputs = (SOURCE,)
    last_axes = {"tokens": ("L",)}

    def answer(self, source):  # noqa: D102
        _, of_ids = self.pipeline.signatures(self._find)
        return {name: self._answers(value) for name, value in of_ids.function(source).items()}

    def example(self, sentences):  # noqa: D102
        sentences = tf.constant(sentences, tf.string, [len(sentences)])
        return {"source": self.pipeline.encode(sentences)[0]}
