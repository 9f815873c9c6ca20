"""`ContinuedRows`: texts of a model in memory that are generated in batches."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.next_token import GivenLogits, chosen
from keras_transformer.tasks.streams.turns import END, Turns

ROOM = 48  # positions by which the cache grows, and to which a step writes
CHUNK = 128  # tokens of prompts that are read in a turn
SPREAD = 256  # positions by which a text may be longer than twice the shortest one of its batch


@dataclasses.dataclass(eq=False)
class TextRow:
    """A text while it is generated.

    Args:
        text: The `Continued`, which keeps the heads while the row is in no batch.
        inputs: Token ids that the model reads: the one that begins a text, prompt and tokens.
        limit: Maximum length of the text.
        choose: Function from logits `[1, 1, V]`, tokens `[1, L]` and their number to a token.
        tokens: The tokens after the one that begins the text, padded, int32 `[1, L]`.

    Attributes:
        unread: Whether a token before the last one is still to be read.
        turn: Number of the last chunk that was read of it, of those of all rows.
        over: Whether the text has ended.
    """

    text: Any
    inputs: list[int]
    limit: int
    choose: Callable
    tokens: np.ndarray
    unread: bool = True
    turn: int = -1
    over: bool = False

    def add(self, logits: Any, end: int) -> int:
        """Returns the next token of the text, and adds it.

        Args:
            logits: `[1, 1, V]`.
            end: Id of the end token.
        """
        count = len(self.inputs) - 1
        token = int(self.choose(logits, self.tokens, count))
        self.tokens[0, count] = token
        self.inputs.append(token)
        self.over = token == end or count + 1 >= self.limit
        return token


class ContinuedRows(Turns):
    """Texts of a `LanguageModel`, each step of which computes the next token of all.

    Texts join and leave between two steps. Their keys and values are padded to the longest text of
    a batch; a text that is more than twice as long as others, and `SPREAD`, is in another batch.
    A turn reads the next `CHUNK` tokens of one prompt, or of several that are shorter. If the step
    of a batch fails, its texts take it alone.

    Args:
        model: A `LanguageModel` whose blocks all have self-attention, with positions `by_row`.
        max_length: Maximum length of a text in tokens.
    """

    def __init__(self, model: Any, max_length: int):
        self._given: Any = GivenLogits(model)
        self._length, self._turns = max_length, itertools.count()
        self._graphs = RowGraphs(model)
        self._chooser = functools.cache(self._traced)
        self._batches: list[RowBatch] = []

    def begin(self, text: Any, prompt: Sequence[int], search: Any, number: int = 0) -> TextRow:  # noqa: D102
        text.check(prompt, search)
        vocabulary, limit = self._given.vocabulary, text.limit(prompt, search)
        tokens = np.full([1, self._length], vocabulary.pad_id, np.int32)
        tokens[0, : len(prompt)] = prompt
        values = [tf.convert_to_tensor(value) for value in search.values([number])]
        choose, limits = self._chooser(search.kind), tf.constant([limit])

        def chosen(logits, tokens, count):
            return choose(logits, tf.constant(tokens), tf.constant(count), limits, *values)[0]

        return TextRow(text, [vocabulary.bos_id, *prompt], limit, chosen, tokens)

    def advance(self, rows: Sequence[TextRow]) -> list[Any]:  # noqa: D102
        turns: dict[TextRow, Any] = {row: END if row.over else None for row in rows}
        batched = {row for batch in self._batches for row in batch.rows}
        for row in {*rows} - batched:  # its heads may have been lost, for lack of memory
            row.unread = row.unread or row.text.kept < len(row.inputs) - 1
        turns.update(self._read([row for row in rows if row.unread and not row.over]))
        self._regroup([row for row in rows if not row.unread and not row.over])
        for batch in [*self._batches]:
            turns.update(self._stepped(batch))
        return [turns[row] for row in rows]

    def end(self, row: TextRow) -> None:  # noqa: D102
        for batch in [*self._batches]:
            if row in batch.rows:
                batch.give_back(row)
                if not batch.rows:
                    self._batches.remove(batch)

    def _read(self, rows):
        """Reads the prompts of some rows, and returns the exceptions of those that fail."""
        count, failed = 0, {}
        for row in sorted(rows, key=lambda row: row.turn):
            if count >= CHUNK:
                break
            try:
                count += row.text.read(row.inputs, CHUNK)
                row.unread = row.text.kept < len(row.inputs) - 1
                row.turn = next(self._turns)
            except Exception as error:
                failed[row], row.over = error, True
        return failed

    def _regroup(self, rows):
        """Makes batches of rows, unless they are in batches already and these have room."""
        batched = [row for batch in self._batches for row in batch.rows]
        if {*batched} == {*rows} and not any(batch.is_done for batch in self._batches):
            return
        for batch in self._batches:
            for row in [*batch.rows]:
                batch.give_back(row)
        self._batches = []
        for group in of_like_lengths(rows):
            self._batches.append(RowBatch(group, self._graphs))

    def _stepped(self, batch):
        """Returns what a step of a batch gives each of its rows."""
        try:
            logits = batch.step()
        except Exception as error:
            if len(batch.rows) == 1:
                batch.rows[0].over = True
                return {batch.rows[0]: error}
            return self._stepped_alone(batch)
        end, turns = self._given.vocabulary.eos_id, {}
        for number, row in enumerate(batch.rows):
            try:
                turns[row] = row.add(logits[number : number + 1], end)
            except Exception as error:
                turns[row], row.over = error, True
        return turns

    def _stepped_alone(self, batch):
        rows, turns = [*batch.rows], {}
        self._batches.remove(batch)
        for row in rows:
            batch.give_back(row)
        for row in rows:
            self._batches.append(RowBatch([row], self._graphs))
            turns.update(self._stepped(self._batches[-1]))
        return turns

    def _traced(self, kind):
        """Returns the graph that chooses a token, for all searches of a kind."""
        vocabulary = self._given.vocabulary

        def choose(logits, tokens, count, limit, *values):
            search = kind.with_values(values)
            return chosen(self._given, search, tokens, count, logits, limit)[0]

        signature = [
            tf.TensorSpec([1, 1, vocabulary.size], self._graphs.logits_dtype),
            tf.TensorSpec([1, self._length], tf.int32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([1], tf.int32),
            *kind.inputs,
        ]
        return tf.function(choose, input_signature=signature, autograph=False)


class RowGraphs:
    """Graphs of a model for batches of any number of rows.

    Args:
        model: The `LanguageModel`.

    Attributes:
        step: Function from tokens `[B]`, a cache, the number of positions of each row in its first
            part, `[B]`, and the number in its second part, to logits `[B, 1, V]` and the cache.
        row: Function from a cache, these numbers, and the number of a row, to the heads of the row.
    """

    def __init__(self, model: Any):
        self._model = model
        heads = model.decoder.empty_cache(1, 0)
        recent = _any_batch(model.decoder.empty_cache(1, ROOM))
        past = grown(_any_batch(heads))
        cache = tuple((*new, *old) for new, old in zip(recent, past, strict=True))
        one, each = tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)
        make = functools.partial(tf.function, autograph=False)
        self.step = make(self._step, input_signature=[each, cache, each, one])
        self.row = make(_heads_of, input_signature=[cache, one, one, one])
        self.logits_dtype = tf.as_dtype(model.compute_dtype)

    def _step(self, tokens, cache, counts, used):
        logits, cache, _ = self._model.step_of_rows(tokens, cache, counts, used)
        return logits, cache

    def packed(self, heads: list[Any]) -> tuple:
        """Returns the cache of a batch from the heads of each row, which are dropped on the way.

        Args:
            heads: For each row the heads of each block, two tensors `[1, G, P, K]` each; emptied.
        """
        longest = max(of_row[0][0].shape[2] for of_row in heads)
        room = self._model.decoder.empty_cache(len(heads), ROOM)
        blocks = [[*of_row] for of_row in heads]  # of each row
        heads.clear()
        cache = []
        for number, new in enumerate(room):
            parts = [of_row[number] for of_row in blocks]
            past = tuple(_stacked(of_rows, longest) for of_rows in zip(*parts, strict=True))
            cache.append((*new, *past))
            for of_row in blocks:
                of_row[number] = None
        return tuple(cache)


class RowBatch:
    """Rows with a common cache, in which each step fills one position of each row.

    Args:
        rows: The rows, which have been read. Their texts lend their heads to the batch.
        graphs: The `RowGraphs`.

    Raises:
        RuntimeError: If a row is still to be read.
    """

    def __init__(self, rows: list[TextRow], graphs: RowGraphs):
        self.rows, self._graphs, self._used = [*rows], graphs, 0
        self._counts = [len(row.inputs) - 1 for row in rows]
        self._numbers = {row: number for number, row in enumerate(rows)}
        for row, count in zip(rows, self._counts, strict=True):
            if row.text.kept != count:
                raise RuntimeError(f"{row.text.kept} of {count} tokens of a text have been read.")
        self._cache: Any = graphs.packed([row.text.lend() for row in rows])

    @property
    def is_done(self) -> bool:
        """`True` if no step may follow: there is no position, or a row has left."""
        return self._used == ROOM or len(self.rows) < len(self._counts)

    def step(self) -> Any:
        """Returns logits `[B, 1, V]` of the next token of each row."""
        tokens = tf.constant([row.inputs[-1] for row in self.rows], tf.int32)
        counts, used = tf.constant(self._counts), tf.constant(self._used)
        logits, self._cache = self._graphs.step(tokens, self._cache, counts, used)
        self._used += 1
        return logits

    def give_back(self, row: TextRow) -> None:
        """Removes a row, whose text keeps its heads. No step may follow.

        The cache is dropped with the last row. If the heads cannot be computed, the text keeps
        none, and must be read again.
        """
        self.rows.remove(row)
        number = self._numbers[row]
        count = self._counts[number]
        numbers = (tf.constant(value) for value in (count, self._used, number))
        try:
            heads = self._graphs.row(self._cache, *numbers)
        finally:
            if not self.rows:
                self._cache = None
        row.text.keep(row.inputs[: count + self._used], heads)


def of_like_lengths(rows: Sequence[TextRow]) -> list[list[TextRow]]:
    """Returns rows in groups, whose longest one has at most twice the shortest one's tokens.

    `SPREAD` more are allowed.
    """
    groups: list[list[TextRow]] = []
    for row in sorted(rows, key=lambda row: len(row.inputs)):
        if not groups or len(row.inputs) > 2 * len(groups[-1][0].inputs) + SPREAD:
            groups.append([])
        groups[-1].append(row)
    return groups


def grown(heads: Any) -> Any:
    """Returns the `tf.TensorSpec`s of heads of any number of positions."""
    return tf.nest.map_structure(
        lambda part: tf.TensorSpec([*part.shape[:2], None, part.shape[3]], part.dtype), heads
    )


def _any_batch(heads):
    return tf.nest.map_structure(
        lambda part: tf.TensorSpec([None, *part.shape[1:]], part.dtype), heads
    )


def _heads_of(cache, count, used, row):
    """Returns the heads of a row, two tensors `[1, G, P, K]` for each block."""
    one = slice(row, row + 1)
    return tuple(
        tuple(
            tf.concat([old[one, :, :count], new[one, :, :used]], axis=2)
            for new, old in zip(of_block[:2], of_block[2:], strict=True)
        )
        for of_block in cache
    )


def _stacked(parts, longest):
    """Returns heads `[1, G, P, K]` of rows as one tensor, padded to the longest."""
    if len(parts) == 1:
        return parts[0]
    return tf.concat(
        [tf.pad(part, [[0, 0], [0, 0], [0, longest - part.shape[2]], [0, 0]]) for part in parts], 0
    )
