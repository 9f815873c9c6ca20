"""Options of a distillation."""

import dataclasses
import os
from collections.abc import Sequence

from keras_transformer.checks import check_count
from keras_transformer.decoding import Beam
from keras_transformer.decoding.search import check_search
from keras_transformer.shards import Shard


@dataclasses.dataclass(frozen=True)
class Distillation:
    """Options of a distillation.

    Args:
        search: The `Beam` search of the teachers.
        best_of: Number of outputs for each source, of which the student learns the one with the
            highest chrF against the reference. For a source without a reference it learns the most
            probable output. `None`: it learns the most probable output for every source.
        original: How often an epoch contains each of the original pairs, on average, in addition to
            the teachers' outputs, which it contains once. `None`: never.
        monolingual: Paths of files with more sources, one per line, which have no references.
        backward: Folders of finished runs that translate in the other direction. They translate the
            targets of the training data; the student learns these targets from the generated
            sources as well. Several are an ensemble. With `best_of`, it learns from the source with
            the highest chrF against the original source.
        monolingual_targets: Paths of files with more targets for the backward teachers, one per
            line, which have no sources.
        separate: Whether each teacher translates alone, which gives a pair for each of them. If
            not, the teachers of a direction are an ensemble.
        word_level: Number of tokens at each position whose probabilities the student also learns
            (word-level distillation), for example 8. The forward teachers predict them, as an
            ensemble, for all pairs that it is trained on. `None`: it learns from texts only.
        own_vocabulary: Whether the student learns a vocabulary of its own, as its settings
            describe it, instead of using the teachers'.
        batch_size: Number of sentences in a batch of the teachers; it does not affect the result.
        shard: The `Shard` of the sources to translate. The call ends after it; when the outputs of
            all shards exist, a call without a shard trains the student. `None`: all sources.

    Raises:
        TypeError: If `search` is not a `Beam`.
        ValueError: If a value is out of range.
    """

    search: Beam = Beam(8)
    best_of: int | None = None
    original: float | None = None
    monolingual: Sequence[str | os.PathLike] = ()
    backward: Sequence[str | os.PathLike] = ()
    monolingual_targets: Sequence[str | os.PathLike] = ()
    separate: bool = False
    word_level: int | None = None
    own_vocabulary: bool = False
    batch_size: int = 64
    shard: Shard | None = None

    def __post_init__(self) -> None:
        check_search(self.search, Beam)
        check_count("batch_size", self.batch_size)
        if self.best_of is not None and not 2 <= self.best_of <= self.search.size:
            raise ValueError(
                "`best_of` must be between 2 and the `size` of the beam. "
                f"Received: best_of={self.best_of}, size={self.search.size}."
            )
        if self.word_level is not None:
            check_count("word_level", self.word_level)
            if self.own_vocabulary:
                raise ValueError(
                    "`word_level` needs the vocabulary of the teachers, who predict its tokens: it "
                    "cannot be combined with `own_vocabulary`."
                )
        if self.original is not None and not 0 < self.original < float("inf"):
            raise ValueError(f"`original` must be positive. Received: original={self.original}.")

    @property
    def is_diverse(self) -> bool:
        """`True` if several teachers or directions give pairs, of which each is learned once."""
        return bool(self.backward) or self.separate
