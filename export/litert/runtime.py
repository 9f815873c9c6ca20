"""Loaded .tflite files, as `keras-transformer translate` and the checks run them.

Only this module imports `ai_edge_litert`.
"""

import pathlib

import numpy as np

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.search import check_search
from keras_transformer.export.litert.beams import beam_in, search_in
from keras_transformer.export.litert.packed import SIGNATURES, unpack
from keras_transformer.export.litert.plan import plan
from keras_transformer.export.litert.source_ids import check_source_ids
from keras_transformer.export.runtime import OpenGenerator, Pool, check_threads, reason
from keras_transformer.installation import install_hint
from keras_transformer.tasks import TASKS
from keras_transformer.tasks.generator import Generator
from keras_transformer.tasks.results import to_best


class LiteRTFile:
    """A .tflite file written by `export_litert`, and interpreters for it.

    Any number of threads may share it. An interpreter of LiteRT has one set of buffers, so that two
    threads in it at once would end the process or exchange their tokens: here each call has an
    interpreter to itself, or waits for one.

    Args:
        path: The file.
        search: `Greedy`, or a `Beam` as the file was exported with: `length_penalty`,
            `extra_length` and `max_length` may be others. `None`: the search that the model had by
            default, if it is in the file, otherwise greedy search.
        num_threads: Threads that LiteRT may use in a call. `None`: its default, one.
        num_parallel_calls: Interpreters, and so the calls from different threads that run at the
            same time; others wait. Each interpreter has buffers and repacked weights of its own,
            about one and a half times the size of the file.

    Raises:
        TypeError: If `search` is something else.
        ValueError: If ai-edge-litert is missing, the file is something else or has no such beam, or
            a number is out of range.

    Attributes:
        search: The search.
    """

    kind = SIGNATURES
    answers = Generator  # the class of what it was exported from

    def __init__(self, path, search=None, num_threads=None, num_parallel_calls=1):
        interpreter = self._interpreter_class()
        if search is not None:
            check_search(search, Greedy, Beam)
        check_threads(
            num_threads=1 if num_threads is None else num_threads,
            num_parallel_calls=num_parallel_calls,
        )
        path = pathlib.Path(path)
        self.metadata, signatures, self.tokenizers = unpack(path)
        if self.kind not in signatures:
            raise ValueError(
                f"{path} has no tokenizer in its graphs. Export it again with --tokenizer."
            )
        self.search = search = search_in(self.metadata, search, self.kind, path)
        self.signatures = _with_beam(signatures[self.kind], getattr(search, "size", None), path)
        try:
            # All of them now: the file may be another one later.
            interpreters = [
                interpreter(model_path=str(path), num_threads=num_threads)
                for _ in range(num_parallel_calls)
            ]
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{path} cannot be read by LiteRT: {reason(error)}") from error
        self._interpreters = Pool(interpreters)
        inside = interpreters[0].get_signature_list()
        for signature in self.signatures:
            if signature.name not in inside:
                raise ValueError(f"{path} is damaged: its model has no {signature.name}.")
        self.max_length = self.metadata.get("max_length")
        self.pipeline = TASKS[self.metadata["task"]].pipeline_class()
        if not issubclass(self.pipeline, self.answers):
            raise ValueError(f"{path} holds a model for {self.metadata['task']}.")
        self.result = getattr(self.pipeline, "result", None)
        self.blank = getattr(self.pipeline, "blank", True)
        self.output = self.pipeline.output

    def _interpreter_class(self):
        return load_interpreter()

    def run_signature(self, name, **inputs):
        """Runs a signature as it is: arrays of its shapes in, a dictionary of arrays out.

        Args:
            name: Its name in the file.
            **inputs: Its inputs.
        """
        with self._interpreters.borrow() as interpreter:
            return interpreter.get_signature_runner(name)(**inputs)

    def _choices(self, signature):
        """The signatures to choose from: the one that is given, or all."""
        if signature is None:
            return self.signatures
        if signature not in self.signatures:
            raise ValueError(
                "`signature` must be one of the file's `signatures`: "
                f"{', '.join(choice.name for choice in self.signatures)}. Received: {signature!r}."
            )
        return [signature]


class LiteRTTranslator(LiteRTFile, OpenGenerator):
    """A .tflite file written by `export_litert`; nothing else is needed.

    Args:
        path, search, num_threads, num_parallel_calls: See `LiteRTFile`.

    Raises:
        TypeError: As `LiteRTFile`.
        ValueError: As `LiteRTFile`.
    """

    def translate_batch(self, sentences, signature=None):
        """Returns a `Translation` for each of a list of strings.

        Args:
            sentences: List of strings.
            signature: Which signature runs. `None`: for each sentence the shortest that holds it.
        """
        return to_best(self._generate(sentences, signature=signature), self.result)

    @property
    def n_best(self):
        """Hypotheses that its search returns."""
        return self.signatures[0].n_best

    def decode(self, sources, signature=None, n=1):
        """Runs the model on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            signature: Which signature runs. `None`: for each source the shortest that holds it.
            n: Has no effect: LiteRT returns all M hypotheses.

        Returns:
            Token ids `[B, M, max_length]`, int32, the best of M first, each row ending in `eos_id`
            and then padding; and scores `[B, M]`, float32. M is 1 in greedy search.

        Raises:
            ValueError: If a source is longer than every signature, or its ids are not those of a
                sentence: see `source` in the metadata of the file.
        """
        signatures = self._choices(signature)
        check_source_ids(sources, self.tokenizers.source)
        check_lengths([len(source) for source in sources], signatures)
        shape = len(sources), signatures[0].n_best
        tokens = np.full((*shape, self.max_length), self.tokenizers.target.pad_id, np.int32)
        scores = np.zeros(shape, np.float32)
        for signature, chosen in plan([len(source) for source in sources], signatures):
            # What is missing to a full batch is filled with its first sentence.
            rows = chosen + chosen[:1] * (signature.batch_size - len(chosen))
            outputs = self._run(signature, [sources[number] for number in rows])
            hypotheses = outputs["tokens"].reshape(
                signature.batch_size, signature.n_best, signature.target_length
            )
            tokens[chosen, :, : signature.target_length] = hypotheses[: len(chosen)]
            scores[chosen] = outputs["score"].reshape(hypotheses.shape[:2])[: len(chosen)]
        return tokens, scores

    def _run(self, signature, sources):
        """Returns the outputs of a signature for a full batch."""
        lengths = np.array([len(source) for source in sources], np.int32)
        pad_id = self.tokenizers.source.pad_id
        batch = np.full((len(sources), signature.source_length), pad_id, np.int32)
        for row, source, length in zip(batch, sources, lengths, strict=True):
            row[:length] = source
        controls = {}
        if signature.beam_size is not None:
            limits = self.search.limit(lengths, self.max_length)
            controls["max_length"] = np.asarray(limits, np.int32)
            controls["length_penalty"] = np.array([self.search.length_penalty], np.float32)
        return self.run_signature(signature.name, source=batch, **controls)


def pipeline_class_of(path):
    """Returns the class of the pipeline that a .tflite file of this package was exported from."""
    return TASKS[unpack(pathlib.Path(path))[0]["task"]].pipeline_class()


def exported_beam(path):
    """Returns the `Beam` in a .tflite file as it was exported, or `None`."""
    return beam_in(unpack(pathlib.Path(path))[0])


def check_lengths(lengths, signatures):
    """Raises a `ValueError` unless each source fits: one that is cut would lack its end."""
    largest = max(signatures, key=lambda signature: signature.source_length)
    for number, length in enumerate(lengths):
        if length > largest.source_length:
            raise ValueError(
                f"`sources[{number}]` has {length} tokens, eos_id included; the largest "
                f"signature, {largest.name}, takes {largest.source_length}."
            )


def _with_beam(signatures, beam_size, path):
    """Returns the signatures of a file with this beam size; `None`: with greedy search."""
    chosen = [signature for signature in signatures if signature.beam_size == beam_size]
    if not chosen:
        sizes = sorted({signature.beam_size for signature in signatures} - {None})
        raise ValueError(
            f"{path} has no beam of {beam_size}, but one of {', '.join(map(str, sizes))}. Export "
            f"it again with --beam {beam_size}."
        )
    return chosen


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
            + install_hint("litert")
        ) from error
    return getattr(interpreter, name)
