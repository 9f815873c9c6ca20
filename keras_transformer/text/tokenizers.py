"""The tokenizers of a model: that of its inputs and that of its outputs, often the same."""

import typing

from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizer import Tokenizer

SHARED = "tokenizer.model"  # the name of its file
SEPARATE = ("source.model", "target.model")
TABLE = ".ids.json"  # in the place of `.model`: the table of ids, where there is one
FILES = {name.replace(".model", end) for name in (SHARED, *SEPARATE) for end in (".model", TABLE)}
SPECIAL = ("pad_id", "bos_id", "eos_id")


class Tokenizers(typing.NamedTuple):
    """Two fields, which are one object where a model has one vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def of(cls, tokenizer):
        """Returns the tokenizers that an argument names.

        Args:
            tokenizer: A `Tokenizer` for both, or a pair of them, source and target.

        Raises:
            TypeError: If it is something else.
            ValueError: If both number padding, the beginning or the end of a text differently.
        """
        both = (tokenizer, tokenizer) if isinstance(tokenizer, Tokenizer) else tokenizer
        pair = isinstance(both, (tuple, list)) and len(both) == 2
        if not pair or not all(isinstance(one, Tokenizer) for one in both):
            raise TypeError(
                "`tokenizer` must be a Tokenizer, or a pair of them, for the source and for the "
                f"target. Received: tokenizer of type {type(tokenizer).__name__}."
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
    def from_files(cls, read):
        """Returns the tokenizers that `files` described.

        Args:
            read: Function of the name of a file to its bytes, or `None` where there is none.

        Raises:
            ValueError: If one is missing or is not a vocabulary; the message begins with its name.
        """

        def tokenizer(name):
            table = read(name.replace(".model", TABLE))
            try:
                return Tokenizer(read(name), None if table is None else PieceTable.from_json(table))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error

        if read(SHARED) is not None:
            return cls.of(tokenizer(SHARED))
        if any(read(name) is None for name in SEPARATE):
            raise ValueError(f"there is neither {SHARED} nor {' and '.join(SEPARATE)}.")
        return cls.of([tokenizer(name) for name in SEPARATE])

    @property
    def shared(self):
        """Whether both are the same."""
        ours, theirs = ((side.model, side.table) for side in self)
        return ours == theirs

    def files(self):
        """Returns what keeps them, a dictionary from the name of a file to its bytes."""
        sides = {SHARED: self.source} if self.shared else dict(zip(SEPARATE, self, strict=True))
        files = {name: side.model for name, side in sides.items()}
        for name, side in sides.items():
            if side.table is not None:
                files[name.replace(".model", TABLE)] = side.table.to_json()
        return files

    def check_sizes(self, config):
        """Raises a `ValueError` unless they have the vocabularies of a model.

        Args:
            config: A `StackConfig`.
        """
        ours = self.source.vocab_size, self.target.vocab_size
        theirs = config.vocab_size, config.output_size
        if ours != theirs:
            raise ValueError(
                "`tokenizer` must have as many entries as the model's vocabulary. "
                f"Received: {_sizes(ours)} entries, vocab_size={_sizes(theirs)}."
            )


def _sizes(pair):
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]} and {pair[1]}"
