"""Contents of a SavedModel whose model generates text."""

import functools
import gc
from typing import Any

from keras_transformer.export.extent import CHECK_SECONDS, CheckTime
from keras_transformer.export.parity import copy_pipeline
from keras_transformer.export.saved_model import guide, templates
from keras_transformer.export.saved_model.buckets import BucketedSearch, Buckets
from keras_transformer.export.saved_model.endpoints import Alignments
from keras_transformer.export.saved_model.kernels import output_kernels
from keras_transformer.export.saved_model.metadata import write_beam, write_task
from keras_transformer.export.saved_model.signatures import make_endpoints
from keras_transformer.export.saved_model.verify import verify
from keras_transformer.export.saved_model.warmup import Request, make_requests
from keras_transformer.export.saved_model.words import MOST
from keras_transformer.export.searches import search_of, traced
from keras_transformer.export.shapes import default_lengths
from keras_transformer.export.shortlists import shortlist_metrics
from keras_transformer.export.worded import WORDS
from keras_transformer.export.words import BANNED, PREFIX, TERMS
from keras_transformer.tasks.results import TOKEN_SCORES
from keras_transformer.tasks.single_pass.text import LONGEST_TEXT
from keras_transformer.tasks.wording import MAX_CHARACTERS
from keras_transformer.text.tokenizers import SentencePieceTokenizer

BATCH_SIZES = (1, 4, 16)  # compiled by default
TEXT_OPERATIONS = {"tensorflow_text": "registers the operations of the tokenizer"}


class SavedModelGeneration:
    """Signatures of a model that generates text, from strings and from token ids.

    Args:
        pipeline: A `Generator` in float32.
        samples: List of strings.
        options: The `SavedModelOptions`.
        progress, left_out: See `export_saved_model`.

    Attributes:
        weights: Variables that the SavedModel tracks.
        functions: Dictionary from the names of the signatures to functions.
        names: List of the names of the signatures.
        requests: Requests that warm up the server.
        modules: Modules that a Python program must import, and the reason for each.
    """

    modules = TEXT_OPERATIONS

    def __init__(self, pipeline, samples, progress, options, left_out):
        self._pipeline, self._samples, self._progress = pipeline, samples, progress
        self._jit, self._left_out = options.jit, left_out
        self._check_seconds = options.check_seconds or CHECK_SECONDS
        n_best, batch_sizes = options.n_best, options.batch_sizes
        names = ("alignment", "takes_words", "token_scores")
        more = {name: getattr(options, name) for name in names}
        self._search = search = search_of(pipeline, options)
        self.endpoints = make_endpoints(pipeline, search, n_best, **more)
        self._buckets = _buckets(
            pipeline.max_length, options.lengths, batch_sizes if options.jit else (1,)
        )
        kernels, matrix = output_kernels(pipeline.model, options.jit)
        fast = copy_pipeline(pipeline, kernels)
        graph_of = _compiled(pipeline, self._buckets) if options.jit else traced
        exported = make_endpoints(fast, search, n_best, graph_of, **more)
        self.weights = fast.weights + matrix
        self.functions = {endpoint.name: endpoint.function for endpoint in exported}
        self.names, self._exported = list(self.functions), exported

    @functools.cached_property
    def requests(self) -> list[Request]:  # noqa: D102
        return make_requests(self.endpoints, self._buckets, self._samples)

    def page(self, model) -> guide.Page:
        """Returns the `Page` about the model, which is served under the name `model`."""
        sample = next(sample for sample in self._samples if sample.strip())
        if self._jit:
            return page_of(model, self.endpoints, sample, self._buckets)
        # The graphs of the export are there already, unlike those of `endpoints`.
        return page_of(model, self._exported, sample)

    def write_metadata(self, draft) -> None:
        """Writes the server's batching parameters, the task and the beam into a version."""
        write_task(draft, self._pipeline.task)
        buckets = self._buckets if self._jit else None
        (draft / guide.BATCHING).write_text(guide.batching_parameters(buckets), "utf-8")
        write_beam(draft, self.endpoints[0].beam)

    def release(self) -> None:
        """Frees the weights and graphs that have been written: the check needs the memory."""
        del self.weights, self.functions, self._exported
        gc.collect()

    def verify(self, draft, name) -> dict[str, Any]:
        """Checks a draft, which errors call `name`, and returns the results."""
        pipeline, samples, progress = self._pipeline, self._samples, self._progress
        time = CheckTime(self._check_seconds)
        report = verify(draft, name, self.endpoints, samples, self.requests, progress, time)
        if self._left_out:
            left_out = self._left_out + report.get("sentences_left_out", 0)
            report = {**report, "sentences_left_out": left_out}
        return {**report, **shortlist_metrics(pipeline, samples, self._search)}


def page_of(model, endpoints, sample, buckets=None) -> guide.Page:
    """Returns the `Page` about the signatures of a model that generates text.

    Args:
        model: Name under which the model is served.
        endpoints: List of `Endpoint`s.
        sample: String for the examples.
        buckets: The `Buckets` for which the model is compiled. `None`: it is not compiled.
    """
    pipeline, kinds = endpoints[0].pipeline, {endpoint.name: endpoint for endpoint in endpoints}
    sample = sample[:LONGEST_TEXT]
    ids = pipeline.encode([sample])[0].numpy().tolist()
    values = {
        "output": pipeline.output,
        "vocabulary": pipeline.source_tokenizer.title,
        "empty": templates.EMPTY[pipeline.blank],
        "model": model,
        "max_length": pipeline.max_length,
        "shortest": endpoints[0].beam.min_length,
        "beam_size": endpoints[0].beam.size,
        "eos_id": pipeline.source_tokenizer.eos_id,
        "pad_id": pipeline.source_tokenizer.pad_id,
        "searches": "\n".join(f"- `{name}`: {kind.search.summary}" for name, kind in kinds.items()),
        "batching": guide.BATCHING,
        "largest": guide.largest_batch(buckets),
        "compiled": guide.compiled(buckets) if buckets else "",
        "sentence": guide.json_of(sample),
        "ids": ids[0],
    }
    alignment = _alignment(kinds, values)
    examples = {"source": ids, "sentences": [sample], "length_penalty": [1.0]}
    examples |= {PREFIX: [""], BANNED: [[""]], TERMS: [[""]]}
    examples |= {name: [values[name]] for name in ("beam_size", "max_length")}
    languages = pipeline.source_tokenizer.languages
    if languages is not None:
        examples["source_language"] = [languages.source]
        examples["target_language"] = [languages.target]
    return guide.Page(
        purpose=f"{pipeline.purpose}, with tokenizer and search in the graph",
        functions={name: kind.function.get_concrete_function() for name, kind in kinds.items()},
        axes=lambda name, key, spec: _axes(kinds[name], key, spec),
        notes=templates.NOTES.substitute(
            values,
            alignment=alignment[0],
            words=_words(kinds) + _scores(kinds),
            languages=_languages(languages),
        ),
        requests={
            name: guide.json_of({spec.name: examples[spec.name] for spec in kind.inputs})
            for name, kind in kinds.items()
        },
        modules=TEXT_OPERATIONS,
        arguments={"sentences": f"tf.constant([{guide.json_of(sample)}])"},
        output=pipeline.output,
        flags=f" {guide.XLA_FLAG}" if buckets else "",
        serving=templates.SERVING.substitute(values),
        grpc=templates.GRPC.substitute(values, alignment_grpc=alignment[1]),
    )


def _alignment(endpoints, values):
    """Returns the parts of the page about alignments, empty if no endpoint returns them."""
    aligned = next((kind for kind in endpoints.values() if isinstance(kind, Alignments)), None)
    if aligned is None:
        return "", ""
    tokenizer = aligned.pipeline.source_tokenizer
    end, unknown = tokenizer.pieces([tokenizer.eos_id, tokenizer.unk_id])
    values = {**values, "end": end, "unknown": unknown, "joined": ""}
    if isinstance(tokenizer, SentencePieceTokenizer):
        values["joined"] = templates.JOINED.substitute(values)
    return templates.ALIGNMENT.substitute(values), templates.ALIGNMENT_GRPC.substitute(values)


def _words(endpoints):
    """Returns the part of the page about words, empty if no endpoint takes any."""
    if WORDS not in endpoints:
        return ""
    more = {"terms": "", "most": "", "unknown": ""}
    if endpoints[WORDS].search.search.takes_terms:
        more["terms"] = templates.TERMS
        more["most"] = f", and at most {MOST[TERMS]} terms and spellings"
        more["unknown"] = " or have terms with characters that the vocabulary lacks"
    limits = {"phrases": MOST[BANNED], "characters": MAX_CHARACTERS}
    return templates.WORDS.substitute(limits, **more)


def _scores(endpoints):
    """Returns the part of the page about scores of tokens, empty if no endpoint returns them."""
    return templates.SCORES if TOKEN_SCORES in endpoints else ""


def _languages(languages):
    """Returns the part of the page about languages, empty for a model without them."""
    if languages is None:
        return ""
    codes = ", ".join(languages.ids)
    return templates.LANGUAGES.substitute(
        codes=codes,
        inputs=" and ".join(f"`{side}_language`" for side in reversed(languages.sides)),
        defaults=" and ".join(getattr(languages, side) for side in reversed(languages.sides)),
        front=languages.front_rule,
        own=templates.OWN.format(languages.codes.example) if languages.codes else "",
    )


def _axes(endpoint, name, spec):
    """Returns the letters of the axes of a signature's tensor."""
    if name in {input.name for input in endpoint.inputs}:
        return ", ".join(["B", *"S" * (spec.shape.rank - 1)])
    last = endpoint.last_axes.get(name, "")
    n_best = [f"M={size}" for size in spec.shape[1 : len(spec.shape) - len(last)]]
    return ", ".join(["B", *n_best, *last])


def _buckets(max_length, lengths, batch_sizes):
    lengths = tuple(default_lengths(max_length) if lengths is None else lengths)
    buckets = Buckets(tuple(BATCH_SIZES if batch_sizes is None else batch_sizes), lengths)
    if lengths[-1] != max_length:
        raise ValueError(
            f"`lengths` must end in the pipeline's `max_length`, {max_length}. "
            f"Received: lengths={lengths}."
        )
    return buckets


def _compiled(pipeline, buckets):
    """Returns a function that compiles a search for the shapes of `buckets`."""
    tokenizer = pipeline.source_tokenizer

    def compiled(search):
        return BucketedSearch(
            search, buckets, tokenizer.pad_id, tokenizer.eos_id, inputs=search.inputs
        )

    return compiled
