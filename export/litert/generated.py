"""The contents of a .tflite file of a model that generates text."""

from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.beams import beam_facts, beam_of
from keras_transformer.export.litert.calibration import check_calibration, find_ranges
from keras_transformer.export.litert.contents import Contents
from keras_transformer.export.litert.convert import convert, custom_operators
from keras_transformer.export.litert.gate import Gate
from keras_transformer.export.litert.packed import SIGNATURES, STRINGS, make_signatures
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.source_ids import RULE
from keras_transformer.export.litert.strings import string_options
from keras_transformer.export.shortlists import shortlist_facts, shortlist_figures


class Generated(Contents):
    """Searches of a model, each for several lengths of its inputs and sizes of a batch.

    Args:
        pipeline: A `Generator`.
        options: The `Options`.
        samples, limits, lengths, batch_sizes, progress: See `Contents`.

    Raises:
        ExportError: If such a model cannot be calibrated.
        ValueError: If an option is wrong.
    """

    def __init__(self, pipeline, samples, limits, lengths, batch_sizes, options, progress):
        longest = pipeline.max_length
        super().__init__(pipeline, samples, limits, lengths, batch_sizes, longest, progress)
        self._options = options
        self._calibration = check_calibration(limits.quantize, options.calibration)
        if self._calibration is not None and not pipeline.has_source:
            raise ExportError(
                f"int8_static needs a model with an encoder. Received: one for {pipeline.task}; "
                "int8 needs no calibration."
            )
        searches = (pipeline.search,) if options.searches is None else options.searches
        self._beam = beam = beam_of(searches, STRINGS if options.tokenizer else SIGNATURES)
        if beam is not None:
            pipeline.check(beam, options.n_best)
        check_alignment(options.alignment, pipeline.model.config)
        others = (search for search in searches if search is not beam)
        self._greedy = next(others, pipeline.greedy)

    def begin(self, pipeline):  # noqa: D102
        self.pipeline, options = pipeline, self._options
        agreement = Agreement(pipeline, self.samples, self.limits, self.progress, options.left_out)
        self._gate = Gate(agreement, self._greedy, self._beam, options.n_best)
        longest, size = pipeline.max_length, None if self._beam is None else self._beam.size
        greedy_length = self._greedy.limit(None, longest)
        self._ids = make_signatures(
            self.lengths, self.batch_sizes, longest, size, options.n_best, options.alignment,
            greedy_length,
        )  # fmt: skip
        self._strings = {}
        if options.tokenizer:
            self._strings = string_options(
                pipeline, self.samples, self.lengths, size, greedy_length
            )
        self.signatures = [*self._ids, *self._strings.get("strings", ())]

    def calibrate(self, path):  # noqa: D102
        if self._calibration is not None:
            self.progress(f"calibrating with {len(self._calibration)} sentences")
        self._ranges, self._calibrated = find_ranges(
            self.pipeline, self._calibration, self.samples, path
        )

    def convert(self, path):  # noqa: D102
        options = {"ranges": self._ranges, "shortlist": self.pipeline.shortlist, **self._strings}
        try:
            return convert(
                self.pipeline.model, self._ids, self.quantize, beam=self._beam, **options
            )
        except ExportError as error:
            raise ExportError(f"{path}: {error}") from error

    def about(self):  # noqa: D102
        pipeline, tokenizer = self.pipeline, self.pipeline.source_tokenizer
        return {
            "tokens": {
                name: getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "bos", "eos")
            },
            "vocab_size": tokenizer.vocab_size,
            "source": RULE,
            "max_length": pipeline.max_length,
            **shortlist_facts(pipeline.shortlist),
            **beam_facts(self._beam, pipeline.search),
        }

    def metadata(self, content):  # noqa: D102
        metadata = {**super().metadata(content), **self._calibrated}
        metadata[SIGNATURES] = [vars(signature) for signature in self._ids]
        for name in ("source_language", "target_language"):
            metadata[name] = getattr(self._options, name)
        if self._strings:
            metadata[STRINGS] = [vars(signature) for signature in self._strings["strings"]]
            metadata["custom_operators"] = custom_operators(content)
        return metadata

    def check(self, draft, path):  # noqa: D102
        self.progress(f"translating {len(self.samples)} sentences with every signature")
        return self._gate.check(draft, path, bool(self._strings))

    def open(self, draft):  # noqa: D102
        LiteRTTranslator(draft).translate_batch(self.samples[:1])

    def results(self):  # noqa: D102
        return {**self._calibrated, **shortlist_figures(self.pipeline, self.samples)}
