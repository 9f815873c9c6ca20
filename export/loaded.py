"""Exported models as translators: what `keras-transformer translate` and the checks run.

The one door to `ai_edge_litert`.
"""

import dataclasses
import json
import pathlib
import zipfile

import numpy as np
import tensorflow as tf

from keras_transformer.tokenizer import Tokenizer  # a SavedModel needs its operations, too
from keras_transformer.translation import encode, to_translations

from .staging import SAVED_MODEL, versions

FORMAT = 1
VOCABULARY, FACTS = "tokenizer.model", "facts.json"


class SavedModelTranslator:
    """A SavedModel written by `export_saved_model`.

    Args:
        path: The folder of a version, or the folder of all versions: then the newest is taken.

    Raises:
        ValueError: If it is no SavedModel, or one of something else.
    """

    def __init__(self, path):
        path = pathlib.Path(path)
        if not (path / SAVED_MODEL).exists():
            found = versions(path)
            if not found:
                raise ValueError(f"{path} is not a SavedModel: it holds no {SAVED_MODEL}.")
            path = path / str(found[-1])
        try:
            self._model = tf.saved_model.load(str(path))
        except (OSError, tf.errors.OpError) as error:
            raise ValueError(f"{path} cannot be read as a SavedModel: {reason(error)}") from error
        signature = self._model.signatures.get("serving_default")
        if signature is None or set(signature.structured_input_signature[1]) != {"sentences"}:
            raise ValueError(f"{path} has no signature `serving_default` that takes `sentences`.")
        self._translate = signature

    def translate_batch(self, sentences):
        """Returns a `Translation` for each of a list of strings, decoded as one batch."""
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        return to_translations(self._translate(sentences=batch))


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function in a .tflite file, of fixed shape.

    Args:
        name: Its name in the file.
        search: How it searches: `"greedy"`.
        batch_size: Sentences at a time.
        source_length: Longest source, in tokens, `eos_id` included.
        target_length: Longest output, in tokens, `eos_id` included.
    """

    name: str
    search: str
    batch_size: int
    source_length: int
    target_length: int


class LiteRTTranslator:
    """A .tflite file written by `export_litert`; nothing else is needed.

    Args:
        path: The file.
        num_threads: Threads that LiteRT may use. `None`: its default, one.

    Raises:
        ValueError: If ai-edge-litert is missing, or the file is something else.
    """

    def __init__(self, path, num_threads=None):
        interpreter = load_interpreter()
        path = pathlib.Path(path)
        facts, model = _read_members(path)
        if facts["format"] != FORMAT:
            raise ValueError(
                f"{path} has format {facts['format']}; this package reads format {FORMAT}."
            )
        try:
            self._interpreter = interpreter(model_path=str(path), num_threads=num_threads)
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{path} cannot be read by LiteRT: {reason(error)}") from error
        self.facts = facts
        self.tokenizer = Tokenizer(model)
        self.max_length = facts["max_length"]
        self.signatures = [Signature(**fields) for fields in facts["signatures"]]

    def translate_batch(self, sentences, signature=None):
        """Returns a `Translation` for each of a list of strings.

        Args:
            sentences: List of strings.
            signature: The `Signature` to run. `None`: for each sentence the shortest that holds it.
        """
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        ids, truncated, empty = encode(self.tokenizer, batch, self.max_length)
        tokens, scores = self.decode(ids.to_list(), signature)
        return to_translations(
            {
                "translation": tf.where(empty, "", self.tokenizer.decode(tokens)),
                "score": tf.where(empty, 0.0, scores),
                "truncated": truncated,
            }
        )

    def decode(self, sources, signature=None):
        """Runs the model on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            signature: The `Signature` to run. `None`: for each source the shortest that holds it.

        Returns:
            Token ids `[B, max_length]`, int32, each row ending in `eos_id` and then padding, and
            scores `[B]`, float32.
        """
        tokens = np.full((len(sources), self.max_length), self.tokenizer.pad_id, np.int32)
        scores = np.zeros(len(sources), np.float32)
        for each, numbers in self._plan([len(source) for source in sources], signature):
            # What is missing to a full batch is filled with its first sentence.
            rows = numbers + numbers[:1] * (each.batch_size - len(numbers))
            batch = np.full((each.batch_size, each.source_length), self.tokenizer.pad_id, np.int32)
            for row, number in zip(batch, rows, strict=True):
                row[: len(sources[number])] = sources[number]
            outputs = self._interpreter.get_signature_runner(each.name)(source=batch)
            tokens[numbers] = outputs["tokens"][: len(numbers)]
            scores[numbers] = outputs["score"][: len(numbers)]
        return tokens, scores

    def _plan(self, lengths, signature):
        """Which signature takes which sentences, by their numbers."""
        signatures = self.signatures if signature is None else [signature]
        left = list(range(len(lengths)))
        for source_length in sorted({each.source_length for each in signatures}):
            choices = sorted(
                (each for each in signatures if each.source_length == source_length),
                key=lambda each: each.batch_size,
            )
            numbers = [number for number in left if lengths[number] <= source_length]
            left = [number for number in left if lengths[number] > source_length]
            while numbers:
                fitting = [each for each in choices if each.batch_size >= len(numbers)]
                chosen = (fitting or choices[-1:])[0]
                yield chosen, numbers[: chosen.batch_size]
                numbers = numbers[chosen.batch_size :]


def load_interpreter():
    """Returns the class of LiteRT's interpreter.

    Raises:
        ValueError: If ai-edge-litert is not installed; the message says how to.
    """
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ValueError(
            "LiteRT files need the package ai-edge-litert. Install it with: "
            'pip install "keras-transformer-kit[litert]"'
        ) from error
    return Interpreter


def _read_members(path):
    """The facts and the vocabulary that are packed with a .tflite file."""
    if not path.exists():
        raise ValueError(f"{path} does not exist.")
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(FACTS)), archive.read(VOCABULARY)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(
            f"{path} was not written by `keras-transformer export litert`, or is damaged: "
            "it carries no vocabulary."
        ) from error


def reason(error):
    """Returns the first line of an error that says something."""
    message = getattr(error, "message", None) or str(error)
    return message.removeprefix("Graph execution error:").strip().partition("\n")[0]
