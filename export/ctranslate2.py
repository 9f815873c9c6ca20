"""A CTranslate2 model: tokens in and out, searched by CTranslate2, for those who already run it."""

from keras_transformer.beam_translator import BeamTranslator
from keras_transformer.translation import map_sorted, to_translations, translate_sorted

from .ctranslate2_loaded import CONFIG, MODEL, CTranslate2Translator, load_ctranslate2
from .ctranslate2_spec import make_spec
from .packed import VOCABULARY
from .parity import (
    check_sentences,
    compare,
    in_float32,
    require_agreement,
    require_identical,
)
from .staging import check_place_of_folder, check_space, place_folder, silent

VOCABULARIES = ("shared_vocabulary.json", "source_vocabulary.json", "target_vocabulary.json")
FILES = {MODEL, CONFIG, VOCABULARY, *VOCABULARIES}
# Share of tokens that must be those of the model in memory; the same as for LiteRT.
MIN_AGREEMENT = {"none": 1.0, "float16": 0.98, "int8": 0.9}
# With a beam, and without quantisation. Not all of them: see `export_ctranslate2`.
MIN_BEAM_AGREEMENT = 0.99
BEAM_SIZE = 4


def export_ctranslate2(
    translator, directory, sentences, quantize="none", *, min_agreement=None, progress=None
):
    """Writes a folder that `ctranslate2.Translator` loads, with the vocabulary beside the model.

    Its tokens are SentencePiece's pieces; it adds the end of a source by itself. With the right
    options of `translate_batch` it finds what the searches of this package find:

    - always `min_decoding_length=0` and, up to 256, `max_decoding_length=max_length`;
    - `greedy_decode`: `beam_size=1`; with `length_penalty=0` the scores, too;
    - `beam_decode(normalization="average")`: `length_penalty=1, return_end_token=True`;
    - `beam_decode(normalization="none")`: `length_penalty=1e-9`. With 0 CTranslate2 goes on until
      the best of all hypotheses has ended, where `beam_decode` stops after `beam_size` of them.

    Nothing there equals `normalization="gnmt"`, the default of `beam_decode`: CTranslate2 divides
    by `n ** length_penalty`. Two differences remain with a beam: CTranslate2 may say `pad_id` and
    `bos_id`, and it ranks hypotheses that the limit cut among those that ended, not behind them.

    The folder appears at `directory` when it has translated `sentences` as the model in memory
    does: greedily, and with a beam of 4 and averages but for 1 % of the tokens, where the limit cut
    nothing. If it does not, or on any other error, `directory` is as it was before.

    Args:
        translator: A `Translator`.
        directory: The folder. An older export is replaced.
        sentences: List of real sentences to check the export with.
        quantize: `"none"`: float32. `"float16"`: weights of half the size. `"int8"`: weights of a
            quarter of the size, products in integers.
        min_agreement: Smallest share of tokens that must be those of the model in memory, for
            quantised models, searched greedily. `None`: 0.98 for float16, 0.9 for int8.
        progress: See `export_saved_model`.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, the figures of a `Parity`, and of the search with
        a beam `beam_sentences` and `beam_agreement`, which is `None` if there are no sentences.

    Raises:
        ExportError: If CTranslate2 cannot express the model, the translations differ, or something
            else is at `directory`.
        OSError: If it cannot be written.
        ValueError: If ctranslate2 is missing, or an argument is wrong.
    """
    load_ctranslate2()
    sentences = check_sentences(sentences)
    directory = check_place_of_folder(directory, FILES)
    _check(quantize, min_agreement)
    check_space(directory, translator, quantize)
    progress = progress or silent
    translator = in_float32(translator)

    def write(draft):
        progress("writing the weights")
        _write(draft, translator, quantize)
        progress(f"translating {len(sentences)} sentences greedily and with a beam")
        greedy = _compare_greedy(draft, translator, sentences)
        beam = _compare_beams(draft, translator, sentences)
        _require(greedy, beam, quantize, min_agreement, directory)
        return greedy, beam

    greedy, beam = place_folder(directory, write)
    return {
        "path": str(directory),
        "bytes": sum(file.stat().st_size for file in directory.iterdir()),
        "quantize": quantize,
        **greedy.to_dict(),
        "beam_sentences": beam.sentences if beam else 0,
        "beam_agreement": beam.agreement if beam else None,
    }


def _write(draft, translator, quantize):
    tokenizer = translator.tokenizer
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    spec = make_spec(translator.model, pieces, tokenizer.unk_id, translator.max_length)
    spec.optimize(None if quantize == "none" else quantize)
    spec.save(str(draft))
    (draft / VOCABULARY).write_bytes(tokenizer.model)


def _compare_greedy(draft, translator, sentences):
    expected = translate_sorted(translator, sentences)
    found = translate_sorted(CTranslate2Translator(draft), sentences)
    return compare(sentences, expected, found, translator.tokenizer)


def _compare_beams(draft, translator, sentences):
    """A `Parity` of the sentences that CTranslate2 came to the end of; `None` if there are none."""
    loaded = CTranslate2Translator(draft, beam_size=BEAM_SIZE, length_penalty=1)

    def search(batch):
        outputs = loaded.translate(batch)
        return zip(to_translations(outputs), outputs["ended"].numpy(), strict=True)

    ours = BeamTranslator(translator, BEAM_SIZE, normalization="average", extra_length=None)
    expected = translate_sorted(ours, sentences)
    rows = [
        (sentence, mine, theirs)
        for sentence, mine, (theirs, ended) in zip(
            sentences, expected, map_sorted(search, sentences, batch_size=64), strict=True
        )
        if ended
    ]
    return compare(*zip(*rows, strict=True), translator.tokenizer) if rows else None


def _require(greedy, beam, quantize, min_agreement, name):
    if quantize != "none":
        minimum = MIN_AGREEMENT[quantize] if min_agreement is None else min_agreement
        require_agreement(greedy, minimum, name)
        return
    require_identical(greedy, name)
    if beam is not None:
        require_agreement(beam, MIN_BEAM_AGREEMENT, f"{name}, searched with a beam")


def _check(quantize, min_agreement):
    if quantize not in MIN_AGREEMENT:
        raise ValueError(
            f"`quantize` must be one of {', '.join(MIN_AGREEMENT)}. Received: {quantize!r}."
        )
    if min_agreement is not None and not 0 <= min_agreement <= 1:
        raise ValueError(f"`min_agreement` must be between 0 and 1. Received: {min_agreement}.")
