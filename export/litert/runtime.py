"""Loaded .tflite files, as `keras-transformer translate` and the checks use them."""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from keras_transformer.decoding import Beam, Greedy
from keras_transformer.decoding.search import check_search
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.beams import beam_in, search_in
from keras_transformer.export.litert.engines import COMPILED, INTERPRETED
from keras_transformer.export.litert.format import FORMAT
from keras_transformer.export.litert.packed import FURTHER, SIGNATURES, FixedSignature, unpack
from keras_transformer.export.litert.parallel import open_engines
from keras_transformer.export.litert.plan import plan
from keras_transformer.export.numbered import NumberedGenerator
from keras_transformer.export.open_file import OpenFile, beam_inputs
from keras_transformer.export.runtime import (
    Decoded,
    OpenGenerator,
    Pool,
    changed,
    check_threads,
    padded,
    reason,
)
from keras_transformer.export.source_ids import check_source_ids
from keras_transformer.export.worded import OpenWordIds
from keras_transformer.export.words import TERMS
from keras_transformer.tasks.results import COMPLETE, TOKEN_SCORES, Translation, to_best

Kind = TypeVar("Kind", bound="LiteRTGenerator")


class LiteRTFile(OpenFile, contextlib.AbstractContextManager):
    """A loaded .tflite file that `export_litert` has written.

    With several parallel calls it may start processes. They end with `close`, with a `with` block
    around the file, or with this object.

    Any number of threads may share it. An engine of LiteRT has one set of buffers: two threads that
    used it at the same time would crash the process or receive each other's tokens. Each call
    therefore has an engine to itself, and waits for one if all are in use.

    Args:
        path: The file.
        search: `Greedy`, or the `Beam` of the export, whose `length_penalty`, `extra_length` and
            `max_length` may be changed. `None`: the default search of the exported model if the
            file contains it, otherwise greedy search.
        num_threads: Number of threads that LiteRT may use in a call. `None`: its default, 1.
        num_parallel_calls: Number of engines, and therefore of calls from different threads that
            run at the same time; further calls wait. Several engines of a compiled model run in
            processes of their own, because it holds Python's lock during a call. On Linux, the
            engines of a large file share the repacked weights; otherwise each has its own, which
            need about as much memory as the file.
        engines: Function that opens the engines, with the arguments of `open_engines`.

    Raises:
        TypeError: If `search` is neither a `Greedy` nor a `Beam`.
        ValueError: If ai-edge-litert is missing, the file was not written by `export_litert` or has
            no such beam, or a number is out of range.

    Attributes:
        search: The search.
        further: List of its `FixedSignature`s for `Codec.further_signatures`.
    """

    kind = SIGNATURES
    custom = INTERPRETED  # how a file with custom operators is run

    def __init__(
        self,
        path: str | os.PathLike,
        search: Greedy | Beam | None = None,
        num_threads: int | None = None,
        num_parallel_calls: int = 1,
        *,
        engines: Callable[..., list] = open_engines,
    ):
        if search is not None:
            check_search(search, Greedy, Beam)
        num_threads = 1 if num_threads is None else num_threads
        check_threads(num_threads=num_threads, num_parallel_calls=num_parallel_calls)
        path = pathlib.Path(path)
        self.metadata, signatures, self.tokenizers = unpack(path)
        if self.kind not in signatures:
            raise ValueError(
                f"{path} has no signatures that take strings. Export it again with --tokenizer."
            )
        self.path, self._all_signatures = path, signatures[self.kind]
        self.further = signatures.get(FURTHER, [])
        self.search, self.signatures = self._chosen(search)
        try:
            # All are created now, because the file may be replaced later.
            how = self.custom if self.metadata.get("custom_operators") else COMPILED
            opened = engines(path, how, num_threads, num_parallel_calls)
        except ExportError:
            raise
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{path} cannot be read by LiteRT: {reason(error)}") from error
        self._engines = Pool(opened)
        for signature in (*self.signatures, *self.further):
            for name in signature.functions:
                if name not in opened[0].signatures:
                    raise ValueError(f"{path} is damaged: its model has no {name}.")
        self.take_task()

    @property
    def beam(self) -> Beam | None:
        """The `Beam` of the export, or `None`."""
        return beam_in(self.metadata)

    def _chosen(self, search):
        """Returns a search and its signatures; `None` is the default search of the file."""
        search = search_in(self.metadata, search, self.kind, self.path)
        size = getattr(search, "size", None)
        return search, _with_beam(self._all_signatures, size, self.path)

    def close(self) -> None:
        """Ends the processes of the engines, if there are any; further calls raise `ValueError`."""
        self._engines.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def run_signature(self, name: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Runs a signature on arrays of exactly its shapes.

        Args:
            name: Name of the signature in the file.
            **inputs: Arrays by the names of the inputs.

        Returns:
            Arrays by the names of the outputs.
        """
        with self._engines.borrow() as engine:
            return engine.run(name, **inputs)

    def _choices(self, signature):
        """Returns the list of signatures to choose from: the given one, or all."""
        if signature is None:
            return self.signatures
        if signature not in self.signatures:
            raise ValueError(
                "`signature` must be one of the file's `signatures`: "
                f"{', '.join(choice.name for choice in self.signatures)}. Received: {signature!r}."
            )
        return [signature]


class LiteRTGenerator(LiteRTFile, OpenGenerator):
    """Base class of loaded .tflite files that generate text."""

    opened_with = FORMAT.opened_with

    def with_search(self: Kind, search: Any) -> Kind:
        """Returns a file that differs in its search, with the same engines.

        Args:
            search: See `LiteRTFile`.

        Raises:
            TypeError, ValueError: See `LiteRTFile`.
        """
        check_search(search, Greedy, Beam)
        search, signatures = self._chosen(search)
        return changed(self, search=search, signatures=signatures)

    def beam_with(self, **settings: Any) -> Beam:
        """Returns the `Beam` of the export with some settings changed."""
        return dataclasses.replace(self.beam or Beam(), **settings)

    @property
    def max_outputs(self) -> int:
        """Number of hypotheses that the search returns."""
        return self.signatures[0].n_best


class LiteRTTranslator(OpenWordIds, NumberedGenerator, LiteRTGenerator):
    """A loaded .tflite file that `export_litert` has written, run by its signatures of token ids.

    Needs nothing but the file: the vocabulary is inside.

    Args:
        path, search, num_threads, num_parallel_calls, engines: See `LiteRTFile`.

    Raises:
        TypeError, ValueError: See `LiteRTFile`.
    """

    def answer_batch(
        self, inputs: list[str], signature: FixedSignature | None = None
    ) -> list[Translation]:
        """Returns a `Translation` for each of a list of strings.

        Args:
            inputs: List of strings.
            signature: The signature to run, one of `signatures`. `None`: for each sentence the
                shortest that fits it.
        """
        return to_best(self._generate(inputs, signature=signature), self.result, self._pairs)

    def with_search(self, search: Any) -> "LiteRTTranslator":  # noqa: D102
        other = super().with_search(search)
        other.check_words()
        return other

    def _generate(self, sentences, n=1, numbers=None, signature=None):
        words = self.word_inputs(sentences, numbers)
        return super()._generate(sentences, n, signature=signature, words=words)

    @property
    def aligns(self) -> bool:  # noqa: D102
        return all(signature.alignment is not None for signature in self.signatures)

    def _check_alignment(self):
        self.check_no_words("align")
        if not self.aligns or self.has_languages:
            raise ValueError(
                "Alignments need a file for one pair of languages that was exported with "
                "--alignment, and greedy search."
            )

    def find(
        self,
        sources: list[list[int]],
        signature: FixedSignature | None = None,
        n: int = 1,
        words: dict[str, np.ndarray] | None = None,
    ) -> Decoded:
        """Runs the search on token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            signature: The signature to run, one of `signatures`. `None`: for each source the
                shortest that fits it.
            n: Has no effect: LiteRT returns all M hypotheses.
            words: Arrays of the words of each source; see `WordInputs`. `None`: no words.

        Returns:
            A `Decoded` with tokens that end in `eos_id`, unless they reached the maximum length,
            and are then padded. M is 1 in greedy search.

        Raises:
            ValueError: If a source is longer than every signature, or its ids are invalid: see
                `source` in the metadata of the file.
        """
        signatures = self._choices(signature)
        words = self.without_words(len(sources)) if words is None else words
        check_source_ids(sources, self.tokenizers.source)
        check_lengths([len(source) for source in sources], signatures)
        shape, pad_id = (len(sources), signatures[0].n_best), self.tokenizers.target.pad_id
        tokens = np.full([*shape, self.max_length], pad_id, np.int32)
        scores, complete = np.zeros(shape, np.float32), np.zeros(shape, bool)
        gains = np.zeros(tokens.shape, np.float32) if self.scores_tokens else None
        attention = [None] * len(sources) if self.aligns else None
        for signature, chosen in plan([len(source) for source in sources], signatures):
            # An incomplete batch is filled with copies of its first sentence.
            rows = chosen + chosen[:1] * (signature.batch_size - len(chosen))
            given = {name: values[rows] for name, values in words.items()}
            outputs = self._run(signature, [sources[number] for number in rows], given)
            hypotheses = outputs["tokens"].reshape(
                signature.batch_size, signature.n_best, signature.target_length
            )
            tokens[chosen, :, : signature.target_length] = hypotheses[: len(chosen)]
            if gains is not None:
                values = outputs[TOKEN_SCORES].reshape(hypotheses.shape)[: len(chosen)]
                gains[chosen, :, : signature.target_length] = values
            for array, name in ((scores, "score"), (complete, COMPLETE)):
                array[chosen] = outputs[name].reshape(hypotheses.shape[:2])[: len(chosen)]
            if attention is not None:
                for number, rows in zip(chosen, outputs["alignment"], strict=False):
                    attention[number] = rows
        return Decoded(tokens, scores, complete, gains, attention)

    def _run(self, signature, sources, words):
        """Returns the outputs of a signature for a full batch, a dictionary."""
        pad_id = self.tokenizers.source.pad_id
        batch = padded(sources, pad_id, [signature.source_length]).astype(np.int32)
        controls = {}
        if signature.beam_size is not None:
            controls = beam_inputs(self.search, sources, self.has_source, self.max_length)
        else:
            words = {name: values for name, values in words.items() if name != TERMS}
        return signature.run(self.run_signature, source=batch, **words, **controls)


def check_lengths(lengths, signatures) -> None:
    """Raises a `ValueError` if a source is longer than the largest signature.

    It is not truncated, because it would lose its `eos_id`.
    """
    largest = max(signatures, key=lambda signature: signature.source_length)
    for number, length in enumerate(lengths):
        if length > largest.source_length:
            raise ValueError(
                f"`sources[{number}]` has {length} tokens including eos_id, but the largest "
                f"signature, {largest.name}, takes {largest.source_length}."
            )


def _with_beam(signatures, beam_size, path):
    """Returns the signatures of a file with a beam of `beam_size`, or with greedy search."""
    chosen = [signature for signature in signatures if signature.beam_size == beam_size]
    if not chosen:
        sizes = sorted({signature.beam_size for signature in signatures} - {None})
        raise ValueError(
            f"{path} has no beam of size {beam_size}, only of size {', '.join(map(str, sizes))}. "
            f"Export it again with --beam {beam_size}."
        )
    return chosen
