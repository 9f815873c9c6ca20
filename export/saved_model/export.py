"""A SavedModel for TensorFlow Serving: strings, ids or arrays in, answers out, tokenizer inside."""

import tensorflow as tf

from keras_transformer.export.parity import in_float32
from keras_transformer.export.place import place_version, save, silent
from keras_transformer.export.place_checks import check_place_of_versions, check_space
from keras_transformer.export.saved_model.answered import Answered
from keras_transformer.export.saved_model.generated import Generated, Options
from keras_transformer.export.saved_model.guide import README, model_name
from keras_transformer.export.saved_model.metadata import write_origin
from keras_transformer.export.saved_model.warmup import PATH, write_requests


def export_saved_model(
    pipeline,
    directory,
    samples,
    search=None,
    n_best=None,
    *,
    jit=False,
    batch_sizes=(1, 4, 16),
    lengths=None,
    alignment=None,
    references=None,
    origin=None,
    progress=None,
    left_out=0,
):
    """Writes the next version of a SavedModel: `directory/1/`, `directory/2/` and so on.

    Of a model that generates text it has five signatures, see `Sentences`, `Ids` and
    `SentencesAndSettings`, and with an alignment a sixth, see `Alignments`:

    - `serving_default`, strings `[B]` to what `translate_batch` gives with `search`;
    - `n_best`, strings to the best M translations of a beam;
    - `tokens`, token ids `[B, S]` to those of `greedy_decode`;
    - `beam_tokens`, token ids to the best M of a beam;
    - `search`, strings to the best M translations of a beam whose size, length penalty and longest
      output the request names for each sentence;
    - `alignment`, strings `[B]` to what `serving_default` gives, the tokens of source and
      translation, and what each token of the translation attended to in the source, `[B, T, S]`.

    Of a model that answers in one pass, `serving_default` is from a request to the answers of the
    pipeline's `Codec`. If that has a `signature` of its own, such as `tokens`, there is one of that
    name from the inputs of the model to its outputs.

    Beside the model lie requests with which TensorFlow Serving warms it up, a `README.md` that
    explains how to start it and how to send requests, and if a codec needs it its metadata; for
    searches also parameters for the server's batching.

    The version appears in `directory` when it is complete and every signature has answered
    `samples` as the model in memory does, loaded in both ways that TensorFlow has. If one does
    not, or on any other error, `directory` is as it was before.

    Args:
        pipeline: A `Translator`, a `Classifier` or any other pipeline; one with a shortlist exports
            its searches among the candidates.
        directory: Folder of the versions, as TensorFlow Serving expects it; made if missing.
        samples: List of real inputs, such as sentences, to check the export with.
        search: The search of `serving_default`. A `Beam` is also that of the signatures with a
            beam; beside a `Greedy` these use the `Beam` of 4, or of `n_best` if that is more.
            `None`: the pipeline's own `search`.
        n_best: Translations M. `None`: 4, or the size of the beam if that is less.
        jit: Whether XLA compiles the searches, when the model is loaded, for each of `batch_sizes`
            and of `lengths`. On a processor TensorFlow Serving does so only with a flag: see the
            `README.md`.
        batch_sizes: Numbers of sentences to compile for, increasing. Others are padded or split.
        lengths: Source lengths in tokens to compile for, increasing; the last one is the
            pipeline's `max_length`. Others are padded. `None`: see `default_lengths`.
        alignment: A pair of integers, layer and head of the decoder, or `None` for the mean of its
            heads: whose attention the signature `alignment` gives. `None`: there is none.
        references: List of the right answers, for the report of a model that answers in one pass.
            `None`: they are not known.
        origin: Dictionary of what is known of the checkpoint that the weights come from: see
            `Run.read_origin`. It is kept in `assets.extra/origin.json`, and the `README.md` has it.
        progress: Function that is called with a stage of the work, a string, when it begins, such
            as `print`. `None`: nothing is shown.
        left_out: Samples that are not among `samples` because the check would take too long,
            for the figures.

    The options from `search` to `alignment` and `left_out` are for models that generate text.

    Returns:
        Dictionary of `path`, `bytes`, `signatures`, `python_needs`, the modules that a Python
        program imports before it loads the version, and the results of an `Agreement` or an
        `AnswerAgreement` for `serving_default`; with a shortlist, under `shortlist`, those of
        `shortlist_figures`.

    Raises:
        ExportError: If the answers differ, or `directory` holds something else.
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If `n_best` is not between 1 and the size of the beam, `batch_sizes` or
            `lengths` are not as described, there is no such layer or head, or an option has no
            effect on such a model.
        OSError: If it cannot be written.
    """
    samples = pipeline.check_samples(samples)
    directory = check_place_of_versions(directory)
    pipeline = in_float32(pipeline)
    options = Options(search, n_best, jit, tuple(batch_sizes), lengths, alignment, left_out)
    check_space(directory, pipeline)
    progress, kind = progress or silent, Generated if pipeline.generates else Answered
    contents = kind(pipeline, samples, options, references, progress)
    model = model_name(directory)

    def write(draft):
        progress("writing the graphs")
        module = tf.Module()
        module.weights = contents.weights
        save(module, draft, contents.functions)
        write_requests(draft / PATH, model, contents.requests)
        (draft / README).write_text(contents.page(model).text(model), "utf-8")
        contents.write_metadata(draft)
        write_origin(draft, origin)
        return contents.verify(draft, directory)

    path, report = place_version(directory, write)
    return {
        "path": str(path),
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "signatures": list(contents.functions),
        "python_needs": ["tensorflow", *contents.modules],
        **report,
    }
