"""Verification of a SavedModel: its signatures compared with the model in memory."""

import dataclasses
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.hypotheses import exists
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.extent import CheckTime, counted
from keras_transformer.export.parity import shortened
from keras_transformer.export.place import silent
from keras_transformer.export.reference import Output, tokens_of, with_tokens
from keras_transformer.export.runtime import reason
from keras_transformer.export.saved_model.apart import loaders_for
from keras_transformer.export.saved_model.loaders import SERVING
from keras_transformer.export.worded import WORDS
from keras_transformer.export.words_check import WordsCheck
from keras_transformer.free_memory import return_free_memory
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.results import COMPLETE
from keras_transformer.tasks.strings import map_sorted

BATCH_SIZE = 32
FIRST = 0.1  # share of the time for the first signature with the model in memory
# For numbers other than scores, such as attention weights, which lie between 0 and 1.
TOLERANCE = 1e-3


@dataclasses.dataclass(frozen=True)
class EndpointOutput(Output):
    """One output of an endpoint for a sentence.

    Args:
        others: Dictionary of the endpoint's further outputs for the sentence, arrays.
    """

    others: dict = dataclasses.field(default_factory=dict)


def verify(
    path, name, endpoints, sentences, requests, progress=silent, time=None
) -> dict[str, Any]:
    """Loads a SavedModel with both loaders and calls every signature, as far as there is time.

    As many sentences are compared as fit into a share of the time. The first signature is always
    called as TensorFlow Serving loads it. The graphs of the endpoints are released before that.

    Args:
        path: Its folder.
        name: Name of the export, for errors.
        endpoints: List of `Endpoint`s, which make requests and compute the expected answers.
        sentences: List of strings.
        requests: `Request`s with which TensorFlow Serving will warm up the model.
        progress: See `export_saved_model`.
        time: The `CheckTime`. `None`: the default time, from now on.

    Returns:
        The metrics of the first endpoint: see `Agreement`. If time was short, also
        `sentences_left_out`, the number of sentences that were not compared, and `not_called`, a
        list of what was left out.

    Raises:
        ExportError: If an answer differs by more than rounding, or a call fails.
    """
    time = CheckTime() if time is None else time
    compared, answers = _in_memory(endpoints, sentences, progress, time)
    for endpoint in endpoints:
        endpoint.release()
    endpoints = [endpoint for endpoint in endpoints if endpoint.name in answers]
    left_out = len(sentences) - len(compared)
    agreement = Agreement(endpoints[0].pipeline, compared, left_out=left_out)
    words = _words_check(endpoints, agreement, answers)
    reports = []
    for load, program in loaders_for(endpoints[0].pipeline.model):
        return_free_memory()  # that of the searches in memory, or of the model loaded before
        where = f"as {program} loads it"
        progress(f"loading the version {where}")
        ours = requests if program == SERVING else ()
        try:
            with load(path) as model:
                exported = _exported(
                    model, endpoints, compared, ours, progress, where, time, not reports
                )
                if WORDS in exported and time.allows(f"{WORDS} with further words {where}"):
                    _require_words(model, words, endpoints, f"{name}, {WORDS} {where}")
        except tf.errors.OpError as error:
            raise ExportError(f"{name}: {program} could not run it: {reason(error)}") from error
        del model  # with its weights
        progress("comparing the answers")
        reports += _judge(name, endpoints, agreement, answers, exported)
    return {**reports[0], **({"not_called": time.left_out} if time.left_out else {})}


def _in_memory(endpoints, sentences, progress, time):
    """Returns the compared sentences, and the answers of the model in memory by endpoint.

    The endpoints are called eagerly: those with the same search then share its graph, and with it
    the time of its first call.
    """
    where, first = "with the model in memory", endpoints[0]
    what = f"calling {first.name} {where}"
    progress(what)
    answer = counted(_caller(first, first.answer), progress, what, len(sentences))

    def sorted_answers(some):
        return map_sorted(answer, some, BATCH_SIZE)

    answers = {first.name: time.answers(sorted_answers, sentences, FIRST)}
    compared = sentences[: len(answers[first.name])]
    for endpoint in endpoints[1:]:
        if time.allows(endpoint.name):
            answers[endpoint.name] = _answers(endpoint, endpoint.answer, compared, progress, where)
    return compared, answers


def _exported(model, endpoints, sentences, requests, progress, where, time, is_first):
    """Returns the answers of a loaded model by endpoint; it also answers `requests`.

    The very first call takes place however little time is left.
    """
    answers = {}
    for endpoint in endpoints:
        if is_first and not answers or time.allows(f"{endpoint.name} {where}"):
            call = functools.partial(model.run, endpoint.name)
            answers[endpoint.name] = _answers(endpoint, call, sentences, progress, where)
    if requests:
        progress(f"answering {len(requests)} requests of the warm-up {where}")
    for request in requests:
        if time.allows(f"a warm-up request for {request.signature}"):
            model.run(request.signature, **request.inputs)
    return answers


def _words_check(endpoints, agreement, answers):
    """Returns the `WordsCheck` of the signature `words`, or `None` without it.

    The expected answers of an endpoint come from the graph that is exported. Those of this check
    come from the run's own search.
    """
    worded = [endpoint for endpoint in endpoints if endpoint.name == WORDS]
    outputs = answers[endpoints[0].name]
    return WordsCheck(agreement, worded[0].search.search, outputs) if worded else None


def _require_words(model, words, endpoints, what):
    """Requires the outputs of a `WordsCheck` from the signature `words` of a loaded model."""
    if not words.texts:
        return
    (endpoint,) = (endpoint for endpoint in endpoints if endpoint.name == WORDS)
    tokenizer = endpoint.pipeline.target_tokenizer
    outputs = model.run(WORDS, **endpoint.request(words.texts, words.wording))
    words.require(with_tokens(tokenizer, _rows(tokenizer, outputs), words.expected), what)


def _judge(name, endpoints, agreement, answers, exported):
    """Returns the metrics of every endpoint that was called."""
    tokenizer = agreement.pipeline.target_tokenizer
    known = [
        rows
        for rows in (*exported.values(), *answers.values())
        if all(answer.tokens is not None for row in rows for answer in row)
    ]
    reports = []
    for endpoint in endpoints:
        if endpoint.name not in exported:
            continue
        what = f"{name}, {endpoint.name}"
        ours, theirs = (
            with_tokens(tokenizer, rows[endpoint.name], *known) for rows in (answers, exported)
        )
        searches = map_sorted(endpoint.searches, agreement.samples, BATCH_SIZE)  # as `_answers`
        reports.append(agreement.judge(searches, ours, theirs, what))
        for sentence, *pair in zip(agreement.samples, ours, theirs, strict=True):
            for one, other in zip(*pair, strict=True):
                if one.text == other.text:
                    _require_others(what, sentence, one.others, other.others, tokenizer.pad_id)
    return reports


def _require_others(what, sentence, expected, exported, pad_id):
    """Raises unless all further outputs are equal, numbers within `TOLERANCE`."""
    for output, ours in expected.items():
        if not _same(*_equally_long(ours, exported[output], pad_id)):
            raise ExportError(
                f"{what}: `{output}` of {shortened(sentence)!r} differs from that of the model in "
                "memory. The export was not kept."
            )


def _equally_long(ours, theirs, pad_id):
    """Pads two arrays to the same number of rows, which a near tie in the batch may change."""
    longest = max(len(ours), len(theirs))
    padding = {"O": b"", "i": pad_id}.get(ours.dtype.kind, 0)

    def padded(rows):
        missing = [(0, longest - len(rows))] + [(0, 0)] * (rows.ndim - 1)
        return np.pad(rows, missing, constant_values=padding)

    return padded(ours), padded(theirs)


def _same(ours, theirs):
    if ours.shape != theirs.shape or ours.dtype.kind != "f":
        return np.array_equal(ours, theirs)
    return bool(np.all(np.abs(ours - theirs) <= TOLERANCE))  # false for NaN


def _answers(endpoint, call, sentences, progress, where):
    """Returns for each sentence a list of `EndpointOutput`s, the best one or the n best."""
    what = f"calling {endpoint.name} {where}"
    progress(what)  # the first call of a large model optimises its graph, which takes minutes
    answer = counted(_caller(endpoint, call), progress, what, len(sentences))
    return map_sorted(answer, sentences, BATCH_SIZE)


def _caller(endpoint, call):
    """Returns the function from sentences to the rows of an endpoint, which `call` calls."""
    tokenizer = endpoint.pipeline.target_tokenizer
    return lambda sentences: _rows(tokenizer, call(**endpoint.example(sentences)))


def _rows(tokenizer, outputs):
    """Returns for each sentence a list of `EndpointOutput`s; token ids are also decoded."""
    outputs = {name: np.asarray(value) for name, value in outputs.items()}
    scores = outputs.pop("score")
    count = len(scores)
    scores = scores.reshape(count, -1)  # [B, M]
    truncated = outputs.pop("truncated", np.zeros(count, bool))
    # Not among the others: it belongs to a hypothesis, and near ties exchange hypotheses.
    complete = outputs.pop(COMPLETE).reshape(scores.shape)
    texts, tokens = _texts(tokenizer, outputs, scores)
    rows = []
    for number, (cut, *columns) in enumerate(
        zip(truncated.tolist(), texts, scores.tolist(), tokens, complete, strict=True)
    ):
        others = {
            name: value[number] if value.ndim > 1 else value[number : number + 1]
            for name, value in outputs.items()
        }
        rows.append(
            [
                EndpointOutput(
                    text.decode("utf-8", "replace"),
                    *(score, cut),
                    tokens=ids,
                    others={**others, COMPLETE: np.array([whole])},
                )
                for text, score, ids, whole in zip(*columns, strict=True)
            ]
        )
    return rows


def _texts(tokenizer, outputs, scores):
    """Removes texts or token ids from the outputs; returns texts `[B, M]` and tokens of each.

    Tokens are `None` for an endpoint that returns texts.
    """
    names = {task.pipeline_class().output for task in TASKS.values()}  # of outputs with texts
    written = next((name for name in names if name in outputs), None)
    if written:
        return outputs.pop(written).reshape(scores.shape), np.full(scores.shape, None)
    ids = outputs.pop("tokens").reshape(*scores.shape, -1)  # [B, M, L]
    texts = tokenizer.decode(tf.constant(ids.reshape(-1, ids.shape[-1]))).numpy()
    tokens = [
        [
            tokens_of(tokenizer, sequence) if exists(score) else ()
            for sequence, score in zip(*pair, strict=True)
        ]
        for pair in zip(ids, scores, strict=True)
    ]
    return texts.reshape(scores.shape), tokens
