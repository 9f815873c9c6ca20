"""Asks a SavedModel what its endpoints were asked in memory, and compares the answers."""

import dataclasses

import numpy as np
import tensorflow as tf

import keras_transformer.tokenizer  # noqa: F401  (a SavedModel needs its operations)
from keras_transformer.translation import Translation, map_sorted

from .loaded import reason
from .parity import ExportError, compare, require_identical
from .staging import silent

# The operations of TensorFlow Text that TensorFlow Serving has known for long.
SENTENCEPIECE = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
BATCH_SIZE = 64
# Of other numbers than scores, such as weights of attention, which lie between 0 and 1.
TOLERANCE = 1e-3


@dataclasses.dataclass(frozen=True)
class Answer(Translation):
    """What an endpoint says to a sentence.

    Args:
        others: Dictionary of those of its outputs that a `Translation` has no place for, arrays.
    """

    others: dict


def verify(path, name, endpoints, sentences, requests, expected, progress=silent):
    """Loads a SavedModel in both ways that TensorFlow has and asks every signature.

    Args:
        path: Its folder.
        name: Name of the export, for errors.
        endpoints: List of `Endpoint`s: how to ask and what the answers should be.
        sentences: List of strings to ask for.
        requests: `Request`s that TensorFlow Serving will make while it loads the model.
        expected: Translations of `sentences` by the model itself, for the first endpoint.
        progress: See `export_saved_model`.

    Returns:
        The `Parity` of the first endpoint.

    Raises:
        ExportError: If an answer differs, or there is none.
    """
    answers = [expected, *(_answers(each, each.function, sentences) for each in endpoints[1:])]
    tokenizer = endpoints[0].translator.tokenizer
    try:
        for load, program in ((SessionModel, "TensorFlow Serving"), (_PythonModel, "Python")):
            progress(f"asking every signature as {program} loads it")
            with load(path) as model:
                parities = [
                    _compare(model, name, endpoint, sentences, answer, tokenizer)
                    for endpoint, answer in zip(endpoints, answers, strict=True)
                ]
                if load is SessionModel:
                    for request in requests:
                        model.run(request.signature, **request.inputs)
    except tf.errors.OpError as error:
        raise ExportError(
            f"{name}: TensorFlow Serving could not run it: {reason(error)}"
        ) from error
    return parities[0]


def _compare(model, name, endpoint, sentences, expected, tokenizer):
    def ask(**inputs):
        return model.run(endpoint.name, **inputs)

    found = _answers(endpoint, ask, sentences)
    repeated = np.repeat(sentences, len(found) // len(sentences)).tolist()
    parity = compare(repeated, expected, found, tokenizer)
    what = f"{name}, {endpoint.name}"
    require_identical(parity, what)
    for sentence, ours, theirs in zip(repeated, expected, found, strict=True):
        if isinstance(ours, Answer):
            _require_others(what, sentence, ours.others, theirs.others)
    return parity


def _require_others(what, sentence, expected, found):
    """Raises unless all other outputs are the same, numbers within `TOLERANCE`."""
    for output, ours in expected.items():
        if not _same(ours, found[output]):
            raise ExportError(
                f"{what}: `{output}` of {sentence!r} differs from that of the model in memory. "
                "The export was not kept."
            )


def _same(ours, theirs):
    if ours.shape != theirs.shape or ours.dtype.kind != "f":
        return np.array_equal(ours, theirs)
    return bool(np.all(np.abs(ours - theirs) <= TOLERANCE))  # not a number is not the same


def _answers(endpoint, ask, sentences):
    """What an endpoint says to every sentence, one or the n best of each, as `Answer`s."""

    def answer(batch):
        return _rows(ask(**endpoint.example(batch)))

    rows = map_sorted(answer, sentences, BATCH_SIZE)
    return [answer for row in rows for answer in row]


def _rows(outputs):
    """Of each sentence a list of `Answer`s; ids are written as numbers."""
    outputs = {name: np.asarray(value) for name, value in outputs.items()}
    scores = outputs.pop("score")
    count = len(scores)
    scores = scores.reshape(count, -1)  # [B, M]
    truncated = outputs.pop("truncated", np.zeros(count, bool))
    texts = _texts(outputs, scores.shape)
    rows = []
    for number in range(count):
        others = {name: value[number] for name, value in outputs.items()}
        cut = bool(truncated[number])
        pairs = zip(texts[number], scores[number], strict=True)
        rows.append([Answer(text, float(score), cut, others) for text, score in pairs])
    return rows


def _texts(outputs, shape):
    """Takes the translations out of the outputs, or else their ids."""
    if "translation" in outputs:
        texts = outputs.pop("translation").reshape(shape)
        return [[text.decode("utf-8", "replace") for text in row] for row in texts]
    ids = outputs.pop("tokens").reshape(*shape, -1)  # [B, M, L]
    return [[" ".join(map(str, each)) for each in row] for row in ids]


class SessionModel:
    """Loads a SavedModel as TensorFlow Serving does: from the graph alone, without its objects.

    What Python's loader puts together from the objects can hide that the graph is incomplete.

    Args:
        path: The folder of the SavedModel.

    Raises:
        ExportError: If it has operations that TensorFlow Serving has not.
    """

    def __init__(self, path):
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        logger = tf.get_logger()
        level = logger.level
        logger.setLevel("ERROR")  # it advises to use the other loader
        try:
            with self._session.graph.as_default():
                meta = tf.compat.v1.saved_model.loader.load(self._session, ["serve"], str(path))
        finally:
            logger.setLevel(level)
        check_operations(meta.graph_def)
        self._signatures = meta.signature_def

    def run(self, signature, **inputs):
        """Returns the outputs of a signature as arrays, by name."""
        known = self._signatures[signature]
        outputs = {name: info.name for name, info in known.outputs.items()}
        feed = {known.inputs[name].name: np.asarray(value) for name, value in inputs.items()}
        return self._session.run(outputs, feed)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._session.close()


class _PythonModel:
    """Loads a SavedModel as a Python program does."""

    def __init__(self, path):
        self._model = tf.saved_model.load(str(path))

    def run(self, signature, **inputs):
        return self._model.signatures[signature](**inputs)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def check_operations(graph):
    """Raises unless every operation is one that TensorFlow Serving has."""
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    names = {node.op for node in nodes} - {function.signature.name for function in functions}
    foreign = sorted(
        name
        for name in names - SENTENCEPIECE
        if not hasattr(tf.raw_ops, name) or name.startswith("Xla")
    )
    if foreign:
        raise ExportError(f"TensorFlow Serving does not have the operations {', '.join(foreign)}.")
