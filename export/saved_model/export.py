"""A SavedModel for TensorFlow Serving: strings or ids in, translations out, tokenizer inside."""

import tensorflow as tf

from keras_transformer.export.parity import copy_translator, in_float32
from keras_transformer.export.place import place_version, save, silent
from keras_transformer.export.place_checks import check_place_of_versions, check_space
from keras_transformer.export.saved_model.buckets import BucketedSearch, Buckets
from keras_transformer.export.saved_model.facts import write_beam, write_origin
from keras_transformer.export.saved_model.guide import (
    BATCHING,
    README,
    batching_parameters,
    model_name,
    readme,
)
from keras_transformer.export.saved_model.kernels import output_kernels
from keras_transformer.export.saved_model.signatures import make_endpoints
from keras_transformer.export.saved_model.verify import verify
from keras_transformer.export.saved_model.warmup import PATH, make_requests, write_requests
from keras_transformer.export.searches import traced
from keras_transformer.export.shapes import default_lengths
from keras_transformer.export.shortlists import shortlist_figures
from keras_transformer.tasks.strings import check_samples


def export_saved_model(
    translator,
    directory,
    sentences,
    search=None,
    n_best=None,
    *,
    jit=False,
    batch_sizes=(1, 4, 16),
    lengths=None,
    alignment=None,
    origin=None,
    progress=None,
    left_out=0,
):
    """Writes the next version of a SavedModel: `directory/1/`, `directory/2/` and so on.

    It has five signatures, see `Sentences`, `Ids` and `SentencesAndSettings`, and with an alignment
    a sixth, see `Alignments`:

    - `serving_default`, strings `[B]` to what `translate_batch` gives with `search`;
    - `n_best`, strings to the best M translations of a beam;
    - `tokens`, token ids `[B, S]` to those of `greedy_decode`;
    - `beam_tokens`, token ids to the best M of a beam;
    - `search`, strings to the best M translations of a beam whose size, length penalty and longest
      output the request names for each sentence;
    - `alignment`, strings `[B]` to what `serving_default` gives, the tokens of source and
      translation, and what each token of the translation attended to in the source, `[B, T, S]`.

    Beside the model lie requests with which TensorFlow Serving warms it up, parameters for its
    batching, and a `README.md` that explains how to start it and how to send requests.

    The version appears in `directory` when it is complete and every signature has answered
    `sentences` as the model in memory does, loaded in both ways that TensorFlow has. If one does
    not, or on any other error, `directory` is as it was before.

    Args:
        translator: A `Translator`; one with a shortlist exports its searches among the candidates.
        directory: Folder of the versions, as TensorFlow Serving expects it; made if missing.
        sentences: List of real sentences to check the export with.
        search: The search of `serving_default`. A `Beam` is also that of the signatures with a
            beam; beside a `Greedy` these use the `Beam` of 4, or of `n_best` if that is more.
            `None`: the translator's own `search`.
        n_best: Translations M. `None`: 4, or the size of the beam if that is less.
        jit: Whether XLA compiles the searches, when the model is loaded, for each of `batch_sizes`
            and of `lengths`. On a processor TensorFlow Serving does so only with a flag: see the
            `README.md`.
        batch_sizes: Numbers of sentences to compile for, increasing. Others are padded or split.
        lengths: Source lengths in tokens to compile for, increasing; the last one is the
            translator's `max_length`. Others are padded. `None`: see `default_lengths`.
        alignment: A pair of integers, layer and head of the decoder, or `None` for the mean of its
            heads: whose attention the signature `alignment` gives. `None`: there is none.
        origin: Dictionary of what is known of the checkpoint that the weights come from: see
            `Run.read_origin`. It is kept in `assets.extra/origin.json`, and the `README.md` has it.
        progress: Function that is called with a stage of the work, a string, when it begins, such
            as `print`. `None`: nothing is shown.
        left_out: Sentences that are not among `sentences` because the check would take too long,
            for the figures.

    Returns:
        Dictionary of `path`, `bytes`, `signatures`, `python_needs`, the modules that a Python
        program imports before it loads the version, and the figures of a `Parity`, which are those
        of `serving_default`; with a shortlist, under `shortlist`, those of `shortlist_figures`.

    Raises:
        ExportError: If the answers differ, or `directory` holds something else.
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If `n_best` is not between 1 and the size of the beam, `batch_sizes` or
            `lengths` are not as described, or there is no such layer or head.
        OSError: If it cannot be written.
    """
    sentences = check_samples(sentences)
    directory = check_place_of_versions(directory)
    translator = in_float32(translator)
    search = translator.search if search is None else search
    check_space(directory, translator)
    progress = progress or silent
    endpoints = make_endpoints(translator, search, n_best, alignment=alignment)
    buckets = _buckets(translator.max_length, batch_sizes if jit else (1,), lengths)
    kernels, matrix = output_kernels(translator.model, jit)
    fast = copy_translator(translator, kernels)
    graph_of = _compiled(translator, buckets) if jit else traced
    exported = make_endpoints(fast, search, n_best, graph_of, alignment)

    def write(draft):
        progress("writing the graphs")
        module = tf.Module()
        module.weights = fast.weights + matrix
        save(module, draft, {endpoint.name: endpoint.function for endpoint in exported})
        requests = make_requests(endpoints, buckets, sentences)
        write_requests(draft / PATH, model_name(directory), requests)
        _write_texts(draft, model_name(directory), endpoints, sentences, buckets if jit else None)
        write_beam(draft, endpoints[0].beam)
        write_origin(draft, origin)
        progress(f"translating {len(sentences)} sentences with the model in memory")
        expected = [best for best, *_ in translator.n_best(sentences, 1, search)]
        report = verify(draft, directory, endpoints, sentences, requests, expected, progress)
        report |= {"sentences_left_out": left_out} if left_out else {}
        return {**report, **shortlist_figures(translator, sentences, search)}

    path, report = place_version(directory, write)
    return {
        "path": str(path),
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "signatures": [endpoint.name for endpoint in endpoints],
        "python_needs": ["tensorflow", "tensorflow_text"],
        **report,
    }


def _buckets(max_length, batch_sizes, lengths):
    lengths = tuple(default_lengths(max_length) if lengths is None else lengths)
    buckets = Buckets(tuple(batch_sizes), lengths)
    if lengths[-1] != max_length:
        raise ValueError(
            f"`lengths` must end in the translator's max_length, {max_length}. "
            f"Received: lengths={lengths}."
        )
    return buckets


def _compiled(translator, buckets):
    """What makes of a search one that is compiled for the shapes of `buckets`."""
    tokenizer = translator.source_tokenizer

    def compiled(search):
        return BucketedSearch(
            search, buckets, tokenizer.pad_id, tokenizer.eos_id, inputs=search.inputs
        )

    return compiled


def _write_texts(folder, model, endpoints, sentences, buckets):
    sentence = next(sentence for sentence in sentences if sentence.strip())
    (folder / BATCHING).write_text(batching_parameters(buckets), "utf-8")
    (folder / README).write_text(readme(model, endpoints, sentence, buckets), "utf-8")
