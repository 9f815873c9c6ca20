"""The tokenizers of a model: that of its inputs and that of its outputs, often the same."""

import typing

from keras_transformer.text.tokenizer import Tokenizer

SHARED = "tokenizer.model"  # the name of its file
SEPARATE = ("source.model", "target.model")
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
            ValueError: If one is missing or is no vocabulary.
        """
        model = read(SHARED)
        if model is not None:
            return cls.of(Tokenizer(model))
        models = [read(name) for name in SEPARATE]
        if None in models:
            raise ValueError(f"there is neither {SHARED} nor {' and '.join(SEPARATE)}.")
        return cls.of([Tokenizer(model) for model in models])

    @property
    def shared(self):
        """Whether both are the same."""
        return self.source.model == self.target.model

    def files(self):
        """Returns what keeps them, a dictionary from the name of a file to its bytes."""
        if self.shared:
            return {SHARED: self.source.model}
        return dict(zip(SEPARATE, (self.source.model, self.target.model), strict=True))

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
