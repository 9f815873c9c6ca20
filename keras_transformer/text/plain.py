"""Tokenizers in plain Python: the ids of `Tokenizer.encode` without TensorFlow.

Opened exports use them, so that a small file needs a small program. Not every tokenizer has such a
form: see `Tokenizer.plain`.
"""

import abc
from collections.abc import Sequence
from typing import Any

from keras_transformer.text.sentencepiece_model import UNUSED, Processor, read_model, with_table

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

    @staticmethod
    def of(tokenizer: Any) -> "PlainSentencePiece | None":
        """Returns the plain form of a tokenizer, `None` for steps before it, codes or languages."""
        table = tokenizer.table
        if table is None:
            return PlainSentencePiece(tokenizer)
        if table.steps or table.codes or table.languages is not None:
            return None
        return PlainTable(tokenizer)

    def rows(self, texts: Sequence[bytes]) -> list[list[int]]:  # noqa: D102
        return self._processor.encode([*texts], add_eos=True, num_threads=1)

    def join(self, ids: list[int]) -> str:  # noqa: D102
        return self._processor.decode(ids)


class PlainTable(PlainSentencePiece):
    """The plain form of a `SentencePieceTokenizer` with a table of ids."""

    def __init__(self, tokenizer: Any):
        super().__init__(tokenizer)
        unknown = tokenizer.unk_id
        self._ids = [unknown if number < 0 else number for number in tokenizer.table.ids]
        unused = unused_ids(tokenizer.model, tokenizer.table)
        # SentencePiece returns the pieces of bytes as bytes.
        self._unused = {piece.encode(): number for piece, number in unused.items()}

    def rows(self, texts: Sequence[bytes]) -> list[list[int]]:  # noqa: D102
        first = [self.tokenizer.bos_id] * self.tokenizer.starts_with_bos
        return [
            [*first, *self._row(text, row)]
            for text, row in zip(texts, super().rows(texts), strict=True)
        ]

    def _row(self, text, places):
        row, unknown = [self._ids[place] for place in places], self.tokenizer.unk_id
        if unknown not in row or not self._unused:
            return row
        pieces = self._processor.encode(text, out_type=str, add_eos=True)
        return [
            self._unused.get(piece, number) if number == unknown else number
            for piece, number in zip(pieces, row, strict=True)
        ]

    def join(self, ids: list[int]) -> str:  # noqa: D102
        places = (self.tokenizer.table.places[number] for number in ids)
        return super().join([place for place in places if place >= 0])


def unused_ids(model, table) -> dict[str, int]:
    """Returns the model's ids of pieces that SentencePiece has and cannot encode.

    It turns each run of characters that it does not know into one unknown piece. The vocabulary of
    a model may still have an id for that text, such as a letter of the other language.

    Args:
        model: The bytes of the SentencePiece model.
        table: The `PieceTable`.
    """
    pairs = zip(read_model(model).pieces, table.ids, strict=True)
    return {piece.piece: number for piece, number in pairs if piece.type == UNUSED and number >= 0}
