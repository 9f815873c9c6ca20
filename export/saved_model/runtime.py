"""A SavedModel as a translator: what `keras-transformer translate` and the checks run."""

import pathlib
import re

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

import keras_transformer.text.tokenizers.sentencepiece  # noqa: F401  (a SavedModel also needs its operations)
from keras_transformer.decoding import Beam
from keras_transformer.decoding.search import check_search
from keras_transformer.export.place_checks import SAVED_MODEL, versions
from keras_transformer.export.runtime import check_n_best, reason
from keras_transformer.export.saved_model.metadata import read_codec
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.attention import Attention
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.results import to_best, to_n_best
from keras_transformer.tasks.single_pass.pipeline import SinglePass
from keras_transformer.tasks.strings import check_sentence


class SavedModelTranslator:
    """A SavedModel written by `export_saved_model`.

    Args:
        path: The folder of a version, or the folder of all versions: then the newest is taken.
        search: A `Beam` to search with, by the signature `search`, which takes its `size`,
            `length_penalty` and `max_length`; all else but `extra_length`, which is `None`, is as
            it was exported. `None`: the searches of `serving_default` and `n_best`.

    Raises:
        TypeError: If `search` is something else.
        ValueError: If it is no SavedModel, or one of something else; when it translates, if its
            beam has fewer hypotheses.
    """

    def __init__(self, path, search=None):
        if search is not None:
            check_search(search, Beam)
        path = newest_version(path)
        self._model, self._translate, self._kind = _open(path, Generator)
        self.blank = self._kind.blank
        self.path, self.search = path, search
        if search is not None and "search" not in self._model.signatures:
            raise ValueError(f"{path} has no signature `search` for a beam. Export it again.")

    def translate_batch(self, sentences):
        """Returns a `Translation` for each of a list of strings, decoded as one batch."""
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        if self.search is not None:
            return to_best(self._search(batch), self._kind.result)
        outputs = self._read(self._translate(sentences=batch))
        for name in ("text", "score"):
            outputs[name] = tf.expand_dims(outputs[name], 1)  # [B, M=1]
        return to_best(outputs, self._kind.result)

    @property
    def n_best(self):
        """Translations that its signature for several gives, 0 without one."""
        signature = self._model.signatures.get("n_best" if self.search is None else "search")
        return 0 if signature is None else signature.structured_outputs[self._kind.output].shape[1]

    def attention(self, sentence):
        """Returns what each piece of a translation attended to, as far as the export gives it.

        Args:
            sentence: A string.

        Returns:
            `{"cross": Attention}`, without single layers and heads: the export gives one layer, and
            one head or the mean of all.

        Raises:
            TypeError: If `sentence` is not a string.
            ValueError: If it is empty, or the model was exported without its alignments.
        """
        batch = tf.constant([check_sentence(sentence)])
        signature = self._model.signatures.get("alignment")
        if signature is None:
            raise ValueError(
                f"{self.path} has no signature `alignment`, which gives attention weights. Export "
                "a translator again with --alignment."
            )
        outputs = {name: value[0].numpy() for name, value in signature(sentences=batch).items()}
        target, source = (
            [piece.decode() for piece in outputs[f"{side}_pieces"]] for side in ("target", "source")
        )
        weights = outputs["alignment"][np.newaxis, np.newaxis]  # [1, 1, T, S]
        cut = bool(outputs["truncated"])
        return {"cross": Attention("cross", target, source, weights, False, cut)}

    def _search(self, batch):
        """What the signature `search` gives, all sentences searched in the same way."""
        signatures, size = self._model.signatures, [batch.shape[0]]
        longest = signatures["tokens"].structured_outputs["tokens"].shape[-1]
        try:
            outputs = signatures["search"](
                sentences=batch,
                beam_size=tf.fill(size, self.search.size),
                length_penalty=tf.fill(size, float(self.search.length_penalty)),
                max_length=tf.fill(size, min(self.search.max_length or longest, longest)),
            )
        except tf.errors.InvalidArgumentError as error:  # what is out of the range of this export
            rule = re.search(r"`\w+` must [^.]*", error.message)
            raise ValueError(f"{self.path}: {rule[0] if rule else reason(error)}.") from error
        return self._read(outputs)

    def _read(self, outputs):
        """The outputs of a signature with the texts under the name that results have for them."""
        return {"text" if name == self._kind.output else name: outputs[name] for name in outputs}

    def n_best_batch(self, sentences, n):
        """Returns a list of at most `n` `Translation`s for each of a list of strings.

        Raises:
            ValueError: If the export gives fewer than `n`.
        """
        check_n_best(n, self.n_best)
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        if self.search is not None:
            return to_n_best(self._search(batch), n, self._kind.result)
        outputs = self._read(self._model.signatures["n_best"](sentences=batch))
        return to_n_best(outputs, n, self._kind.result)


class SavedModelSinglePass:
    """A SavedModel of a model that answers in one pass.

    Args:
        path: The folder of a version, or the folder of all versions: then the newest is taken.

    Raises:
        ValueError: If it is no SavedModel, one of something else, or its facts are missing.

    Attributes:
        codec: Its `Codec`, or the class, where that is all that its answers need.
    """

    def __init__(self, path):
        self.path = newest_version(path)
        self._model, self._answer, kind = _open(self.path, SinglePass)
        self.codec = read_codec(self.path, kind.codec_class)

    def answer_batch(self, examples):
        """Returns a `Result` for each of a list of examples, as one batch.

        Raises:
            ValueError: If the model refuses one of them, an image of another size, say.
        """
        return self.codec.results(self.run(**self.codec.request(self.codec.check(examples))))

    def run(self, **request):
        """Returns the answers to a request, a dictionary of arrays."""
        request = {name: tf.convert_to_tensor(value) for name, value in request.items()}
        try:
            answers = self._answer(**request)
        except tf.errors.InvalidArgumentError as error:
            rule = re.search(r"assertion failed: \[([^\]]+)\]", error.message)
            raise ValueError(f"{self.path}: {rule[1] if rule else reason(error)}") from error
        return {name: value.numpy() for name, value in answers.items()}


def newest_version(path):
    """Returns the folder of a SavedModel: the path, or the newest version in it.

    Raises:
        ValueError: If there is none.
    """
    path = pathlib.Path(path)
    if (path / SAVED_MODEL).exists():
        return path
    known = versions(path)
    if not known:
        raise ValueError(f"{path} is not a SavedModel: it holds no {SAVED_MODEL}.")
    return path / str(known[-1])


def pipeline_class_of(path):
    """Returns the class of what a SavedModel was exported from, by the name of its answers.

    Args:
        path: The folder of a version, or of all versions.

    Returns:
        The class; `None` if its answers are not known, or it is damaged.
    """
    try:
        content = (newest_version(path) / SAVED_MODEL).read_bytes()
        graph = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0]
    except (OSError, DecodeError, IndexError):
        return None
    signature = graph.signature_def["serving_default"]
    return _kind_of(signature.inputs, signature.outputs)


def _kind_of(inputs, outputs):
    kinds = (task.pipeline_class() for task in TASKS.values())
    return next(
        (kind for kind in kinds if set(kind.request) == set(inputs) and kind.output in outputs),
        None,
    )


def _open(path, wanted):
    """A loaded SavedModel, its first signature, and the class of what it was exported from."""
    model = _load(path)
    signature = model.signatures.get("serving_default")
    names = {name for task in TASKS.values() for name in task.pipeline_class().request}
    inputs = None if signature is None else set(signature.structured_input_signature[1])
    if not inputs or not inputs <= names:
        raise ValueError(
            f"{path} has no signature `serving_default` that takes {_listed(sorted(names))}."
        )
    kind = _kind_of(inputs, signature.structured_outputs)
    if kind is None or not issubclass(kind, wanted):
        what = "an unknown task" if kind is None else kind.task
        raise ValueError(f"{path} holds a model for {what}.")
    return model, signature, kind


def _listed(names):
    return " or ".join(f"`{name}`" for name in names)


def _load(path):
    try:
        return tf.saved_model.load(str(path))
    except Exception as error:  # of a file that is cut short an IndexError, for example
        raise ValueError(
            f"{path} cannot be read as a SavedModel: {_damaged_file(path)} is damaged or missing "
            f"({reason(error)}). Copy all of its files again, or export it again."
        ) from error


def _damaged_file(path):
    """The file for which a SavedModel cannot be read."""
    prefix = path / "variables" / "variables"
    shards = sorted(prefix.parent.glob("variables.data-*"))
    if not _is_saved_model(path / SAVED_MODEL):
        return path / SAVED_MODEL
    try:
        reader = tf.train.load_checkpoint(str(prefix)) if shards else None
    except Exception:
        return prefix.with_suffix(".index")
    try:
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception:
        return shards[0] if shards else prefix.with_suffix(".data-00000-of-00001")
    return path / SAVED_MODEL


def _is_saved_model(path):
    try:
        return bool(saved_model_pb2.SavedModel.FromString(path.read_bytes()).meta_graphs)
    except (OSError, DecodeError):
        return False
