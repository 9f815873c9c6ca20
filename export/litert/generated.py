"""Contents of a .tflite file whose model generates text, from token ids or from strings."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.decoding.loop import output_limit, smaller
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.contents import about_generation, default_languages
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.apart import engines_for
from keras_transformer.export.litert.beams import beam_of, searches_metadata
from keras_transformer.export.litert.calibration import check_calibration, find_ranges
from keras_transformer.export.litert.check import check_searches
from keras_transformer.export.litert.contents import FixedContents
from keras_transformer.export.litert.convert import convert
from keras_transformer.export.litert.fast_tokenizer import FastTokenizer
from keras_transformer.export.litert.packed import SIGNATURES, STRINGS, make_signatures
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.searches import LoopSearches, UnrolledSearches, trace
from keras_transformer.export.litert.serialization import custom_operators
from keras_transformer.export.searches import search_of
from keras_transformer.export.shortlists import shortlist_metrics
from keras_transformer.export.worded import WORDS
from keras_transformer.export.words import BANNED, PREFIX, TERMS, WordInputs
from keras_transformer.tasks.results import COMPLETE, TOKEN_SCORES
from keras_transformer.tensors import Tensor

# Sizes of the inputs for words. A banned phrase takes up to 34 rows, for all its ways.
WORD_SIZES = {PREFIX: (16,), BANNED: (512, 16), TERMS: (4, 4, 12)}
NAMES = ("translate", "translate_beam")  # as `names` of `make_signatures`


def check_run(config, tokenizers, options, origin=None) -> None:
    """Checks that TensorFlow Text's operators support the vocabularies of a run, if needed.

    Raises:
        ExportError: If they do not.
    """
    if not options.tokenizer:
        return
    if None in (config.encoder, config.decoder):
        return  # such a model has no signatures for strings, which is reported later
    for side in dict.fromkeys(tokenizers):
        FastTokenizer(side, config.max_length)


class StringSignatures:
    """Signatures that take and return strings.

    Args:
        pipeline: A `Translator`.
        sentences: List of strings, for which TensorFlow Text must return the same tokens.
        signatures: List of the `FixedSignature`s, also an attribute.

    Raises:
        ExportError: If the model has no encoder, or the tokens differ.
    """

    def __init__(self, pipeline, sentences, signatures):
        if not pipeline.blank:
            raise ExportError(
                f"`tokenizer` needs a model with an encoder. Received: one for {pipeline.task}. "
                "Export without the tokenizer."
            )
        source, target = pipeline.tokenizers
        self.signatures, self._output = signatures, pipeline.output
        longest = pipeline.max_length
        self._encoder = self._decoder = FastTokenizer(source, longest)
        self._encoder.require_same_pieces(sentences)
        if target is not source:
            self._decoder = FastTokenizer(target, longest)

    def functions(self, find_of, within) -> Iterator[tuple[str, Any]]:
        """Yields the names of the signatures, and concrete functions.

        Args:
            find_of: See `LoopSearches`.
            within: See `convert_copy`.
        """
        sentence = tf.TensorSpec([1], tf.string, name="sentence")
        for signature in self.signatures:
            translate = within(self.function(find_of(signature), signature))
            yield signature.name, trace(translate, signature, sentence, "extra_length")

    def function(self, find, signature) -> Callable[..., dict[str, Tensor]]:
        """Returns the function of a signature.

        Args:
            find: Function from token ids `[1, S]` and, with a beam, `extra_length` and
                `length_penalty` to a `Found`.
            signature: One of `signatures`.
        """
        encoder, decoder = self._encoder, self._decoder

        def translate(sentence, **controls):
            source, truncated, empty = encoder.encode(sentence, signature.source_length)
            found = find(source, **controls)
            best = tf.reshape(found.tokens, [signature.target_length])
            best = tf.where(empty, decoder.eos_id, best)  # [T], no text for an empty sentence
            return {
                self._output: decoder.decode(best),
                "score": tf.where(empty, 0.0, tf.reshape(found.scores, [1])),
                "truncated": truncated,
                COMPLETE: empty | tf.reshape(found.complete, [1]),
            }

        return translate


class LiteRTGeneration(FixedContents):
    """Signatures of a model that generates text, one for each search, input length and batch size.

    Args:
        pipeline: A `Generator` in float32.
        samples, limits, options, progress: See `Contents`.
        calibration, left_out: See `export_litert`.

    Raises:
        ExportError: If the model has no encoder, so that it cannot be calibrated, or a shortlist,
            so that it cannot be unrolled.
        ValueError: If an option is wrong.
    """

    def __init__(self, pipeline, samples, limits, options, progress, calibration, left_out):
        super().__init__(pipeline, samples, limits, options, progress)
        self._options, beam_only, alignment = options, options.beam_only, options.alignment
        self._calibration = check_calibration(self.quantize, calibration)
        if self._calibration is not None and not pipeline.has_source:
            raise ExportError(
                f"int8_static needs a model with an encoder. Received: one for {pipeline.task}; "
                "int8 needs no calibration."
            )
        if options.unrolled and pipeline.shortlist is not None:
            raise ExportError(
                "`unrolled` needs a model without a shortlist: every step would find the "
                "candidates of the source again. Export without one of them."
            )
        search = search_of(pipeline, options)
        self._beam = beam = beam_of(search, STRINGS if options.tokenizer else SIGNATURES)
        self._n_best = options.n_best or 1
        if beam is not None:
            pipeline.check(beam, self._n_best)
        check_alignment(alignment, pipeline.model.config)
        greedy = search if beam is None else pipeline.greedy
        self._greedy = None if beam_only else greedy
        self._words = None
        if options.takes_words:
            self._words = tuple(
                WordInputs(pipeline, terms, WORD_SIZES) for terms in (beam is not None, False)
            )
        how = {TOKEN_SCORES: options.token_scores, "words": self._words}
        self._searches: Any = UnrolledSearches(beam, greedy, **how)
        if not options.unrolled:
            grows = self.quantize != "int8_static"
            self._searches = LoopSearches(beam, greedy=greedy, grows=grows, **how)
        self._agreement = Agreement(pipeline, samples, self.limits, self.progress, left_out)
        lengths, longest = self.lengths, pipeline.max_length
        config = pipeline.model.config
        limit = None if beam_only else int(output_limit(greedy, config, longest, longest))
        limits, size = (longest, limit), getattr(beam, "size", None)
        most = (
            {} if greedy.max_length is None else {"max_length": smaller(greedy.max_length, longest)}
        )
        self._ids = make_signatures(
            lengths, self.batch_sizes, *limits, size, self._n_best, alignment, **most
        )
        self.signatures, self._strings = self._ids, None
        if options.tokenizer:
            of_strings = make_signatures(lengths, [1], *limits, size, names=NAMES, **most)
            self._strings = StringSignatures(pipeline, samples, of_strings)
            self.signatures = self._ids + of_strings

    def convert(self, path) -> bytes | bytearray:  # noqa: D102
        pipeline = self.pipeline
        if self._calibration is not None:
            self.progress(f"calibrating with {len(self._calibration)} sentences")
        ranges, self._calibrated = find_ranges(pipeline, self._calibration, self.samples, path)
        self.progress(f"converting {len(self.signatures)} signatures")
        options = ranges, self._strings, self._searches, self.converter
        try:
            content = convert(pipeline, self._ids, self.quantize, *options)
        except ExportError as error:
            raise ExportError(f"{path}: {error}") from error
        self.signatures = [*map(self._searches.described, self.signatures)]
        self._ids = self.signatures[: len(self._ids)]
        return content

    def about(self) -> dict[str, Any]:  # noqa: D102
        default = self._beam if self._greedy is None else self.pipeline.search
        searches = searches_metadata(self._greedy, self._beam, default)
        words = {} if self._words is None else {WORDS: self._words[0].metadata()}
        scores = {TOKEN_SCORES: True} if self._options.token_scores else {}
        return {**about_generation(self.pipeline), **words, **scores, **searches}

    def metadata(self, content) -> dict[str, Any]:  # noqa: D102
        languages = default_languages(self.pipeline, self._options)
        metadata = {**super().metadata(content), **self._calibrated, **languages}
        metadata[SIGNATURES] = [*map(dataclasses.asdict, self._ids)]
        if self._strings is not None:
            metadata[STRINGS] = [vars(signature) for signature in self._strings.signatures]
            metadata["custom_operators"] = custom_operators(content)
        return metadata

    def check(self, draft, path) -> dict[str, Any]:  # noqa: D102
        count, participle = len(self.samples), self.pipeline.participle
        self.progress(f"{participle} {count} texts with every signature")
        searches = self._greedy, self._beam, self._n_best
        return check_searches(self._agreement, draft, path, *searches, self._strings is not None)

    def open(self, draft) -> None:  # noqa: D102
        with engines_for(self.pipeline.model) as engines:
            LiteRTTranslator(draft, engines=engines).answer_batch(self.samples[:1])

    def results(self) -> dict[str, Any]:  # noqa: D102
        return {**self._calibrated, **shortlist_metrics(self.pipeline, self.samples)}
