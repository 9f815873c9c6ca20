"""One .tflite file for phones and browsers: token ids in and out, the decoding loop inside."""

import dataclasses
from collections.abc import Callable

from keras_transformer.decoding.encoder_decoder import check_alignment
from keras_transformer.export.agreement import MAX_LOSS, Agreement
from keras_transformer.export.litert.beams import beam_facts, beam_of
from keras_transformer.export.litert.calibration import check_calibration, find_ranges
from keras_transformer.export.litert.convert import convert, custom_operators
from keras_transformer.export.litert.gate import Gate
from keras_transformer.export.litert.packed import (
    SIGNATURES,
    STRINGS,
    facts_of,
    figures_of,
    make_signatures,
    pack,
)
from keras_transformer.export.litert.runtime import LiteRTTranslator, load_interpreter
from keras_transformer.export.litert.source_ids import RULE
from keras_transformer.export.litert.strings import string_options
from keras_transformer.export.parity import ExportError, in_float32
from keras_transformer.export.place import place_file, silent
from keras_transformer.export.place_checks import check_place_of_file, check_space
from keras_transformer.export.shapes import check_shapes, default_lengths
from keras_transformer.export.shortlists import shortlist_facts, shortlist_figures
from keras_transformer.tasks.conditional_generator import ConditionalGenerator
from keras_transformer.tasks.strings import check_samples

QUANTIZATIONS = ("none", "float16", "int8", "int8_static")


def export_litert(
    translator,
    path,
    sentences,
    quantize="none",
    *,
    calibration=None,
    lengths=None,
    batch_sizes=(1,),
    min_agreement=None,
    references=None,
    max_loss=MAX_LOSS,
    max_score_loss=None,
    searches=None,
    n_best=1,
    alignment=None,
    license=None,
    tokenizer=False,
    origin=None,
    progress=None,
    left_out=0,
    source_language=None,
    target_language=None,
):
    """Writes a .tflite file that runs with LiteRT's builtin operators alone.

    For each length of source and batch size it has a signature of fixed shape, such as
    `greedy_1x16`: `source`, int32 `[1, 16]`, ids that end in `eos_id` and then padding; to
    `tokens`, int32 `[1, max_length]`, as `greedy_decode` gives them, `score`, float32 `[1]`, and
    `length`, int32 `[1]`, of how many tokens there are before the padding. Where greedy search has
    a `max_length` of its own, its `tokens` are that long. With a beam it has as
    many more, such as `beam4_1x16`, which also take `max_length`, int32 `[1]`, the longest output
    of each sentence, and `length_penalty`, float32 `[1]`; to what `beam_decode` gives, `tokens`
    `[1, n_best, max_length]`, and `score` and `length` `[1, n_best]`. A row of wrong ids, such as
    one without `eos_id`, with an id that is not in the vocabulary or only of padding, gives
    padding, the score -1e9 and the length 0, and does not touch the other rows; the facts state
    under `source` what is right.

    The vocabulary and a JSON of facts lie after the model as in a ZIP archive, `tokenizer.model`
    and `facts.json`: any unzip program reads them, and LiteRT ignores them.

    With `tokenizer` it has for each length one more signature, such as `translate_1x16`:
    `sentence`, string `[1]`, to `translation`, string `[1]`, `score`, float32 `[1]`, and
    `truncated`, boolean `[1]`, whether the sentence has more tokens than that and was cut: a longer
    signature may hold it. With a beam another, `translate_beam4_1x16`, which also takes
    `extra_length`, int32 `[1]`, and `length_penalty`, float32 `[1]`, and gives the best hypothesis.
    These need a runtime that registers operators of TensorFlow Text, which the facts list under
    `custom_operators`; one that does not still runs the other signatures.

    The file appears at `path` when it has translated `sentences` as the model in memory does. If
    it does not, or on any other error, `path` is as it was before.

    Args:
        translator: A `Translator`; one with a shortlist exports its searches among the candidates.
        path: The file. An older .tflite file is replaced.
        sentences: List of real sentences to check the export with.
        quantize: `"none"`: float32. `"float16"`: weights of half the size. `"int8"`: weights of a
            quarter of the size, products in integers, activations rounded for each product.
            `"int8_static"`: the same, but activations rounded by ranges that `calibration` gave,
            those of encoder and decoder step apart; layer normalisation, attention's own products,
            softmax and logits stay in float32 or as for int8.
        calibration: For `"int8_static"`, a list of real sentences, other than `sentences`.
        lengths: Source lengths in tokens; the last one is the translator's `max_length`. A sentence
            is padded to the next one, which costs time in the encoder; each costs room for the
            graph and memory at run time. `None`: see `default_lengths`.
        batch_sizes: Sentences at a time: for each length there is a signature of each size.
        min_agreement: Smallest share of tokens that must be those of the model in memory, for
            quantised files. `None`: no limit but those of `Agreement`, which holds for every
            processor; without quantisation every translation must be the same but for near ties.
        references: List of the right translations of `sentences`. With them, BLEU and chrF of a
            quantised file are compared with those of the model in memory.
        max_loss: Most BLEU and most chrF, each from 0 to 100, that a quantised file may lose.
        max_score_loss: Largest `score_loss` and `score_error` of a quantised file, in nats per
            token: see `Agreement`. `None`: its default.
        searches: The searches in the file: `Greedy`, which is there in any case, and at most one
            `Beam` with the `normalization` `"gnmt"` or `"power"`. Its size, its normalisation and
            its `stopping` are part of the graphs; its other settings are those of the check and
            defaults of whoever opens the file. `None`: the translator's own `search`.
        n_best: How many of its hypotheses the beam returns.
        alignment: A pair of integers, layer and head of the decoder, or `None` for the mean of its
            heads: the greedy signatures then also have the output `alignment`, float32 `[1,
            max_length, 16]`, what each token of the output attended to in the source.
        license: Under which the model may be used, a string for the facts. `None`: that of its
            origin.
        tokenizer: Whether there are signatures that take and give strings. The vocabulary must be a
            unigram model: see `FastTokenizer`.
        origin: Dictionary of what is known of the checkpoint that the weights come from, for the
            facts: see `Run.read_origin`.
        progress: See `export_saved_model`.
        left_out: Sentences that are not among `sentences` because the check would take too long,
            for the figures.
        source_language: Code of the language that the model translates, a string for the facts.
        target_language: Code of the language that it translates to.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, `signatures`, and the figures of a `Parity`;
        with references, those of `measure_quality`; with a beam, under `beam`, all of them again;
        with `tokenizer`, under `strings`, those of the signatures that take strings. For
        `"int8_static"`, under `calibration`, the number of its `sentences`, how the `ranges` were
        found, and which share of the activations for the sentences of the check lies `outside`.
        With a shortlist, under `shortlist`, the figures of `shortlist_figures`.

    Raises:
        ExportError: If the file does not agree, needs other than builtin operators, or was to be
            calibrated with other than real sentences; if something else is at `path`; with
            `tokenizer`, if TensorFlow Text's operators give other pieces.
        OSError: If it cannot be written.
        ValueError: If an argument is wrong.
    """
    load_interpreter()
    sentences = check_samples(sentences)
    path = check_place_of_file(path)
    lengths = list(default_lengths(translator.max_length) if lengths is None else lengths)
    batch_sizes = list(batch_sizes)
    check_shapes(quantize, QUANTIZATIONS, lengths, batch_sizes, translator.max_length)
    calibration = check_calibration(quantize, calibration)
    _check_calibrates(translator, calibration)
    searches = (translator.search,) if searches is None else searches
    beam = beam_of(searches, STRINGS if tokenizer else SIGNATURES)
    if beam is not None:
        translator.check(beam, n_best)
    check_alignment(alignment, translator.model.config)
    check_space(path, translator, quantize)
    translator = in_float32(translator)
    agreement = Agreement(
        translator,
        sentences,
        quantize,
        min_agreement,
        references,
        max_loss,
        max_score_loss,
        progress or silent,
        left_out,
    )
    greedy = next((search for search in searches if search is not beam), translator.greedy)
    gate = Gate(agreement, greedy, beam, n_best)
    beam_size = None if beam is None else beam.size
    greedy_length = greedy.limit(None, translator.max_length)
    signatures = make_signatures(
        lengths, batch_sizes, translator.max_length, beam_size, n_best, alignment, greedy_length
    )
    options = {}
    if tokenizer:
        options = string_options(translator, sentences, lengths, beam_size, greedy_length)
    about = {
        "source_language": source_language,
        "target_language": target_language,
        "license": license or (origin or {}).get("license"),
        **({"origin": origin} if origin else {}),
    }
    contents = _Contents(gate, signatures, options, about, calibration, progress or silent)
    report = place_file(path, lambda draft: contents.write(draft, path))
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "quantize": quantize,
        "signatures": [signature.name for signature in [*signatures, *contents.strings]],
        **report,
    }


@dataclasses.dataclass
class _Contents:
    """What goes into a file, in which the searches must agree before it is kept.

    Args:
        gate: The `Gate`, which knows the model, the sentences and the quantisation.
        signatures: Those that take token ids.
        options: What `string_options` returned; nothing where the file takes no strings.
        about: Facts that the caller gave.
        calibration: What `check_calibration` returned.
        progress: See `export_saved_model`.
    """

    gate: Gate
    signatures: list
    options: dict
    about: dict
    calibration: list | None
    progress: Callable

    @property
    def strings(self):
        """The signatures that take strings."""
        return self.options.get("strings", [])

    def write(self, draft, path):
        """Writes and checks the file `draft`; returns the figures. Errors name it `path`."""
        agreement = self.gate.agreement
        translator, sentences = agreement.translator, agreement.sentences
        if self.calibration is not None:
            self.progress(f"calibrating with {len(self.calibration)} sentences")
        ranges, calibrated = find_ranges(translator, self.calibration, sentences, path)
        self.progress(f"converting {len(self.signatures) + len(self.strings)} signatures")
        content = self._convert(path, translator.model, ranges)
        facts = {**self._facts(), **self.about, **calibrated}
        if self.strings:
            facts[STRINGS] = [vars(signature) for signature in self.strings]
            facts["custom_operators"] = custom_operators(content)
        pack(draft, content, translator.tokenizers, facts)
        self.progress(f"translating {len(sentences)} sentences with every signature")
        report = self.gate.check(draft, path, bool(self.strings))
        pack(draft, content, translator.tokenizers, {**facts, "agreement": figures_of(report)})
        LiteRTTranslator(draft).translate_batch(sentences[:1])
        return {**report, **calibrated, **shortlist_figures(translator, sentences)}

    def _convert(self, path, model, ranges):
        quantize = self.gate.agreement.quantize
        try:
            shortlist = self.gate.agreement.translator.shortlist
            options = {"ranges": ranges, "shortlist": shortlist, "beam": self.gate.beam}
            options |= self.options
            return convert(model, self.signatures, quantize, **options)
        except ExportError as error:
            raise ExportError(f"{path}: {error}") from error

    def _facts(self):
        """What a program needs to know to use the file."""
        translator = self.gate.agreement.translator
        tokenizer = translator.source_tokenizer
        about = {
            "tokens": {
                name: getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "bos", "eos")
            },
            "vocab_size": tokenizer.vocab_size,
            "source": RULE,
            "max_length": translator.max_length,
            **shortlist_facts(translator.shortlist),
            **beam_facts(self.gate.beam, translator.search),
        }
        return facts_of(translator, self.signatures, self.gate.agreement.quantize, about)


def _check_calibrates(translator, calibration):
    if calibration is not None and not isinstance(translator, ConditionalGenerator):
        raise ExportError(
            f"int8_static needs a model with an encoder. Received: one for {translator.task}; "
            "int8 needs no calibration."
        )
