"""Export to a .tflite file for phones and browsers, with the decoding loop inside."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.limits import MAX_LOSS, Limits
from keras_transformer.export.litert.answered import LiteRTAnswers
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.generated import LiteRTGeneration
from keras_transformer.export.litert.packed import pack, read_model
from keras_transformer.export.parity import in_float32, without_sentences
from keras_transformer.export.place import place_file, silent
from keras_transformer.export.place_checks import check_place_of_file, check_space
from keras_transformer.free_memory import return_free_memory
from keras_transformer.tasks.pipeline import Pipeline


def export_litert(
    pipeline: Pipeline,
    path: str | os.PathLike,
    samples: list,
    quantize: str = "none",
    *,
    calibration: list[str] | None = None,
    lengths: Sequence[int] | None = None,
    batch_sizes: Sequence[int] = (1,),
    min_agreement: float | None = None,
    references: list[str] | None = None,
    max_loss: float = MAX_LOSS,
    max_score_loss: float | None = None,
    searches: Sequence[Greedy | Beam] | None = None,
    beam_only: bool = False,
    n_best: int | None = None,
    alignment: tuple[int, int | None] | None = None,
    license: str | None = None,
    tokenizer: bool = False,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
    source_language: str | None = None,
    target_language: str | None = None,
) -> dict[str, Any]:
    """Writes a .tflite file that runs on LiteRT's builtin operators alone.

    The file contains signatures, functions of fixed shape. For a model that generates text there is
    one for each source length and batch size:

    - `greedy_1x16` (batch size 1, source length 16) runs greedy search. Its input is `source`,
      int32 `[1, 16]`: token ids that end in `eos_id`, followed by padding. Its outputs are
      `tokens`, int32 `[1, max_length]`, with the result of `Greedy`; `score`, float32
      `[1]`; and `length`, int32 `[1]`, the number of tokens before the padding. If the greedy
      search has its own `max_length`, `tokens` has that length, with the tokens that every output
      begins with; for a language model it keeps the model's, because a prompt has any length.
    - `beam4_1x16`, if there is a beam, runs beam search. Further inputs are `max_length`, int32
      `[1]`, the maximum number of new tokens of each sentence, and `length_penalty`, float32
      `[1]`. The outputs hold the result of the `Beam`: `tokens` `[1, n_best, max_length]`,
      `score` and `length` `[1, n_best]`.
    - `translate_1x16`, with `tokenizer`, takes `sentence`, string `[1]`, and returns `translation`,
      string `[1]`, `score`, float32 `[1]`, and `truncated`, boolean `[1]`: true if the sentence has
      more tokens than the signature and was truncated, so that a longer signature may fit.
    - `translate_beam4_1x16`, with `tokenizer` and a beam, also takes `extra_length`, int32 `[1]`,
      and `length_penalty`, float32 `[1]`, and returns the best hypothesis.

    A row of invalid ids returns padding, a score of -1e9 and a length of 0, and does not affect the
    other rows of its batch. A row is invalid if it has no `eos_id`, contains an id outside the
    vocabulary or consists of padding only; the metadata states the full rule under `source`.

    A model that answers in one pass has one signature for each shape, such as `classify_1x16`, or
    for each batch size, such as `classify_1`, if its inputs have no length. It takes the inputs of
    the model and returns the outputs of the pipeline's `Codec`. A classifier of texts, for example,
    takes `source` as above and returns `probabilities`, float32 `[1, C]`, and `label`, int32 `[1]`,
    the index of the most probable class in the `labels` of the metadata.

    A ZIP archive with the vocabulary, `tokenizer.model`, and the metadata, `metadata.json`, follows
    the model in the file. Any unzip program can read it, and LiteRT ignores it.

    The signatures that take strings need a runtime in which the operators of TensorFlow Text are
    registered; the metadata lists them under `custom_operators`. Other runtimes can still run the
    other signatures.

    The file appears at `path` only after it has answered `samples` like the model in memory.
    Otherwise, and after any other error, `path` is left unchanged.

    Args:
        pipeline: A `Translator`, a `TextClassificationPipeline` or any other pipeline. If it has a
            shortlist, the exported searches use it.
        path: The file. An older .tflite file is replaced.
        samples: List of real inputs, such as sentences, to check the export with.
        quantize: Storage of the weights and arithmetic of the products. `"none"`: float32.
            `"float16"`: weights of half the size. `"int8"`: weights of a quarter of the size and
            products of integers; activations are rounded for each product when it is computed.
            `"int8_static"`: like `"int8"`, but activations are rounded with fixed ranges found with
            `calibration`, separate ones for the encoder and for a step of the decoder. Layer
            normalisation, the products inside attention, softmax and logits remain as in `"int8"`.
            It needs a model with a source. `"int4"`: like `"int8"`, but embeddings and the weights
            of products have 4 bits, with a scale for each row, and the archive is compressed.
        calibration: List of real sentences for `"int8_static"`, different from `samples`.
        lengths: Source lengths in tokens, increasing; the last one must be the pipeline's
            `max_length`. Sentences are padded to the next length, which costs time in the encoder.
            Every length makes the file larger and needs memory at run time. `None`: see
            `default_lengths`.
        batch_sizes: Numbers of sentences in a batch. There is a signature of every size for every
            length.
        min_agreement, references, max_loss, max_score_loss: See `Limits`. The scores come from
            `Agreement` or `AnswerAgreement`.
        searches: The searches in the file: `Greedy`, which is included in any case, and at most one
            `Beam` with the `normalization` `"gnmt"` or `"power"`. Size, normalization and
            `stopping` of the beam are fixed in the graphs. Its other settings are used by the check
            and are defaults when the file is opened. `None`: the pipeline's own `search`.
        beam_only: Whether to leave out greedy search, because every signature makes the file larger
            and needs memory at run time.
        n_best: Number of hypotheses that the beam returns. `None`: 1.
        alignment: Layer and head of the decoder whose attention the greedy signatures return, a
            pair of integers; a head of `None` is the mean of the layer's heads. The additional
            output is `alignment`, float32 `[1, max_length, 16]`, the attention of each output token
            to the source tokens. `None`: there is no such output.
        license: License of the model, a string for the metadata. `None`: the license in `origin`.
        tokenizer: Whether to include signatures that take and return strings. The vocabulary must
            be a unigram model: see `FastTokenizer`.
        origin: Provenance of the original checkpoint, a dictionary for the metadata: see
            `Run.read_origin`.
        progress: See `export_saved_model`.
        left_out: Number of inputs that are not among `samples` because the check would take too
            long. It appears in the report.
        source_language: Code of the source language, a string for the metadata.
        target_language: Code of the target language.

    The options from `searches` to `alignment`, `tokenizer`, `calibration`, `left_out` and the
    languages are for models that generate text.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, `signatures`, and the results of `Agreement` for
        greedy search, or of `AnswerAgreement` for a model that answers in one pass. `beam` has the
        same results for the beam, and `strings` for the signatures that take strings. With
        `beam_only`, the results for the beam take the place of those for greedy search.
        For `"int8_static"`, `calibration` has the number of `sentences`, a description of the
        `ranges`, and the share of the samples' activations that lie `outside` the ranges. With a
        shortlist, `shortlist` has the results of `shortlist_metrics`.

    Raises:
        ExportError: If the answers differ, the model needs operators that are not builtin, the
            calibration does not fit the samples, something else is at `path`, or, with
            `tokenizer`, the operators of TensorFlow Text return other tokens.
        OSError: If the file cannot be written.
        ValueError: If an argument is wrong or has no effect on the model.
    """
    load_interpreter()
    format = FORMATS["litert"]
    options = {
        "searches": searches,
        "beam_only": beam_only,
        "n_best": n_best,
        "alignment": alignment,
        "tokenizer": tokenizer,
        "calibration": calibration,
        "left_out": left_out,
        "source_language": source_language,
        "target_language": target_language,
    }
    format.check(pipeline, **options)
    samples = pipeline.check_samples(samples)
    path = check_place_of_file(path)
    limits = Limits(quantize, min_agreement, references, max_loss, max_score_loss)
    limits.check(format.quantizations)
    check_space(path, pipeline, quantize)
    contents = in_float32(pipeline), samples, limits, lengths, batch_sizes, progress or silent
    kind = LiteRTGeneration if pipeline.generates else LiteRTAnswers
    contents = kind(*contents, **(options if pipeline.generates else {}))
    about = {
        "license": license or (origin or {}).get("license"),
        **({"origin": origin} if origin else {}),
    }
    report = place_file(path, lambda draft: _write(contents, draft, path, about))
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "quantize": quantize,
        "signatures": [signature.name for signature in contents.signatures],
        **report,
    }


def _write(contents, draft, path, about):
    """Writes and checks the file `draft`, which errors call `path`; returns the results."""
    content = contents.convert(path)
    metadata = {**contents.metadata(content), **about}
    tokenizers, compressed = contents.pipeline.tokenizers, contents.quantize == "int4"
    pack(draft, content, tokenizers, metadata, compressed)
    del content
    return_free_memory()  # for the check
    report = contents.check(draft, path)
    metadata["agreement"] = without_sentences(report)
    pack(draft, read_model(draft), tokenizers, metadata, compressed)
    contents.open(draft)
    return {**report, **contents.results()}
