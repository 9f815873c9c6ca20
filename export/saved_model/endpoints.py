"""Kinds of signatures of a SavedModel that generates text."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Found
from keras_transformer.export.saved_model.inputs import with_checked_shapes
from keras_transformer.export.searches import RequestedSearch
from keras_transformer.tasks.generator import SENTENCES, SOURCE
from keras_transformer.tasks.results import COMPLETE
from keras_transformer.tasks.token_rows import assertions
from keras_transformer.tensors import Tensor

LANGUAGES = {
    side: tf.TensorSpec([None], tf.string, name=f"{side}_language") for side in ("source", "target")
}


class Endpoint:
    """A signature: named inputs, a search, and named outputs, all with the same first axis.

    Args:
        name: Name of the signature.
        search: The `ModelSearch`.
        graph: The same search as a graph.
        beam: The `Beam` that all endpoints with a beam share.
        several: Whether it returns all M outputs of each sentence. Otherwise it returns the best
            output, without the axis M.

    Attributes:
        pipeline: The `Generator`, with the vocabulary and the maximum length L.
        inputs: The `tf.TensorSpec`s of the inputs.
        last_axes: Letters of the axes of an output after batch and n-best list, by its name.
        function: The `tf.function` to export. It takes the inputs and returns a dictionary.
    """

    inputs = ()
    last_axes = {}

    def __init__(self, name, search, graph, beam, several):
        self.name, self.search, self.beam = name, search, beam
        self.pipeline = search.pipeline
        self._graph, self._several = graph, several
        answer = with_checked_shapes(self.answer, {spec.name: spec for spec in self.inputs})
        self.function = tf.function(answer, input_signature=self.inputs, autograph=False)

    def answer(self, *inputs) -> dict[str, Tensor]:
        """Returns the outputs for the inputs, a dictionary."""
        raise NotImplementedError

    def release(self) -> None:
        """Frees the graphs, after which `function` cannot be called."""
        del self.function, self._graph

    def searches(self, sentences) -> list:
        """Returns the search with which the answer to each of a list of strings is compared."""
        return [self.search.search] * len(sentences)

    def example(self, sentences) -> dict[str, Tensor]:
        """Returns the inputs of a request for a list of strings, a dictionary."""
        raise NotImplementedError

    def _find(self, *inputs):
        """Runs the search and returns its `Found`."""
        return Found(**self._graph(*inputs))

    def _answers(self, value):
        """Returns `[B, M, ...]` unchanged, or the best output of each sentence, `[B, ...]`."""
        return value if self._several else tf.squeeze(value, 1)


class Sentences(Endpoint):
    """Signature from strings to generated texts.

    The input is `sentences`, string `[B]`, in UTF-8. The outputs are

    - the text, string `[B]`, or `[B, M]` with the best first; named `translation` for a translator
      and `text` for a language model;
    - `score`, float32, of the same shape;
    - `truncated`, boolean `[B]`: whether the sentence had more than `max_length` tokens and was
      truncated;
    - `complete`, boolean, of the shape of the score: whether the output ended before its maximum
      length.

    The translation of an empty sentence is empty. If a search finds fewer than M outputs, the
    others are empty with a score of -1e9. A string that is not valid UTF-8 has only such outputs
    and does not affect the other sentences of its batch.
    """

    inputs = (SENTENCES,)

    def answer(self, sentences) -> dict[str, Tensor]:  # noqa: D102
        return self._written(self._translate(sentences))

    def _translate(self, sentences, *settings):
        """Returns the outputs of `Generator.generate` with the search."""
        return self.pipeline.generate(sentences, lambda ids: self._find(ids, *settings))

    def _written(self, outputs):
        """Returns the outputs of the signature."""
        return {
            self.pipeline.output: self._answers(outputs["text"]),
            "score": self._answers(outputs["score"]),
            "truncated": outputs["truncated"],
            COMPLETE: self._answers(outputs[COMPLETE]),
        }

    def _real_tokens(self, outputs):
        """Returns the tokens of the outputs and which of them are real, `[B, T]` each.

        T is the length of the longest output. An empty sentence has no tokens.
        """
        pad_id = self.pipeline.target_tokenizer.pad_id
        tokens = self._answers(outputs["found"].tokens)  # [B, L]
        empty = tf.expand_dims(outputs["empty"], 1)  # [B, 1]
        real = tf.not_equal(tokens, pad_id) & ~empty  # [B, L]
        columns = tf.range(1, real.shape[1] + 1)  # [L]
        longest = tf.reduce_max(tf.where(tf.reduce_any(real, axis=0), columns, 0))  # T
        real = real[:, :longest]  # [B, T]
        return tf.where(real, tokens[:, :longest], pad_id), real

    def example(self, sentences) -> dict[str, Tensor]:  # noqa: D102
        return {"sentences": tf.constant(sentences, tf.string, [len(sentences)])}


class SentencesAndSettings(Sentences):
    """Signature from strings to texts, with settings of the search in the request.

    The inputs are `sentences`, string `[B]`, and for each of them `beam_size`, int32 `[B]`, from 1
    to the size N of the beam; `length_penalty`, float32 `[B]`, see `Beam`; and
    `max_length`, int32 `[B]`, the maximum number of new tokens. The outputs are the same as in
    `Sentences`, `[B, M]`, of which at most `beam_size` are filled. Settings that are out of range
    are an error.
    """

    inputs = (*Sentences.inputs, *RequestedSearch.settings)

    def answer(self, sentences, beam_size, length_penalty, max_length) -> dict[str, Tensor]:  # noqa: D102
        settings = beam_size, length_penalty, max_length
        with tf.control_dependencies(self._checks(sentences, *settings)):
            sentences = tf.identity(sentences)
        return self._written(self._translate(sentences, *settings))

    def _checks(self, sentences, beam_size, length_penalty, max_length):
        """Returns assertions about the settings."""
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
            # The second comparison also excludes NaN.
            "`length_penalty` must be at least 0 and finite.": (length_penalty >= 0)
            & (length_penalty < float("inf")),
            f"`max_length` must be from {shortest} to {longest}.": (max_length >= shortest)
            & (max_length <= longest),
        }
        return assertions(checks)

    def _lengths(self):
        return self.beam.min_length, self.pipeline.max_length

    def searches(self, sentences) -> list:
        """Returns the searches that `example` requests, one per sentence."""
        settings = self.example(sentences)
        penalties, lengths = (settings[name].numpy() for name in ("length_penalty", "max_length"))
        return [
            self.search.requested(float(penalty), int(length))
            for penalty, length in zip(penalties, lengths, strict=True)
        ]

    def example(self, sentences) -> dict[str, Tensor]:
        """Returns the inputs of a request whose settings vary from sentence to sentence."""
        numbers = np.array([len(sentence) for sentence in sentences], "int32")
        shortest, longest = self._lengths()
        return {
            **super().example(sentences),
            "beam_size": tf.constant(1 + numbers % self.beam.size, tf.int32),
            "length_penalty": tf.constant(0.5 * (numbers % 3), tf.float32),
            "max_length": tf.constant(longest - numbers % (longest - shortest + 1), tf.int32),
        }


class SentencesAndTargets(Sentences):
    """Signature from strings to texts, with the target language of each sentence in the request.

    The inputs are `sentences`, string `[B]`, and for each of them `target_language`, string `[B]`,
    the code of a language; the empty string stands for the model's default. The outputs are those
    of `Sentences`. An unknown code is an error.
    """

    inputs = (*Sentences.inputs, LANGUAGES["target"])

    def answer(self, sentences, target_language) -> dict[str, Tensor]:  # noqa: D102
        return self._in_languages(sentences, {"target": target_language})

    def _in_languages(self, sentences, codes):
        """Returns the outputs for the codes of the languages of each side, `[B]`."""
        languages = self.pipeline.source_tokenizer.languages
        checks, ids = {}, []
        for side in languages.sides:
            given, name = codes[side], f"`{side}_language`"
            numbers, known = languages.look_up(side, given)
            ids.append(numbers)
            checks[f"{name} must have one code for each of `sentences`."] = tf.equal(
                tf.size(given), tf.size(sentences)
            )
            checks[f"{name} must be languages of the model, such as {languages.examples()}."] = (
                known
            )
        with tf.control_dependencies(assertions(checks)):
            before = [tf.fill(tf.shape(ids[0]), number) for number in languages.before]
            front = tf.stack([*before, *ids], axis=1)  # [B, N]
        return self._written(self.pipeline.generate(sentences, self._find, front))

    def example(self, sentences) -> dict[str, Tensor]:
        """Returns the inputs of a request that names the default languages or leaves them out."""
        languages = self.pipeline.source_tokenizer.languages
        codes = {f"{side}_language": getattr(languages, side) for side in languages.sides}
        named = {
            spec.name: tf.constant(
                [("", codes[spec.name])[len(sentence) % 2] for sentence in sentences], tf.string
            )
            for spec in self.inputs[1:]
        }
        return {**super().example(sentences), **named}


class SentencesAndLanguages(SentencesAndTargets):
    """Signature from strings to texts, with both languages of each sentence in the request.

    It also has the input `source_language`, string `[B]`; see `SentencesAndTargets`.
    """

    inputs = (*Sentences.inputs, LANGUAGES["source"], LANGUAGES["target"])

    def answer(self, sentences, source_language, target_language) -> dict[str, Tensor]:  # noqa: D102
        codes = {"source": source_language, "target": target_language}
        return self._in_languages(sentences, codes)


class Alignments(Sentences):
    """Signature from strings to the best translation of each, with its attention to the source.

    The input is `sentences`, string `[B]`, in UTF-8. The outputs are the same as in `Sentences` and

    - `tokens`, int32 `[B, T]`;
    - `source_pieces`, string `[B, S]`, and `target_pieces`, string `[B, T]`, as SentencePiece
      writes them, including the end of the sentence;
    - `alignment`, float32 `[B, T, S]`, the attention of each target token to the source tokens.

    S and T are the lengths of the longest source and translation of the batch. After the end of a
    sentence, tokens are `pad_id`, pieces are empty and weights are 0. An empty sentence has no
    pieces but the end of its source.
    """

    last_axes = {"tokens": "T", "source_pieces": "S", "target_pieces": "T", "alignment": "TS"}

    def answer(self, sentences) -> dict[str, Tensor]:  # noqa: D102
        outputs, pad_id = self._translate(sentences), self.pipeline.target_tokenizer.pad_id
        source = self.pipeline.model.read_source(outputs["source"].to_tensor(pad_id))  # [B, S]
        tokens, real = self._real_tokens(outputs)  # [B, T]
        longest = tf.shape(real)[1]  # T
        # A compiled search pads the sources, so its weights may have more than S columns.
        weights = self._answers(outputs["found"].alignment)  # [B, L, S or more]
        weights = weights[:, :longest, : tf.shape(source)[1]]  # [B, T, S]
        return {
            **self._written(outputs),
            "tokens": tokens,
            "source_pieces": _pieces(self.pipeline.source_tokenizer, source),
            "target_pieces": _pieces(self.pipeline.target_tokenizer, tokens),
            "alignment": tf.where(tf.expand_dims(real, 2), weights, 0.0),
        }


class TokenScores(Sentences):
    """Signature from strings to the best output of each, with the scores of its tokens.

    The input is `sentences`, string `[B]`, in UTF-8. The outputs are the same as in `Sentences` and

    - `target_pieces`, string `[B, T]`: the tokens, including the end of the sentence;
    - `token_scores`, float32 `[B, T]`: the log-probability of each.

    T is the length of the longest output of the batch. After the end of an output, pieces are empty
    and scores are 0. An empty sentence has no tokens.
    """

    last_axes = {"target_pieces": "T", "token_scores": "T"}

    def answer(self, sentences) -> dict[str, Tensor]:  # noqa: D102
        outputs = self._translate(sentences)
        tokens, real = self._real_tokens(outputs)  # [B, T]
        scores = self._answers(outputs["found"].token_scores)[:, : tf.shape(real)[1]]  # [B, T]
        return {
            **self._written(outputs),
            "target_pieces": _pieces(self.pipeline.target_tokenizer, tokens),
            "token_scores": tf.where(real, scores, 0.0),
        }


def _pieces(tokenizer, ids):
    """Returns the pieces of ids; TensorFlow Serving has no SentencePiece operation for this."""
    names = tokenizer.pieces(range(tokenizer.vocab_size))
    names[tokenizer.pad_id] = ""
    return tf.gather(tf.constant(names), ids)


class Ids(Endpoint):
    """Signature from token ids to token ids.

    The input is `source`, int32 `[B, S]`, of which each row ends in `eos_id`. The outputs are
    `tokens`, int32 `[B, L]`, where each row ends in `eos_id` and is then padded; `score`, float32
    `[B]`; and `complete`, boolean `[B]`: whether the output ended before its maximum length. With
    a beam, they are `[B, M, L]` and `[B, M]` with the best first.

    Ids after the first `eos_id` of a row are ignored, because TensorFlow Serving pads the rows of
    a batch with the first id of a request, not with `pad_id`. A row is an error if it has no
    `eos_id`, is longer than `max_length`, or contains ids outside the vocabulary.
    """

    inputs = (SOURCE,)
    last_axes = {"tokens": "L"}

    def answer(self, source) -> dict[str, Tensor]:  # noqa: D102
        _, of_ids = self.pipeline.signatures(self._find)
        outputs = of_ids.strict(source=source)
        return {name: self._answers(outputs[name]) for name in ("tokens", "score", COMPLETE)}

    def example(self, sentences) -> dict[str, Any]:  # noqa: D102
        sentences = tf.constant(sentences, tf.string, [len(sentences)])
        return {"source": self.pipeline.encode(sentences)[0]}
