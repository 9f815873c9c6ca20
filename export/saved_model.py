"""A SavedModel for TensorFlow Serving: strings in, strings and scores out, tokenizer inside."""

import tensorflow as tf

from keras_transformer.translation import to_translations, translate_sorted

from .loaded import SavedModelTranslator, reason
from .parity import (
    ExportError,
    check_sentences,
    compare,
    in_float32,
    require_identical,
)
from .staging import (
    check_place_of_versions,
    place_version,
    save,
)

SIGNATURE = "serving_default"
# The operations of TensorFlow Text that TensorFlow Serving has known for long.
SENTENCEPIECE = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}


def export_saved_model(translator, directory, sentences):
    """Writes the next version of a SavedModel: `directory/1/`, `directory/2/` and so on.

    Its signature `serving_default` takes `sentences`, string `[B]`, and gives what
    `Translator.translate` gives: `translation`, `score` and `truncated`.

    The version appears in `directory` when it is complete and has translated `sentences` as the
    model in memory does, loaded in both ways that TensorFlow has. If it does not, or on any other
    error, `directory` is as it was before.

    Args:
        translator: A `Translator`.
        directory: Folder of the versions, as TensorFlow Serving expects it; made if missing.
        sentences: List of real sentences to check the export with.

    Returns:
        Dictionary of `path`, `bytes`, and the figures of a `Parity`.

    Raises:
        ExportError: If the translations differ, or `directory` holds something else.
        OSError: If it cannot be written.
    """
    sentences = check_sentences(sentences)
    directory = check_place_of_versions(directory)
    translator = in_float32(translator)

    def write(draft):
        save(translator, draft, {SIGNATURE: translator.translate})
        return _verify(draft, directory, translator, sentences)

    path, parity = place_version(directory, write)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return {"path": str(path), "bytes": size, **parity.to_dict()}


def _verify(draft, name, translator, sentences):
    expected = translate_sorted(translator, sentences)
    for load in (_SessionTranslator, SavedModelTranslator):
        try:
            found = translate_sorted(load(draft), sentences)
        except tf.errors.OpError as error:
            raise ExportError(
                f"{name}: TensorFlow Serving could not run it: {reason(error)}"
            ) from error
        parity = compare(sentences, expected, found, translator.tokenizer)
        require_identical(parity, name)
    return parity


class _SessionTranslator:
    """Loads a SavedModel as TensorFlow Serving does: from the graph alone, without its objects.

    What Python's loader puts together from the objects can hide that the graph is incomplete.
    """

    def __init__(self, path):
        self.session = tf.compat.v1.Session(graph=tf.Graph())
        logger = tf.get_logger()
        level = logger.level
        logger.setLevel("ERROR")  # it advises to use the other loader
        try:
            with self.session.graph.as_default():
                meta = tf.compat.v1.saved_model.loader.load(self.session, ["serve"], str(path))
        finally:
            logger.setLevel(level)
        check_operations(meta.graph_def)
        signature = meta.signature_def[SIGNATURE]
        self.sentences = signature.inputs["sentences"].name
        self.outputs = {name: info.name for name, info in signature.outputs.items()}

    def translate_batch(self, sentences):
        outputs = self.session.run(self.outputs, {self.sentences: sentences})
        return to_translations({name: tf.constant(value) for name, value in outputs.items()})


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
