"""Export to a .tflite file for phones and browsers, with the decoding loop inside."""

import os
from collections.abc import Callable
from typing import Any

from keras_transformer.export.contents import provenance
from keras_transformer.export.limits import Limits
from keras_transformer.export.litert.answered import LiteRTAnswers
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.format import FORMAT, LiteRTOptions
from keras_transformer.export.litert.generated import LiteRTGeneration
from keras_transformer.export.litert.packed import pack, read_model
from keras_transformer.export.litert.streaming import LiteRTStreaming
from keras_transformer.export.parity import in_float32, without_sentences
from keras_transformer.export.place import place_file, silent
from keras_transformer.export.place_checks import check_place_of_file, check_space
from keras_transformer.free_memory import return_free_memory
from keras_transformer.tasks.pipeline import Pipeline


def export_litert(
    pipeline: Pipeline,
    path: str | os.PathLike,
    samples: list,
    options: LiteRTOptions | None = None,
    *,
    calibration: list[str] | None = None,
    references: list[str] | None = None,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
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
      string `[1]`, `score`, float32 `[1]`, and `truncated`, boolean `[1]`. It is true if the
      sentence has more tokens than the signature and was truncated; a longer signature may then
      fit.
    - `next_32_256`, with `streaming`, reads up to 32 tokens after up to 256 positions and returns
      one token: see docs/litert_files.md.
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
        options: The `LiteRTOptions`. `None`: the defaults.
        calibration: List of real sentences for `"int8_static"`, different from `samples`.
        references: List of the correct outputs for the samples. `None`: they are not known.
        origin: Provenance of the original checkpoint, a dictionary for the metadata: see
            `Run.read_origin`.
        progress: See `export_saved_model`.
        left_out: Number of inputs that are not among `samples` because the check would take too
            long. It appears in the report.

    `calibration` and `left_out` are for models that generate text.

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
    options = FORMAT.check(pipeline, options, calibration=calibration, left_out=left_out)
    samples = pipeline.check_samples(samples)
    path = check_place_of_file(path)
    limits = Limits.of(options, references)
    check_space(path, pipeline, options.quantize)
    contents = in_float32(pipeline), samples, limits, options, progress or silent
    if pipeline.generates and options.streaming:
        contents = LiteRTStreaming(*contents, left_out)
    elif pipeline.generates:
        contents = LiteRTGeneration(*contents, calibration, left_out)
    else:
        contents = LiteRTAnswers(*contents)
    about = provenance(options.license, origin)
    report = place_file(path, lambda draft: _write(contents, draft, path, about))
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "quantize": options.quantize,
        "signatures": [name for signature in contents.signatures for name in signature.functions],
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
