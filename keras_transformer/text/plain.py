"""Tokenizers in plain Python: the ids of `Tokenizer.encode` without TensorFlow.

Opened exports use them, so that a small file needs a small program. Not every tokenizer has such a
form: see `Tokenizer.plain`.
"""

import abc
from collections.abc import Sequence
from typing import Any

from keras_transformer.text.sentencepiece_model import Processor, with_table

MOST_WORDS = 2**16  # words whose tokens are remembered


class PlainTokenizer(abc.ABC):
    """The plain form of a `Tokenizer`.

    Args:
        tokenizer: The `Tokenizer`.
    """

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer

    @abc.abstractmethod
    def rows(self, texts: Sequence[bytes]) -> list[list[int]]:
        """Returns the ids of texts in UTF-8, as `Tokenizer.encode` does."""

    @abc.abstractmethod
    def join(self, ids: list[int]) -> str:
        """Returns the text of token ids, none of which is special; see `Tokenizer.join`."""

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of token ids, as `Tokenizer.decode` does."""
        tokenizer, ids = self.tokenizer, [*map(int, ids)]
        if tokenizer.eos_id in ids:
            ids = ids[: ids.index(tokenizer.eos_id)]
        return self.join([n for n in ids if n not in (tokenizer.pad_id, tokenizer.bos_id)])


class PlainWordPiece(PlainTokenizer):
    """The plain form of a `WordPieceTokenizer`."""

    def __init__(self, tokenizer: Any):
        super().__init__(tokenizer)
        self._pieces = tokenizer.pieces(range(tokenizer.vocab_size))
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        self._longest = max(map(len, self._pieces))
        self._table = tokenizer.normalizer.translation()
        self._words: dict[bytes, list[int]] = {}

    def rows(self, texts: Sequence[bytes]) -> list[list[int]]:  # noqa: D102
        return [[self.tokenizer.bos_id, *self._tokens(x), self.tokenizer.eos_id] for x in texts]

    def _tokens(self, text):
        normalized = text.decode("utf-8", "replace").translate(self._table)
        for word in normalized.encode("utf-8", "replace").split():  # at white space of ASCII
            ids = self._words.get(word)
            if ids is None:
                if len(self._words) >= MOST_WORDS:
                    self._words.clear()
                ids = self._words[word] = self._split(word.decode())
            yield from ids

    def _split(self, word):
        """Returns the ids of a word: always the longest token that the rest begins with."""
        ids, begin, unknown = [], 0, [self.tokenizer.unk_id]
        if len(word) > self.tokenizer.longest_word:
            return unknown
        while begin < len(word):
            mark = "##" if begin else ""
            end = min(len(word), begin + self._longest)
            while end > begin and mark + word[begin:end] not in self._ids:
                end -= 1
            if end == begin:
                return unknown
            ids.append(self._ids[mark + word[begin:end]])
            begin = end
        return ids

    def join(self, ids: list[int]) -> str:  # noqa: D102
        texts = (self._pieces[number] for number in ids)
        joined = "".join(x[2:] if x.startswith("##") else f" {x}" for x in texts)
        return joined.removeprefix(" ")


class PlainSentencePiece(PlainTokenizer):
    """The plain form of a `SentencePieceTokenizer` whose ids are those of SentencePiece."""

    def __init__(self, tokenizer: Any):
        super().__init__(tokenizer)
        self._processor = Processor(model_proto=with_table(tokenizer.model))

    def rows(self, texts: Sequence[bytes]) -> list[list[int]]:  # noqa: D102
        return self._processor.encode([*texts], add_eos=True, num_threads=1)

    def join(self, ids: list[int]) -> str:  # noqa: D102
        return self._processor.decode(ids)
