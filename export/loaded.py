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
from keras_transformer.translation import encode, to_n_best, to_translations

from .staging import SAVED_MODEL, versions

FORMAT = 2
VOCABULARY, FACTS = "tokenizer.model", "facts.json"
SIGNATURES, STRINGS = "signatures", "string_signatures"  # in the facts


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

    @property
    def n_best(self):
        """Translations that its signature `n_best` gives, 0 without one."""
        signature = self._model.signatures.get("n_best")
        return 0 if signature is None else signature.structured_outputs["translation"].shape[1]

    def n_best_batch(self, sentences, n):
        """Returns a list of at most `n` `Translation`s for each of a list of strings.

        Raises:
            ValueError: If the signature `n_best` gives fewer than `n`.
        """
        _check_n_best(n, self.n_best)
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        return to_n_best(self._model.signatures["n_best"](sentences=batch), n)


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function in a .tflite file, of fixed shape.

    Args:
        name: Its name in the file.
        batch_size: Sentences at a time.
        source_length: Longest source, in tokens, `eos_id` included.
        target_length: Longest output, in tokens, `eos_id` included.
        beam_size: Hypotheses of its beam. `None`: it searches greedily.
        n_best: How many of them it returns.
        alignment: A decoder layer and a head, or `None` for the mean of its heads: of these it says
            what each token of the output attended to. `None`: it does not say.
    """

    name: str
    batch_size: int
    source_length: int
    target_length: int
    beam_size: int | None = None
    n_best: int = 1
    alignment: tuple | None = None

    def __post_init__(self):
        if self.alignment is not None:  # JSON knows lists only
            object.__setattr__(self, "alignment", tuple(self.alignment))


class LiteRTFile:
    """A .tflite file written by `export_litert`, and an interpreter for it.

    Args:
        path: The file.
        num_threads: Threads that LiteRT may use. `None`: its default, one.
        beam_size: Hypotheses of the beam to search with, one that the file was exported with.
            `None`: greedy search.
        length_penalty: With a beam, see `beam_decode`.
        extra_length: With a beam, see `BeamTranslator`.

    Raises:
        ValueError: If ai-edge-litert is missing, the file is something else or has no such beam, or
            a number is out of range.
    """

    kind = SIGNATURES

    def __init__(self, path, num_threads=None, beam_size=None, length_penalty=0.6, extra_length=50):
        interpreter = self._interpreter_class()
        path = pathlib.Path(path)
        self.facts, model = _read_members(path)
        if self.facts["format"] != FORMAT:
            raise ValueError(
                f"{path} has format {self.facts['format']}; this package reads format {FORMAT}."
            )
        if self.kind not in self.facts:
            raise ValueError(
                f"{path} has no tokenizer in its graphs. Export it again with --tokenizer."
            )
        self.signatures = _with_beam(self.facts[self.kind], beam_size, path)
        if not length_penalty >= 0:
            raise ValueError(
                f"`length_penalty` must be at least 0. Received: length_penalty={length_penalty}."
            )
        try:
            self._interpreter = interpreter(model_path=str(path), num_threads=num_threads)
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{path} cannot be read by LiteRT: {reason(error)}") from error
        self.tokenizer = Tokenizer(model)
        self.max_length = self.facts["max_length"]
        self.length_penalty = length_penalty
        self.extra_length = self.max_length if extra_length is None else extra_length

    def _interpreter_class(self):
        return load_interpreter()


class LiteRTTranslator(LiteRTFile):
    """A .tflite file written by `export_litert`; nothing else is needed.

    Args:
        path, num_threads, beam_size, length_penalty, extra_length: See `LiteRTFile`.

    Raises:
        ValueError: As `LiteRTFile`.
    """

    def translate_batch(self, sentences, signature=None):
        """Returns a `Translation` for each of a list of strings.

        Args:
            sentences: List of strings.
            signature: The `Signature` to run. `None`: for each sentence the shortest that holds it.
        """
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        ids, truncated, empty = encode(self.tokenizer, batch, self.max_length)
        tokens, scores = self.decode(ids.to_list(), signature)  # [B, M, L], [B, M]
        return to_translations(
            {
                "translation": tf.where(empty, "", self.tokenizer.decode(tokens[:, 0])),
                "score": tf.where(empty, 0.0, scores[:, 0]),
                "truncated": truncated,
            }
        )

    def n_best_batch(self, sentences, n):
        """Returns a list of at most `n` `Translation`s for each of a list of strings.

        Raises:
            ValueError: If the file's searches return fewer than `n`.
        """
        _check_n_best(n, self.signatures[0].n_best)
        batch = tf.constant(sentences, tf.string, [len(sentences)])
        ids, truncated, empty = encode(self.tokenizer, batch, self.max_length)
        tokens, scores = self.decode(ids.to_list())  # [B, M, L], [B, M]
        texts = self.tokenizer.decode(tokens.reshape(-1, self.max_length))
        nothing = tf.expand_dims(empty, 1)
        outputs = {
            "translation": tf.where(nothing, "", tf.reshape(texts, scores.shape)),
            "score": tf.where(nothing, 0.0, scores),
            "truncated": truncated,
        }
        return to_n_best(outputs, n)

    def decode(self, sources, signature=None):
        """Runs the model on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            signature: The `Signature` to run. `None`: for each source the shortest that holds it.

        Returns:
            Token ids `[B, M, max_length]`, int32, the best of M first, each row ending in `eos_id`
            and then padding; and scores `[B, M]`, float32. M is 1 in greedy search.
        """
        shape = len(sources), self.signatures[0].n_best
        tokens = np.full((*shape, self.max_length), self.tokenizer.pad_id, np.int32)
        scores = np.zeros(shape, np.float32)
        for each, numbers in self._plan([len(source) for source in sources], signature):
            # What is missing to a full batch is filled with its first sentence.
            rows = numbers + numbers[:1] * (each.batch_size - len(numbers))
            outputs = self._run(each, [sources[number] for number in rows])
            found = outputs["tokens"].reshape(each.batch_size, each.n_best, each.target_length)
            tokens[numbers] = found[: len(numbers)]
            scores[numbers] = outputs["score"].reshape(found.shape[:2])[: len(numbers)]
        return tokens, scores

    def _run(self, signature, sources):
        """What a signature makes of a full batch."""
        lengths = np.array([len(source) for source in sources], np.int32)
        batch = np.full((len(sources), signature.source_length), self.tokenizer.pad_id, np.int32)
        for row, source, length in zip(batch, sources, lengths, strict=True):
            row[:length] = source
        controls = {}
        if signature.beam_size is not None:
            controls["max_length"] = lengths + np.int32(self.extra_length)
            controls["length_penalty"] = np.array([self.length_penalty], np.float32)
        return self._interpreter.get_signature_runner(signature.name)(source=batch, **controls)

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


def _with_beam(signatures, beam_size, path):
    """Those signatures of a file that search with a beam, or greedily."""
    signatures = [Signature(**fields) for fields in signatures]
    chosen = [each for each in signatures if each.beam_size == beam_size]
    if not chosen:
        sizes = sorted({each.beam_size for each in signatures} - {None})
        has = f"one of {', '.join(map(str, sizes))}" if sizes else "none"
        raise ValueError(
            f"{path} has no beam of {beam_size}, but {has}. Export it again with "
            f"--beam {beam_size}."
        )
    return chosen


def _check_n_best(n, most):
    if not 1 <= n <= most:
        raise ValueError(
            "`n` must be between 1 and the number of translations that the export gives, of which "
            f"there are {most}: `export` has --n-best for more. Received: n={n}."
        )


def load_interpreter(name="Interpreter"):
    """Returns a class of LiteRT's interpreters.

    Raises:
        ValueError: If ai-edge-litert is not installed; the message says how to.
    """
    try:
        from ai_edge_litert import interpreter
    except ImportError as error:
        raise ValueError(
            "LiteRT files need the package ai-edge-litert. Install it with: "
            'pip install "keras-transformer-kit[litert]"'
        ) from error
    return getattr(interpreter, name)


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
