"""Export to a CTranslate2 model: a translator, a generator with its search, or an encoder."""

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

from keras_transformer.export.ctranslate2.answered import CTranslate2Answers
from keras_transformer.export.ctranslate2.engine import load_ctranslate2
from keras_transformer.export.ctranslate2.expressible import check_expressible
from keras_transformer.export.ctranslate2.folder import CONFIG, MODEL, VOCABULARY
from keras_transformer.export.ctranslate2.format import FORMAT, CTranslate2Options
from keras_transformer.export.ctranslate2.generated import CTranslate2Generation
from keras_transformer.export.ctranslate2.head import HEAD
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.parity import in_float32, without_sentences
from keras_transformer.export.place import place_folder, silent
from keras_transformer.export.place_checks import check_place_of_folder, check_space
from keras_transformer.files import json_text
from keras_transformer.tasks.pipeline import Pipeline
from keras_transformer.text.tokenizers.pair import FILES as TOKENIZERS

VOCABULARIES = (
    *("shared_vocabulary.json", "source_vocabulary.json", "target_vocabulary.json"),
    VOCABULARY,
)
FILES = {MODEL, CONFIG, HEAD, *TOKENIZERS, *VOCABULARIES}


def check_place(directory) -> pathlib.Path:
    """Returns the path of the folder to write: see `check_place_of_folder`."""
    return check_place_of_folder(directory, FILES)


def export_ctranslate2(
    pipeline: Pipeline,
    directory: str | os.PathLike,
    samples: list,
    options: CTranslate2Options | None = None,
    *,
    references: list[str] | None = None,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
) -> dict[str, Any]:
    """Writes a folder that CTranslate2 loads, with the vocabulary beside the model.

    `ctranslate2.Translator` loads a `Translator` or a `Summarizer`, `ctranslate2.Generator` a
    `TextGenerator`. The model takes and returns tokens, as strings; CTranslate2 adds the end of a
    source itself. With these options it returns the results of this package's searches:

    - always `min_decoding_length=0`, and `max_decoding_length=max_length`, which CTranslate2 limits
      to 256 by default; for a `TextGenerator`, `max_length`, and in front of each prompt the
      token that begins a text;
    - `Greedy()`: `beam_size=1`, and `length_penalty=0` for the same scores. If the greedy
      search of the pipeline has its own `max_length`, it is `greedy_max_new_tokens` in
      `config.json`. CTranslate2 also counts the tokens that an output begins with, such as those
      of a prompt: add them to the limit, and divide a batch in which limits differ;
    - `max_length_ratio` in `config.json`: `max_decoding_length` is at most this many times
      the number of tokens of the source with its end, rounded up, as in Marian;
    - `Beam(normalization="average")`: `length_penalty=1, return_end_token=True`;
    - `Beam(normalization="none")`: `length_penalty=1e-9`. With 0, CTranslate2 continues
      until the best of all hypotheses has ended, whereas `Beam` stops as soon as `beam_size`
      hypotheses have ended;
    - a token that begins every output, `forced_bos_id` in `config.json`, or the token of a target
      language: `target_prefix`. The token of the source language is the first of a source; if
      `"language_codes"` is `"after"` or `"start"`, it is the last one, after the end token;
    - `no_repeat_ngram` in `config.json`: `no_repeat_ngram_size`; `suppressed_ids` in `config.json`:
      `suppress_sequences` of each of these tokens. Both are for greedy search only, with
      `suppress_sequences` of padding and of `decoder_start_token`. CTranslate2 excludes tokens
      before the softmax: scores of the model come from `score_batch`, and a beam would rank by
      other probabilities.

    `normalization="gnmt"`, the default of `Beam`, has no equivalent: CTranslate2 divides by
    `n ** length_penalty`. With a beam, three differences remain: CTranslate2 may emit `pad_id` and
    `bos_id`; it ranks hypotheses that reached the limit among those that ended, not after them; and
    after a prompt or a forced token, an output that ends at once is dropped unless it is the most
    probable one.

    `ctranslate2.Encoder` loads the encoder of a `TextPass`, such as an `Embedder` or a
    `TextClassificationPipeline`. The weights of its prediction head, if it has any, are in
    `head.npz`: arrays in float32, named by layer. `open_ctranslate2` opens both as the same
        pipeline.

    The folder of a model that generates text appears at `directory` only after it has translated
    `samples` like the model in memory, with greedy search and with a beam of 4 and
    `normalization="average"`. With the beam, translations that reached the limit are not compared,
    nor are sentences with an output that ends at once after a prompt or a forced token; 1 % of the
    others may differ. Outputs of a `TextGenerator` are compared up to 256 new tokens. The folder of
    an encoder appears only after it has answered `samples` like the model. Otherwise, and after any
    other error, `directory` is left unchanged. See `Agreement` in `agreement.py` and
    `AnswerAgreement` for the comparisons. On a processor without VNNI, the kernels for int8 alone
    lose much quality. The tight limit for a quantised model therefore applies to its weights, with
    which CTranslate2 computes in float32 for this purpose; the result is the same on any processor.

    Args:
        pipeline: A `Translator`, a `Summarizer`, a `TextGenerator`, or a `TextPass`, which answers
            in one pass about a text.
        directory: The folder. An older export is replaced.
        samples: List of real sentences to check the export with.
        options: The `CTranslate2Options`. `None`: the defaults.
        references: List of the correct translations of `samples`, or `None`.
        origin: Provenance of the original checkpoint, a dictionary for the `config.json`: see
            `Run.read_origin`.
        progress, left_out: See `export_saved_model`.

    Returns:
        Dictionary of `path`, `bytes`, `quantize` and the results of `Agreement` for greedy search;
        for a quantised model, `in_float32` has the results of its weights. `beam_sentences` is the
        number of sentences that were compared with a beam, and `beam_agreement` the share of equal
        translations, `None` without sentences; an encoder has the results of `AnswerAgreement`.
        All but `path` and `bytes` are also in the `config.json` of the folder, under `agreement`.

    Raises:
        ExportError: If CTranslate2 cannot express the model, the translations differ, or something
            else is at `directory`.
        OSError: If the folder cannot be written.
        ValueError: If ctranslate2 is missing, or an argument is wrong.
    """
    load_ctranslate2()
    options = FORMAT.check(pipeline, options)
    samples = pipeline.check_samples(samples)
    directory = check_place(directory)
    limits = Limits.of(options, references)
    if getattr(pipeline, "shortlist", None) is not None:
        raise ExportError(
            "A folder for CTranslate2 cannot contain a shortlist. Export the pipeline without one: "
            "`pipeline.with_shortlist(None)`."
        )
    check_expressible(pipeline.model.config)
    check_space(directory, pipeline, options.quantize)
    progress = progress or silent
    kind = CTranslate2Generation if pipeline.generates else CTranslate2Answers
    contents = kind(in_float32(pipeline), samples, limits, progress, left_out)

    def write(draft):
        progress("writing the weights")
        _save(contents.spec(), draft, options.quantize)
        for name, model in pipeline.tokenizers.files().items():
            (draft / name).write_bytes(model)
        contents.write_more(draft)
        report = contents.check(draft, directory)
        _keep_metadata(draft / CONFIG, report, origin)
        return report

    report = place_folder(directory, write)
    return {
        "path": str(directory),
        "bytes": sum(file.stat().st_size for file in directory.iterdir()),
        "quantize": options.quantize,
        **report,
    }


def _save(spec, draft, quantize):
    """Writes a specification of CTranslate2, which is free when this function has returned."""
    spec.optimize(None if quantize == "none" else quantize)
    spec.save(str(draft))


def _keep_metadata(config, report, origin):
    """Adds the results, without sentences, and the provenance to the metadata of a model."""
    metadata = json.loads(config.read_text("utf-8"))
    if origin:
        metadata["origin"] = origin
    metadata["agreement"] = without_sentences(report)
    config.write_text(json_text(metadata), "utf-8")
