"""Asks a SavedModel what its endpoints were asked in memory, and compares the answers."""

import numpy as np
import tensorflow as tf

import keras_transformer.tokenizer  # noqa: F401  (a SavedModel needs its operations)
from keras_transformer.translation import Translation, map_sorted

from .loaded import reason
from .parity import ExportError, compare, require_identical

# The operations of TensorFlow Text that TensorFlow Serving has known for long.
SENTENCEPIECE = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
BATCH_SIZE = 64


def verify(path, name, endpoints, sentences, requests, expected):
    """Loads a SavedModel in both ways that TensorFlow has and asks every signature.

    Args:
        path: Its folder.
        name: Name of the export, for errors.
        endpoints: List of `Sentences` and `Ids`: how to ask and what the answers should be.
        sentences: List of strings to ask for.
        requests: `Request`s that TensorFlow Serving will make while it loads the model.
        expected: Translations of `sentences` by the model itself, for the first endpoint.

    Returns:
        The `Parity` of the first endpoint.

    Raises:
        ExportError: If an answer differs, or there is none.
    """
    answers = [expected, *(_answers(each, each.function, sentences) for each in endpoints[1:])]
    tokenizer = endpoints[0].translator.tokenizer
    try:
        for load in (SessionModel, _PythonModel):
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
    def ask(value):
        return model.run(endpoint.name, **{endpoint.input.name: value})

    found = _answers(endpoint, ask, sentences)
    repeated = np.repeat(sentences, len(found) // len(sentences)).tolist()
    parity = compare(repeated, expected, found, tokenizer)
    return require_identical(parity, f"{name}, {endpoint.name}")


def _answers(endpoint, ask, sentences):
    """What an endpoint says to every sentence, one or the n best of each, as `Translation`s."""

    def answer(batch):
        return _rows(ask(endpoint.example(batch)))

    rows = map_sorted(answer, sentences, BATCH_SIZE)
    return [translation for row in rows for translation in row]


def _rows(outputs):
    """Of each sentence a list of `Translation`s; ids are written as numbers."""
    outputs = {name: np.asarray(value) for name, value in outputs.items()}
    count = len(outputs["score"])
    truncated = outputs.get("truncated", np.zeros(count, bool))
    scores = outputs["score"].reshape(count, -1)  # [B, M]
    if "tokens" in outputs:
        ids = outputs["tokens"].reshape(*scores.shape, -1)  # [B, M, L]
        texts = [[" ".join(map(str, each)) for each in row] for row in ids]
    else:
        texts = outputs["translation"].reshape(scores.shape)
        texts = [[text.decode("utf-8", "replace") for text in row] for row in texts]
    return [
        [Translation(text, float(score), bool(cut)) for text, score in zip(*pair, strict=True)]
        for *pair, cut in zip(texts, scores, truncated, strict=True)
    ]


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
