"""Loaded SavedModels, as `keras-transformer translate` and `predict` use them."""

import dataclasses
import os
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Beam
from keras_transformer.decoding.search import check_search
from keras_transformer.export.fixed_searches import check_fixed
from keras_transformer.export.runtime import OpenGenerator, changed, refusals
from keras_transformer.export.saved_model.format import FORMAT
from keras_transformer.export.saved_model.metadata import read_beam, read_codec
from keras_transformer.export.saved_model.versions import newest_version, open_version
from keras_transformer.export.saved_model.worded import OpenWordStrings
from keras_transformer.export.worded import WORDS
from keras_transformer.options import LANGUAGES, OptionError
from keras_transformer.tasks.answering import PassAnswering
from keras_transformer.tasks.attention import Attention
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.results import COMPLETE, TOKEN_SCORES, TOKENS, Alignment, to_best
from keras_transformer.tasks.signatures import DEFAULT, OPTIONS
from keras_transformer.tasks.single_pass.pipeline import SinglePass
from keras_transformer.tasks.single_pass.result import Result
from keras_transformer.tasks.strings import check_sentence

PIECES = "target_pieces"  # an output
NO_ALIGNMENT = (
    "{} has no signature `alignment`, which returns attention weights. Export the model again with "
    "--alignment."
)


class SavedModelTranslator(OpenWordStrings, OpenGenerator):
    """A loaded SavedModel of a model that generates text.

    Its tokenizer is part of the graph. Any number of threads may share it.

    Args:
        path: Folder of a version, or of all versions, of which the newest is loaded.
        source_language, target_language: Codes of languages for the signature `languages`, only
            without a `search`. `None`: the defaults of the export.
        search: A `Beam` whose `size`, `length_penalty` and `max_length` are passed to the signature
            `search`. Its other settings must be those of the export, see `beam_with`, except that
            outputs have no limit that depends on the source (`extra_length=None`). `None`: the
            searches of `serving_default` and `n_best`.

    Raises:
        TypeError: If `search` is not a `Beam`.
        ValueError: If there is no SavedModel, it was exported from a model that does not generate
            text, or it fixes another value of a setting of the beam. If the beam is larger than the
            exported one, the first call raises the error.
    """

    opened_with = FORMAT.opened_with

    def __init__(
        self,
        path: str | os.PathLike,
        search: Beam | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ):
        if search is not None:
            check_search(search, Beam)
        path = newest_version(path)
        self._model, _, self._kind = open_version(path, Generator)
        self.blank, self.result = self._kind.blank, self._kind.result
        self.task, self.has_source = self._kind.task, self._kind.has_source
        self.path, self.search = path, search
        self._languages = source_language or "", target_language or ""
        self._check()

    def _check(self):
        """Raises a `ValueError` if the SavedModel has no signature for the search or languages."""
        if self.search is not None and "search" not in self._model.signatures:
            raise ValueError(f"{self.path} has no signature `search` for a beam. Export it again.")
        if self.search is not None:
            check_fixed(self.search, self.beam or Beam(), self.path, "max_length_ratio")
        if any(self._languages) and not self.has_languages:
            raise ValueError(f"{self.path} has no signature `languages`: its languages are fixed.")
        if any(self._languages) and {*self._named} - {*self._read}:
            raise ValueError(
                f"{self.path} does not read the language of a source: `source_language` must be "
                f"None. Received: {self._languages[0]!r}."
            )
        asked = (self.has_words, self.token_scores, self.search is not None, any(self._languages))
        if (self.has_words or self.token_scores) and sum(asked) > 1:
            raise ValueError(
                f"{self.path} has a signature for words and one for scores of tokens, each with "
                "its own search and languages: choose one of words, token scores, a search and "
                "languages."
            )
        if any(self._languages) and self.search is not None:
            raise ValueError(
                f"{self.path} has its own search for languages: `search` must be None."
            )

    @property
    def _named(self):
        """The chosen languages by the names of the inputs, a dictionary."""
        pairs = zip(LANGUAGES, self._languages, strict=True)
        return {name: code for name, code in pairs if code}

    @property
    def _read(self):
        """Names of the inputs for languages, a list."""
        _, inputs = self._model.signatures["languages"].structured_input_signature
        return [name for name in LANGUAGES if name in inputs]

    def _changed(self, **attributes):
        other = changed(self, **attributes)
        other._check()
        return other

    def with_search(self, search: Beam) -> "SavedModelTranslator":
        """Returns an object with another `Beam` for the signature `search`; see the argument.

        Raises:
            TypeError, ValueError: See the class.
        """
        check_search(search, Beam)
        other = self._changed(search=search)
        if 0 < other.max_outputs < search.size:
            raise ValueError(
                f"{self.path}: `beam_size` must be from 1 to {other.max_outputs}. Received: "
                f"search={search!r}."
            )
        return other

    def with_languages(  # noqa: D102
        self, source: str | None = None, target: str | None = None
    ) -> "SavedModelTranslator":
        if source is target is None:
            return self
        pairs = zip((source, target), self._languages, strict=True)
        return self._changed(_languages=tuple(given or own for given, own in pairs))

    @property
    def beam(self) -> Beam | None:
        """The `Beam` of the export, or `None` if the SavedModel does not name it."""
        return read_beam(self.path)

    def beam_with(self, **settings: Any) -> Beam:
        """Returns the `Beam` of the export with some settings changed.

        Raises:
            ValueError: If the export's beam has no length penalty that could be changed.
        """
        beam = self.beam
        if beam is not None and "length_penalty" in settings and not beam.has_exponent:
            raise OptionError("length_penalty", f"has no effect on {self.path}: see its README.md.")
        return dataclasses.replace(beam or Beam(), **settings)

    def n_best_batch(self, inputs: list[str], n: int) -> list[list]:  # noqa: D102
        self.check_no_words("n_best")
        if self.token_scores:
            raise ValueError(f"{self.path} returns scores of tokens of the best outputs only.")
        if any(self._languages):
            raise ValueError(f"{self.path} has fixed languages for several outputs.")
        return super().n_best_batch(inputs, n)

    @property
    def max_outputs(self) -> int:
        """Number of outputs that its signature for several returns; 0 without such a signature."""
        signature = self._model.signatures.get("n_best" if self.search is None else "search")
        return 0 if signature is None else signature.structured_outputs[self._kind.output].shape[1]

    def attention(self, sentence: str) -> dict[str, Attention]:
        """Returns the attention of each token of the translation to the source.

        Args:
            sentence: A string.

        Returns:
            `{"cross": Attention}` with one layer, and one head or the mean of all heads, as chosen
            in the export.

        Raises:
            TypeError: If `sentence` is not a string.
            ValueError: If it is empty, or the model was exported without `alignment`.
        """
        batch = tf.constant([check_sentence(sentence)])
        signature = self._model.signatures.get("alignment")
        if signature is None:
            raise ValueError(NO_ALIGNMENT.format(self.path))
        outputs = {name: value[0].numpy() for name, value in signature(sentences=batch).items()}
        target, source = (
            [piece.decode() for piece in outputs[f"{side}_pieces"]] for side in ("target", "source")
        )
        weights = outputs["alignment"][np.newaxis, np.newaxis]  # [1, 1, T, S]
        cut = bool(outputs["truncated"])
        return {"cross": Attention("cross", target, source, weights, False, cut)}

    @property
    def aligns(self) -> bool:  # noqa: D102
        return "alignment" in self._model.signatures

    @property
    def has_languages(self) -> bool:
        """`True` if requests choose languages."""
        return "languages" in self._model.signatures

    def _check_alignment(self):
        self.check_no_words("align")
        if not self.aligns:
            raise ValueError(NO_ALIGNMENT.format(self.path))

    def _align(self, sentences):
        outputs = self._model.signatures["alignment"](sentences=tf.constant(sentences))
        names = ("source_pieces", "target_pieces", "alignment")
        columns = (outputs.pop(name).numpy() for name in names)
        outputs["text"] = outputs[self._kind.output]
        each = {name: tf.expand_dims(outputs[name], 1) for name in ("text", "score", COMPLETE)}
        results = to_best({**each, "truncated": outputs["truncated"]}, self.result)
        return [_alignment(*row) for row in zip(*columns, results, strict=True)]

    def _generate(self, sentences, n=None, numbers=None):
        """Returns the outputs of the signature `n_best`; without `n` those of the default one.

        A chosen search or language has a signature of its own.
        """
        size = [len(sentences)]
        name, inputs = DEFAULT if n is None else "n_best", {}
        if self.search is not None:
            longest = self._model.signatures["tokens"].structured_outputs["tokens"].shape[-1]
            name, inputs = "search", {"beam_size": self.search.size}
            inputs["length_penalty"] = float(self.search.length_penalty)
            inputs["max_length"] = min(self.search.max_length or longest, longest)
        elif n is None and any(self._languages):
            name = "languages"
            inputs = {name: self._named.get(name, "") for name in self._read}
        inputs = {key: tf.fill(size, value) for key, value in inputs.items()}
        if self.has_words:
            name, inputs = WORDS, self.word_inputs(sentences, numbers)
        if self.token_scores and n is None:
            name = TOKEN_SCORES
        batch = tf.constant(sentences, tf.string, size)
        with refusals(self.path):  # a setting that the export does not allow, an unknown language
            outputs = self._model.signatures[name](sentences=batch, **inputs)
        if outputs["score"].shape.rank == 1:
            for key in {self._kind.output, "score", COMPLETE, PIECES, TOKEN_SCORES} & {*outputs}:
                outputs[key] = tf.expand_dims(outputs[key], 1)  # [B, M=1]
        names = {self._kind.output: "text", PIECES: TOKENS}  # as results call them
        return {names.get(key, key): outputs[key] for key in outputs}


class SavedModelSinglePass(PassAnswering):
    """A loaded SavedModel of a model that answers in one pass.

    Args:
        path: Folder of a version, or of all versions, of which the newest is loaded.

    Raises:
        ValueError: If there is no SavedModel, it was exported from a model that generates text, or
            its metadata is missing.

    Attributes:
        codec: Its `Codec`, or the class if the codec needs no metadata.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = newest_version(path)
        self._model, self._answer, kind = open_version(self.path, SinglePass)
        self.task, self.codec = kind.task, read_codec(self.path, kind.codec_class)
        self._chosen: Any = None

    @property
    def settings(self) -> tuple[str, ...]:  # noqa: D102
        return self.codec.choices.names

    @property
    def accepts(self) -> tuple[str, ...]:  # noqa: D102
        return *self.codec.choices.command_options, *self.settings

    def with_settings(self, **settings) -> "SavedModelSinglePass":
        """Returns an object with other defaults of what a request may choose.

        Raises:
            TypeError, ValueError: If the model does not have a choice or a value.
        """
        self.check_settings(settings)
        choices = (self._chosen or self.codec.choices).replaced(**settings)
        if OPTIONS not in self._model.signatures:  # without prompts, only "" can be chosen
            return self
        return changed(self, _chosen=choices)

    def answer_batch(self, examples: list) -> list[Result]:
        """Returns a `Result` for each of a list of examples, computed as few batches as possible.

        Raises:
            ValueError: If the model refuses an example, such as an image of the wrong size.
        """
        examples = self.codec.check(examples)
        size = self.codec.most or max(1, len(examples))
        batches = (examples[begin : begin + size] for begin in range(0, len(examples), size))
        return [result for batch in batches for result in self._answer_together(batch)]

    def _answer_together(self, examples):
        options = {} if self._chosen is None else self._chosen.request(len(examples))
        return self.codec.results(self.run(**self.codec.request(examples), **options))

    def answer_part(self, part, texts) -> dict[str, np.ndarray]:  # noqa: D102
        sentences = tf.constant(list(texts), tf.string, [len(texts)])
        answers = self._model.signatures[part](sentences=sentences)
        return {name: value.numpy() for name, value in answers.items()}

    def run(self, **request: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the answers to a request, both as arrays by name."""
        answer = self._answer if self._chosen is None else self._model.signatures[OPTIONS]
        request = {name: tf.convert_to_tensor(value) for name, value in request.items()}
        with refusals(self.path):
            answers = answer(**request)
        return {name: value.numpy() for name, value in answers.items()}


def _alignment(source, target, weights, translation):
    """Returns the `Alignment` of a row of the signature `alignment`, without its padding."""
    source, target = ([piece.decode() for piece in side if piece] for side in (source, target))
    return Alignment(source, target, weights[: len(target), : len(source)], translation)
