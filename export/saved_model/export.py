"""Export to a SavedModel for TensorFlow Serving, with the tokenizer inside."""

import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.export.parity import in_float32
from keras_transformer.export.place import place_version, save, silent
from keras_transformer.export.place_checks import check_place_of_versions, check_space
from keras_transformer.export.saved_model.answered import SavedModelAnswers
from keras_transformer.export.saved_model.format import FORMAT, SavedModelOptions
from keras_transformer.export.saved_model.generated import SavedModelGeneration
from keras_transformer.export.saved_model.guide import model_name
from keras_transformer.export.saved_model.metadata import write_origin
from keras_transformer.export.saved_model.warmup import PATH, write_requests
from keras_transformer.tasks.pipeline import Pipeline


def export_saved_model(
    pipeline: Pipeline,
    directory: str | os.PathLike,
    samples: list,
    options: SavedModelOptions | None = None,
    *,
    references: list[str] | None = None,
    origin: dict | None = None,
    progress: Callable[[str], object] | None = None,
    left_out: int = 0,
) -> dict[str, Any]:
    """Writes the next version of a SavedModel: `directory/1/`, `directory/2/` and so on.

    A model that generates text gets five signatures, one more with `alignment`, and one more if it
    has languages to choose from:

    - `serving_default`: from strings `[B]` to the best output of each, found with `search`;
    - `n_best`: from strings to the best M outputs of a beam search;
    - `tokens`: from token ids `[B, S]` to the token ids of greedy search;
    - `beam_tokens`: from token ids to the best M outputs of a beam search;
    - `search`: from strings, with a beam size, length penalty and maximum output length for each,
      to the best M outputs of a beam search;
    - `alignment`: from strings `[B]` to the outputs of `serving_default`, the tokens of source and
      translation, and the attention of each target token to the source tokens, `[B, T, S]`;
    - `languages`: from strings, with a source and a target language for each, to the outputs of
      `serving_default`.

    A model that answers in one pass gets `serving_default`, from a request to the answers of the
    pipeline's `Codec`. If the codec names a second signature, such as `tokens`, that one takes the
    inputs of the model and returns its outputs.

    The version also contains requests with which TensorFlow Serving warms up the model, and a
    `README.md` that explains how to start the server and how to send requests. Long requests are in
    files of their own. There are batching parameters for the server if the model generates text,
    and metadata of the codec if it needs some.

    The version appears in `directory` only after every signature, loaded as TensorFlow Serving and
    as Python load it, has answered `samples` like the model in memory. Otherwise, and after any
    other error, `directory` is left unchanged.

    Args:
        pipeline: A `Translator`, a `TextClassificationPipeline` or any other pipeline. If it has a
            shortlist, the exported searches use it.
        directory: Folder of the versions, as TensorFlow Serving expects it; created if missing.
        samples: List of real inputs, such as sentences, to check the export with.
        options: The `SavedModelOptions`. `None`: the defaults.
        references: List of the correct answers, for the report of a model that answers in one
            pass. `None`: they are not known.
        origin: Provenance of the original checkpoint, a dictionary: see `Run.read_origin`. It is
            written to `assets.extra/origin.json` and to the `README.md`.
        progress: Function that is called with the name of each stage as it begins, such as
            `print`. `None`: no progress is shown.
        left_out: Number of inputs that are not among `samples` because the check would take too
            long. It appears in the report.

    `left_out` is for models that generate text.

    Returns:
        Dictionary of `path`, `bytes` and `signatures`; `python_needs`, the modules that a Python
        program imports before it loads the version; and the results of `Agreement` or
        `AnswerAgreement` for `serving_default`. With a shortlist, `shortlist` has the results of
        `shortlist_metrics`. If `check_seconds` were not enough, `sentences_left_out` and
        `not_called` name what was not checked.

    Raises:
        ExportError: If the answers differ, or `directory` contains something else.
        TypeError: If `options.search` is neither a `Greedy` nor a `Beam`.
        ValueError: If `n_best` is not between 1 and the size of the beam, `batch_sizes` or
            `lengths` are not as described, the layer or head does not exist, or an option has no
            effect on the model.
        OSError: If the version cannot be written.
    """
    options = FORMAT.check(pipeline, options, references=references, left_out=left_out)
    samples = pipeline.check_samples(samples)
    directory = check_place_of_versions(directory)
    pipeline, progress = in_float32(pipeline), progress or silent
    check_space(directory, pipeline)
    if pipeline.generates:
        contents = SavedModelGeneration(pipeline, samples, progress, options, left_out)
    else:
        contents = SavedModelAnswers(pipeline, samples, progress, references)
    model = model_name(directory)

    def write(draft):
        functions = dict(contents.functions)
        for name, function in functions.items():
            if isinstance(function, tf.types.experimental.PolymorphicFunction):
                progress(f"tracing {name}")
                # TensorFlow would trace a `tf.function` once more to save it.
                functions[name] = function.get_concrete_function()
        progress("writing the graphs")
        module = tf.Module()
        module.weights = contents.weights
        save(module, draft, functions)
        write_requests(draft / PATH, model, contents.requests)
        contents.page(model).write(draft, model)
        contents.write_metadata(draft)
        write_origin(draft, origin)
        del module, functions, function
        contents.release()
        return contents.verify(draft, directory)

    path, report = place_version(directory, write)
    return {
        "path": str(path),
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "signatures": contents.names,
        "python_needs": ["tensorflow", *contents.modules],
        **report,
    }
