"""The tokenizers of a model: that of its inputs and that of its outputs, often the same."""

import typing

from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer
from keras_transformer.text.tokenizers.tokenizer import Tokenizer
from keras_transformer.text.tokenizers.wordpiece import WordPieceTokenizer

KINDS = (SentencePieceTokenizer, WordPieceTokenizer)  # the table to add another kind to
SHARED = "tokenizer"  # the names of their files, before the endings of the kind
SEPARATE = ("source", "target")
FILES = {name + end for name in (SHARED, *SEPARATE) for kind in KINDS for end in kind.endings}
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
        for names in ((SHARED,), SEPARATE):
            kinds = [_kind_of(read, name) for name in names]
            if None not in kinds:
                sides = [_read(read, *pair) for pair in zip(names, kinds, strict=True)]
                return cls.of(sides[0] if len(sides) == 1 else sides)
        files = [f"{name}{KINDS[0].endings[0]}" for name in (SHARED, *SEPARATE)]
        raise ValueError("there is neither {} nor {} and {}.".format(*files))

    @property
    def shared(self):
        """Whether both are the same."""
        return self.source is self.target or self.source.identity() == self.target.identity()

    def files(self):
        """Returns what keeps them, a dictionary from the name of a file to its bytes."""
        sides = {SHARED: self.source} if self.shared else dict(zip(SEPARATE, self, strict=True))
        return {
            name + ending: content
            for name, side in sides.items()
            for ending, content in side.files().items()
        }

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


def vocabulary_files(is_there):
    """Returns the names of the files that a vocabulary cannot be without, one or two.

    Where there is none, they are those of the first kind.

    Args:
        is_there: Function of the name of a file to whether there is such a file.
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
    """The class of the tokenizer whose files begin with a name, `None` if there is none."""
    return next((kind for kind in KINDS if read(name + kind.endings[0]) is not None), None)


def _read(read, name, kind):
    files = {ending: read(name + ending) for ending in kind.endings}
    try:
        return kind.from_files({end: file for end, file in files.items() if file is not None})
    except ValueError as error:
        raise ValueError(f"{name}{kind.endings[0]}: {error}") from error


def _sizes(pair):
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]} and {pair[1]}"
