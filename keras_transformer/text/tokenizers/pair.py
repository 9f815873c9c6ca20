"""The tokenizers of a model's source and target, which are often one."""

import dataclasses
import importlib
import json
import typing
from collections.abc import Callable
from typing import Any

from keras_transformer.text.tokenizers.tokenizer import Tokenizer

PACKAGE = "keras_transformer.text.tokenizers"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of tokenizer, whose module is imported when it is used.

    Args:
        module, name: The module in this package, and the class.
        endings: See `Tokenizer`.
    """

    module: str
    name: str
    endings: tuple[str, ...]

    def load(self) -> type[Tokenizer]:
        """Returns the class."""
        return getattr(importlib.import_module(f"{PACKAGE}.{self.module}"), self.name)

    def from_files(self, files: dict[str, bytes]) -> Tokenizer:
        """Returns the tokenizer from the contents of its files: see `Tokenizer.from_files`."""
        return self.load().from_files(files)


KINDS = (
    Kind("sentencepiece", "SentencePieceTokenizer", (".model", ".ids.json")),
    Kind("wordpiece", "WordPieceTokenizer", (".wordpiece.json",)),
    Kind("byte_bpe", "ByteBPETokenizer", (".bpe.json",)),
)
# Names of the files of tokenizers, without the endings, which depend on the kind.
SHARED = "tokenizer"
SEPARATE = ("source", "target")
FILES = {name + end for name in (SHARED, *SEPARATE) for kind in KINDS for end in kind.endings}
CODE_POINTS = ".unicode.json"  # ending of the tables for programs in other languages
SPECIAL = ("pad_id", "bos_id", "eos_id")


class Tokenizers(typing.NamedTuple):
    """Tokenizers of source and target, the same object if a model has one vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def of(cls, tokenizer) -> "Tokenizers":
        """Returns the tokenizers given by an argument.

        Args:
            tokenizer: A `Tokenizer` for both sides, or a pair of them, source and target.

        Raises:
            TypeError: If `tokenizer` is something else.
            ValueError: If `pad_id`, `bos_id` or `eos_id` of a pair differ.
        """
        both = (tokenizer, tokenizer) if isinstance(tokenizer, Tokenizer) else tokenizer
        pair = isinstance(both, (tuple, list)) and len(both) == 2
        if not pair or not all(isinstance(one, Tokenizer) for one in both):
            raise TypeError(
                "`tokenizer` must be a Tokenizer, or a pair of them for source and target. "
                f"Received: tokenizer of type {type(tokenizer).__name__}."
            )
        source, target = both
        for name in SPECIAL:
            if getattr(source, name) != getattr(target, name):
                raise ValueError(
                    f"`tokenizer` must be a pair with the same `{name}`. "
                    f"Received: {getattr(source, name)} and {getattr(target, name)}."
                )
        return cls(source, target)

    @classmethod
    def from_files(cls, read: Callable[[str], bytes | None]) -> "Tokenizers":
        """Returns the tokenizers from the contents of `files`.

        Args:
            read: Function from the name of a file to its bytes, or to `None` if it does not exist.

        Raises:
            ValueError: If a file is missing or is not a vocabulary; the message names the file.
        """
        for names in ((SHARED,), SEPARATE):
            kinds = [_kind_of(read, name) for name in names]
            if None not in kinds:
                sides = [_read(read, *pair) for pair in zip(names, kinds, strict=True)]
                return cls.of(sides[0] if len(sides) == 1 else sides)
        files = [f"{name}{KINDS[0].endings[0]}" for name in (SHARED, *SEPARATE)]
        raise ValueError("there is neither {} nor {} and {}.".format(*files))

    @property
    def shared(self) -> bool:
        """True if source and target have the same tokenizer."""
        return self.source is self.target or self.source.identity() == self.target.identity()

    @property
    def languages(self) -> Any:
        """The `Languages` of sources, or `None`."""
        return self.source.languages

    def with_languages(self, source: str | None = None, target: str | None = None) -> "Tokenizers":
        """Returns tokenizers with other default languages; `None` keeps one.

        Raises:
            ValueError: If a code is unknown, or the model has no languages to choose from.
        """
        if source is None and target is None:
            return self
        sides = [self.source.with_languages(source, target), self.target]
        if self.target.languages is not None and target is not None:
            sides[1] = self.target.with_languages(target=target)
        return Tokenizers(*sides)

    def with_any_languages(self) -> "Tokenizers":
        """Returns tokenizers that encode texts even if the model has no default languages.

        The first language takes the place of a default that is missing.
        """
        languages = self.languages
        if languages is None:
            return self
        chosen = languages.with_any()
        return self.with_languages(**{side: getattr(chosen, side) for side in languages.sides})

    def files(self) -> dict[str, bytes]:
        """Returns the files to store the tokenizers in, a dictionary from names to bytes."""
        return {
            name + ending: content
            for name, side in self._sides().items()
            for ending, content in side.files().items()
        }

    def _sides(self):
        """Returns the tokenizers by the names of their files, without the endings."""
        return {SHARED: self.source} if self.shared else dict(zip(SEPARATE, self, strict=True))

    def code_points(self) -> dict[str, bytes]:
        """Returns the tables for programs in other languages, a dictionary from names to bytes.

        Their names are those of `files` with `CODE_POINTS`: see `Tokenizer.code_points`.
        """
        tables = {name + CODE_POINTS: side.code_points() for name, side in self._sides().items()}
        return {
            name: json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
            for name, table in tables.items()
            if table
        }

    def check_sizes(self, config) -> None:
        """Checks that the vocabularies have the sizes of a model.

        Args:
            config: The `ModelConfig` of the model.

        Raises:
            ValueError: If a size differs.
        """
        ours = self.source.vocab_size, self.target.vocab_size
        theirs = config.tokens.vocab_size, config.output_size
        if ours != theirs:
            raise ValueError(
                "`tokenizer` must have as many entries as the model's vocabulary. "
                f"Received: {_sizes(ours)} entries, vocab_size={_sizes(theirs)}."
            )


def vocabulary_files(is_there) -> tuple[str, ...]:
    """Returns the names of the files that a vocabulary must have, one or two.

    Args:
        is_there: Function from the name of a file to true if it exists. If no file of a vocabulary
            exists, the names belong to the first kind of tokenizer.
    """

    def name_of(side):
        kind = _kind_of(lambda name: b"" if is_there(name) else None, side)
        return kind and side + kind.endings[0]

    names = [name_of(side) for side in SEPARATE]
    if name_of(SHARED) or not any(names):
        return (name_of(SHARED) or SHARED + KINDS[0].endings[0],)
    ending = next(name[len(side) :] for name, side in zip(names, SEPARATE, strict=True) if name)
    return tuple(name or side + ending for name, side in zip(names, SEPARATE, strict=True))


def _kind_of(read, name):
    """Returns the class of the tokenizer stored under a name, or `None` if there is none."""
    return next((kind for kind in KINDS if read(name + kind.endings[0]) is not None), None)


def _read(read, name, kind):
    files = {ending: read(name + ending) for ending in kind.endings}
    try:
        return kind.from_files({end: file for end, file in files.items() if file is not None})
    except ValueError as error:
        raise ValueError(f"{name}{kind.endings[0]}: {error}") from error


def _sizes(pair):
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]} and {pair[1]}"
