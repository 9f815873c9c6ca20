"""Parts that all loaded exports share: generation of text, checks, error messages, a pool."""

import contextlib
import copy
import queue
import re
import typing
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import numpy as np

from keras_transformer.checks import is_integer
from keras_transformer.decoding.hypotheses import NONE
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.options import OptionError
from keras_transformer.tasks.answering import TextAnswering
from keras_transformer.tasks.results import (
    COMPLETE,
    TOKEN_SCORES,
    TOKENS,
    Alignment,
    pairs_of,
    to_best,
    to_n_best,
)
from keras_transformer.tasks.strings import (
    check_sentences,
    encode_plain,
    is_valid,
    map_sorted,
    read_strings,
    traced_once,
    utf8,
    write_strings,
)

Kind = TypeVar("Kind", bound="OpenGenerator")

# Beginnings of lines that TensorFlow writes before the message of an error in a graph.
PLACES = ("Graph execution error:", "Detected at node", "<stack traces unavailable>", "  File ")

# Shapes and dtypes of the inputs of `write_strings` after the tokenizer.
OUTPUTS = (([None, None, None], "int32"), ([None, None], "float32"), *(([None], "bool"),) * 2)


class Decoded(typing.NamedTuple):
    """Outputs of a loaded export for B sources, M of each, the best first."""

    tokens: np.ndarray  # [B, M, max_length], int32
    scores: np.ndarray  # [B, M], float32
    complete: np.ndarray  # [B, M], boolean: whether an output ended before its maximum length
    token_scores: np.ndarray | None = None  # [B, M, max_length], float32, if exported
    alignment: list | None = None  # arrays [max_length, S] of the best outputs, if exported


class OpenGenerator(TextAnswering):
    """Base class of loaded exports of models that generate text.

    Attributes:
        more: Advice how to get more outputs, the end of an error message.
        opened_with: See `Format`.
        any_beam: Whether it searches with beams of any size.
        any_greedy: Whether it takes any `Greedy`, instead of that of the export.
        token_scores: Whether results have `token_scores`.
    """

    any_beam = any_greedy = token_scores = False
    more = "export again with a larger --n-best for more"
    opened_with: tuple[str, ...] = ()
    _graphs = None  # of `tokenizers`, traced on first use

    @property
    def max_outputs(self) -> int:  # noqa: D102
        return 1

    @property
    def accepts(self) -> tuple[str, ...]:  # noqa: D102
        return self.opened_with

    def answer_batch(self, inputs: list[str]) -> list:
        """Returns a `result` for each of a list of strings, decoded as one batch."""
        return to_best(self._generate(inputs), self.result, self._pairs)

    def n_best_batch(self, inputs: list[str], n: int, **options: Any) -> list[list]:
        """Returns up to `n` different `result`s for each string of a list, the best first.

        Args:
            inputs: List of strings.
            n: Maximum number of results of a string.
            **options: Further arguments of `find`.

        Raises:
            ValueError: If `n` is less than 1, or more than the export returns.
        """
        if not 1 <= n <= self.max_outputs:
            raise OptionError(
                "n",
                "must be between 1 and the number of outputs that the export returns, "
                f"{self.max_outputs}: {self.more}. Received: n={n}.",
            )
        return to_n_best(self._generate(inputs, n, **options), n, self.result, self._pairs)

    @property
    def _pairs(self):
        """The function `pairs` of `to_n_best`, or `None`."""
        return pairs_of(self.tokenizers.target) if self.token_scores else None

    def with_languages(self: Kind, source: str | None = None, target: str | None = None) -> Kind:  # noqa: D102
        if not self.has_languages:
            return super().with_languages(source, target)
        return changed(self, tokenizers=self.tokenizers.with_languages(source, target))

    def _generate(self, sentences, n=1, **options):
        """Returns the results of `generate_strings` and `complete`; `options` are for `find`."""
        sentences = check_sentences(sentences)
        graphs = self._graphs
        if graphs is None or graphs.tokenizers is not self.tokenizers:
            plain = None not in {side.plain for side in self.tokenizers}
            kind = PlainStrings if plain else StringGraphs
            self._graphs = graphs = kind(self.tokenizers, self.max_length, self.blank)
        if self.has_languages:
            self.tokenizers.languages.fronts(sentences)  # refuses unknown codes in texts
        read = graphs.read(sentences)
        found = self.find(read["source"], n=n, **options)
        empty = read["empty"]
        written = graphs.write(found.tokens, found.scores, empty, read.pop("valid"))
        complete = np.expand_dims(empty, 1) | found.complete
        outputs = {**written, **read, COMPLETE: complete, "found": found}
        if found.token_scores is None:
            return outputs
        return {**outputs, TOKENS: found.tokens, TOKEN_SCORES: found.token_scores}

    def align(
        self,
        sentences: list[str],
        batch_size: int = 64,
        progress: Callable[[int], object] | None = None,
    ) -> list[Alignment]:
        """Returns an `Alignment` for each of a list of strings, by greedy search.

        Args:
            sentences: List of strings.
            batch_size: Number of sentences translated at a time.
            progress: Function that is called after each batch with the number of finished
                sentences. `None`: no progress is shown.

        Raises:
            ValueError: If the export does not return attention weights.
        """
        self._check_alignment()
        return map_sorted(self._align, sentences, batch_size, progress=progress)

    def _check_alignment(self):
        """Raises a `ValueError` unless the export returns attention weights."""
        if not self.aligns:
            raise ValueError("This export does not return attention weights. Use the run.")

    def _align(self, sentences):
        """Returns the `Alignment`s of a batch."""
        read = self._generate(sentences)
        found, results = read["found"], to_best(read, self.result)
        columns = read["source"], found.tokens[:, 0], found.alignment, results
        rows = zip(*columns, strict=True)
        return [self._alignment(*row) for row in rows]

    def _alignment(self, source, target, weights, translation):
        target = target[: np.count_nonzero(target != self.tokenizers.target.pad_id)]
        target = target if translation.text or translation.score else target[:0]
        pieces = self.tokenizers.source.pieces(source), self.tokenizers.target.pieces(target)
        return Alignment(*pieces, weights[: len(target), : len(source)], translation)

    def find(self, sources: list[list[int]], n: int = 1) -> Decoded:
        """Runs the search on lists of token ids.

        Args:
            sources: List of lists of token ids, each ending in `eos_id`.
            n: Number of outputs that are needed for each source; M may be more.
        """
        raise NotImplementedError

    def decode(
        self, sources: list[list[int]], *args: Any, **options: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the token ids `[B, M, max_length]` and scores `[B, M]` that `find` returns."""
        found = self.find(sources, *args, **options)
        return found.tokens, found.scores


def changed(opened: Any, **attributes: Any) -> Any:
    """Returns a copy of an object with other attributes; both share all others."""
    other = copy.copy(opened)
    vars(other).update(attributes)
    return other


class StringGraphs:
    """Graphs of `read_strings` and `write_strings`, traced on first use.

    Eagerly, the operations of a tokenizer take several times as long as a small model.

    Args:
        tokenizers: The `Tokenizers`.
        max_length, blank: See `generate_strings`.
    """

    def __init__(self, tokenizers, max_length, blank):
        self.tokenizers, self._max_length, self._blank = tokenizers, max_length, blank
        self._reader, self._writer = map(traced_once, (self._trace_reader, self._trace_writer))

    def read(self, sentences) -> dict[str, Any]:
        """Returns the result of `read_strings` for a list of strings: `source` as lists."""
        read = self._reader()(tf.constant(sentences, tf.string, [len(sentences)]))
        source = read.pop("source").to_list()
        return {"source": source, **{name: value.numpy() for name, value in read.items()}}

    def write(self, tokens, scores, empty, valid) -> dict[str, np.ndarray]:
        """Returns the result of `write_strings` as arrays."""
        written = self._writer()(tf.constant(tokens), tf.constant(scores), empty, valid)
        return {name: value.numpy() for name, value in written.items()}

    def _trace_reader(self):
        def read(sentences):
            return read_strings(self.tokenizers.source, self._max_length, sentences, self._blank)

        return tf.function(
            read, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
        )

    def _trace_writer(self):
        def write(*outputs):
            return write_strings(self.tokenizers.target, *outputs)

        return tf.function(
            write, input_signature=[tf.TensorSpec(*spec) for spec in OUTPUTS], autograph=False
        )


class PlainStrings:
    """`StringGraphs` without TensorFlow, for tokenizers that have a plain form.

    Args:
        tokenizers, max_length, blank: See `StringGraphs`.
    """

    def __init__(self, tokenizers, max_length, blank):
        self.tokenizers, self._max_length, self._blank = tokenizers, max_length, blank

    def read(self, sentences) -> dict[str, Any]:
        """Returns the result of `read_strings`: see `StringGraphs.read`."""
        texts = [*map(utf8, sentences)]
        valid = np.array([*map(is_valid, texts)], bool)
        texts = [text if good else b"" for text, good in zip(texts, valid, strict=True)]
        source, truncated, empty = encode_plain(self.tokenizers.source, texts, self._max_length)
        empty = empty & self._blank | ~valid
        return {"source": source, "truncated": truncated, "empty": empty, "valid": valid}

    def write(self, tokens, scores, empty, valid) -> dict[str, np.ndarray]:
        """Returns the result of `write_strings` as arrays."""
        texts = np.full(scores.shape, b"", object)
        for place in np.ndindex(*scores.shape):
            if not empty[place[0]]:
                texts[place] = self.tokenizers.target.plain.decode(tokens[place]).encode()
        nothing = np.expand_dims(np.where(valid, 0, NONE), 1)
        return {"text": texts, "score": np.where(np.expand_dims(empty, 1), nothing, scores)}


class Pool:
    """Pool of objects, each of which is used by one thread at a time.

    Args:
        items: List of the objects. `close` calls the `close` of those that have one.
    """

    def __init__(self, items):
        self._items, self._is_closed = items, False
        self._free = queue.LifoQueue()  # last in, first out: few threads warm up few objects
        for item in items:
            self._free.put(item)

    @contextlib.contextmanager
    def borrow(self) -> Generator[Any]:
        """Provides an object to the block; waits while other threads use all of them.

        Raises:
            ValueError: If the pool is closed.
        """
        self._require_open()
        item = self._free.get()
        try:
            self._require_open()  # it may have been closed meanwhile
            yield item
        finally:
            self._free.put(item)

    def _require_open(self):
        if self._is_closed:
            raise ValueError("This export has been closed. Open it again.")

    def close(self) -> None:
        """Closes the objects; nothing can be borrowed any more."""
        self._is_closed = True
        for item in self._items:
            getattr(item, "close", lambda: None)()


def padded(rows, padding, shape=None) -> np.ndarray:
    """Returns a list of arrays that may differ in shape as one array `[R, ...]`.

    Args:
        rows: List of arrays, or of lists of numbers.
        padding: Number that fills the end of every axis.
        shape: Shape of a row of the result. `None`: the smallest that holds all rows.
    """
    rows = [np.asarray(row) for row in rows]
    shape = np.max([row.shape for row in rows], axis=0) if shape is None else shape
    result = np.full((len(rows), *shape), padding, rows[0].dtype)
    for number, row in enumerate(rows):
        result[(number, *map(slice, row.shape))] = row
    return result


def check_threads(**numbers) -> None:
    """Raises a `ValueError` unless all numbers, by name, are integers of at least 1."""
    for name, number in numbers.items():
        if not is_integer(number) or number < 1:
            raise ValueError(
                f"`{name}` must be an integer of at least 1. Received: {name}={number!r}."
            )


def reason(error) -> str:
    """Returns the first line of an error that is not about its place in a graph."""
    message = getattr(error, "message", None) or str(error)
    lines = [line for line in message.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(PLACES)]
    return (reasons or lines or [""])[0].strip()


@contextlib.contextmanager
def refusals(path) -> Generator[None]:
    """Replaces the error of an assertion about inputs by a `ValueError` that names the export."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(f"{path}: {_rule(error)}") from error


def _rule(error):
    """Returns the text of an assertion about the inputs; for other errors see `reason`."""
    in_graph, eagerly = r"assertion failed: \[([^\]]+)\]", r"Summarized data: b'([^']+)'"
    match = re.search(f"{in_graph}|{eagerly}", error.message)
    return (match[1] or match[2]) if match else reason(error)
