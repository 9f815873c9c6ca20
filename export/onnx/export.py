"""Export to an .onnx file for ONNX Runtime, with the decoding loop inside."""

import os
from collections.abc import Callable
from typing import Any

from keras_transformer.export.contents import provenance
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.onnx.format import FORMAT, OnnxOptions
from keras_transformer.export.onnx.packages import load_onnx, load_runtime
from keras_transformer.export.onnx.packed import LARGEST, pack
from keras_transformer.export.onnx.place import check_place_of_onnx
from keras_transformer.export.parity import in_float32, without_sentences
from keras_transformer.export.place import place_file, silent
from keras_transformer.export.place_checks import check_space
from keras_transformer.free_memory import return_free_memory
from keras_transformer.tasks.pipeline import Pipeline


def export_onnx(
    pipeline: Pipeline,
    path: str | os.PathLike,
    samples: list,
    options: OnnxOptions | None = None,
    *,
    references: list[str] | None = None,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
) -> dict[str, Any]:
    """Writes an .onnx file that runs on the operators of ONNX alone, or in int4 also on two others.

    The file contains one graph, for any number B of rows of any length S. That of a model that
    generates text runs one search:

    - Greedy search takes `source`, int32 `[B, S]`: in each row token ids that end in `eos_id`,
      followed by padding. Its outputs are `tokens`, int32 `[B, max_length]`, with the result of
      `Greedy`; `score`, float32 `[B]`; `length`, int32 `[B]`, the number of tokens before the
      padding; and `complete`, boolean `[B]`: whether an output ended before its maximum length.
    - Beam search also takes `max_length`, int32 `[B]`, the maximum number of new tokens of each
      output, and `length_penalty`, float32 `[1]`. The outputs hold the result of the `Beam`:
      `tokens` `[B, n_best, max_length]`, the others `[B, n_best]`.
    - Sampling also takes the settings of each row: `seed`, int32 `[B, 2]`; `temperature`, `top_p`,
      `min_p` and `repetition_penalty`, float32 `[B]`; `top_k` and `max_length`, int32 `[B]`. The
      outputs hold the result of a `Sample` with these settings, in the shapes of greedy search.

    With `alignment` there is one more output: see `OnnxOptions`. With `streaming`, the graph has no
    loop: it takes a text `[1, T]`, the keys and values of its first tokens, and the settings of a
    search, and returns one token. See docs/onnx.md.

    A row of invalid ids returns padding, a score of -1e9 and a length of 0, and does not affect the
    other rows of its batch. A row is invalid if it has no `eos_id`, contains an id outside the
    vocabulary or consists of padding only; the metadata states the full rule under `source`.

    A model that answers in one pass takes the inputs of the model and returns the outputs of the
    pipeline's `Codec`. A classifier of texts, for example, takes `source` as above and returns
    `probabilities`, float32 `[B, C]`, and `label`, int32 `[B]`, the index of the most probable
    class in the `labels` of the metadata.

    The model's `metadata_props` contain the metadata, JSON under `metadata.json`, and the
    vocabulary, such as `tokenizer.model`, in Base64.

    The file appears at `path` only after it has answered `samples` like the model in memory.
    Otherwise, and after any other error, `path` is left unchanged.

    Args:
        pipeline: A `Translator`, a `TextClassificationPipeline` or any other pipeline. If it has a
            shortlist, the exported search uses it.
        path: The file. An older .onnx file is replaced.
        samples: List of real inputs, such as sentences, to check the export with.
        options: The `OnnxOptions`. `None`: the defaults.
        references: List of the correct outputs for the samples. `None`: they are not known.
        origin: Provenance of the original checkpoint, a dictionary for the metadata: see
            `Run.read_origin`.
        progress: See `export_saved_model`.
        left_out: Number of inputs that are not among `samples` because the check would take too
            long, for models that generate text. It appears in the report.

    Returns:
        Dictionary of `path`, `bytes`, `quantize`, `opset`, the version of the operators, and the
        results of `Agreement`, or of `AnswerAgreement` for a model that answers in one pass. With a
        shortlist, `shortlist` has the results of `shortlist_metrics`.

    Raises:
        ExportError: If the answers differ, the model has operations that cannot be converted or is
            larger than a file can be, or something else is at `path`.
        OSError: If the file cannot be written.
        TypeError: If the search is not a `Greedy`, a `Beam` or a `Sample`.
        ValueError: If an argument is wrong or has no effect on the model, or a package is missing.
    """
    load_onnx(), load_runtime()
    options = FORMAT.check(pipeline, options, left_out=left_out)
    samples = pipeline.check_samples(samples)
    path = check_place_of_onnx(path)
    limits = Limits.of(options, references)
    _check_size(path, pipeline)
    check_space(path, pipeline, options.quantize)
    contents = _contents(
        in_float32(pipeline), samples, limits, progress or silent, options, left_out
    )
    about = provenance(options.license, origin)
    report = place_file(path, lambda draft: _write(contents, draft, path, about))
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "quantize": options.quantize,
        **report,
    }


def _contents(pipeline, samples, limits, progress, options, left_out):
    """Returns the `Contents` of a kind of model.

    Only models that generate text have options with `tokenizer`.
    """
    from keras_transformer.export.onnx.answered import OnnxAnswers
    from keras_transformer.export.onnx.generated import OnnxGeneration

    if options.tokenizer:
        from keras_transformer.export.onnx.string_contents import OnnxStringGeneration

        return OnnxStringGeneration(pipeline, samples, limits, progress, options, left_out)
    if pipeline.generates and options.streaming:
        from keras_transformer.export.onnx.streaming import OnnxStreaming

        return OnnxStreaming(pipeline, samples, limits, progress, options, left_out)
    if pipeline.generates:
        return OnnxGeneration(pipeline, samples, limits, progress, options, left_out)
    return OnnxAnswers(pipeline, samples, limits, progress)


def _check_size(path, pipeline):
    """Refuses a model that is too large for one file: the weights are not stored beside it."""
    size = 4 * pipeline.model.count_params()
    if size > LARGEST:
        raise ExportError(
            f"{path} cannot be written: the weights need {size / 1e9:.1f} GB in float32, and an "
            ".onnx file holds at most 2.1 GB."
        )


def _write(contents, draft, path, about):
    """Writes and checks the file `draft`, which errors call `path`; returns the results."""
    try:
        model = contents.convert()
    except ExportError as error:
        raise ExportError(f"{path}: {error}") from error
    tokenizers = contents.pipeline.tokenizers
    pack(model, tokenizers, {**contents.metadata(model), **about})
    draft.write_bytes(model.SerializeToString())
    return_free_memory()  # for the check
    report = contents.check(draft, path)
    model = contents.finished(model)
    metadata = {**contents.metadata(model), **about, "agreement": without_sentences(report)}
    pack(model, tokenizers, metadata)
    draft.write_bytes(model.SerializeToString())
    contents.open(draft)
    return {"opset": metadata["opset"], **report, **contents.results()}
