"""Source and target of a Marian model: how a text is split, and which ids its tokens have."""

import dataclasses
import pathlib
from typing import Any

from keras_transformer.pretrained.files.marian.vocabularies import (
    END,
    UNKNOWN,
    find_vocabularies,
    read_table,
)
from keras_transformer.pretrained.piece_vocabulary import KINDS, PieceVocabulary
from keras_transformer.pretrained.pieces import sentencepiece_tokenizer
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.sentencepiece_model import SpecialIds, read_model
from keras_transformer.text.tokenizers import SentencePieceTokenizer

SILENT_PIECE = "<s>"  # name of the entry that pads and starts


@dataclasses.dataclass(frozen=True)
class MarianSide:
    """Vocabulary of one side.

    Args:
        file: The SentencePiece file.
        model: Its bytes.
        unk_id, eos_id: Ids of the unknown token and of the one that ends a sentence.
        ids: Ids by token. `None`: they are those of SentencePiece.
        size: Number of tokens.
        notes: Warnings.
    """

    file: pathlib.Path
    model: bytes
    unk_id: int
    eos_id: int
    ids: dict[str, int] | None
    size: int
    notes: tuple[str, ...] = ()

    @property
    def entries(self) -> Any:
        """Ids by token, or the model that has them: equal if both sides share a vocabulary."""
        return self.model if self.ids is None else self.ids

    def tokenizer(self, config) -> SentencePieceTokenizer:
        """Returns the tokenizer.

        Args:
            config: The `TransformerConfig`, whose `pad_id` and `bos_id` are those of the entry that
                Marian does not have.

        Raises:
            ValueError: If the SentencePiece model does not fit the ids.
        """
        silent, size = config.tokens.pad_id, config.tokens.vocab_size
        if self.ids is not None:
            ids = {SILENT_PIECE: silent, **self.ids}
            vocabulary = PieceVocabulary(self.model, [], None, self.file, None)
            return sentencepiece_tokenizer(vocabulary, ids, config, size)
        special = {name: getattr(config.tokens, name) for name in ("pad_id", "bos_id", "eos_id")}
        names = {silent: SILENT_PIECE}
        table = PieceTable(range(self.size), size, unk_id=self.unk_id, names=names, **special)
        return SentencePieceTokenizer(self.model, table)


def read_sides(path, vocabularies, sizes) -> list[MarianSide]:
    """Returns the two `MarianSide`s of a model.

    Args:
        path: The model.
        vocabularies: See `find_vocabularies`.
        sizes: Numbers of entries that the model has for the tokens of source and target.

    Raises:
        ValueError: If a vocabulary is missing, is damaged, or is not the model's. The error is one
            line.
        OSError: If a file cannot be read.
    """
    files = find_vocabularies(path, vocabularies)
    if files.tables is None:
        sides = [_numbered(*pair) for pair in zip(files.models, sizes, strict=True)]
    else:
        sides = [_tabled(*row) for row in zip(files.models, files.tables, sizes, strict=True)]
    if sides[0].eos_id != sides[1].eos_id:
        raise ValueError(
            "`vocabularies` must have the same id for the end of a sentence. "
            f"Received: {sides[0].eos_id} and {sides[1].eos_id}."
        )
    return sides


def _numbered(file, size):
    """Returns the `MarianSide` whose ids are those of a SentencePiece model."""
    model = file.read_bytes()
    try:
        ids = SpecialIds.of(model)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    if ids.size != size:
        raise ValueError(
            f"{file} has {ids.size} pieces, the model {size} entries for them. If the model takes "
            "its ids from a table such as opus.vocab.yml, name it with --vocab; otherwise name the "
            "SentencePiece file with which it was trained."
        )
    if ids.eos_id < 0:
        raise ValueError(f"{file} has no piece that ends a sentence.")
    return MarianSide(file, model, ids.unk_id, ids.eos_id, None, size)


def _tabled(file, table, size):
    """Returns the `MarianSide` whose ids are in a table."""
    ids, model = read_table(table, size), file.read_bytes()
    try:
        pieces = read_model(model).pieces
    except ValueError as error:
        raise ValueError(f"{file}: {error}.") from error
    of_texts = [piece.piece for piece in pieces if piece.type == KINDS.NORMAL]
    missing = [piece for piece in of_texts if piece not in ids]
    told = f"{len(missing)} of the {len(of_texts)} pieces of {file} are not in {table}"
    if 2 * len(missing) > len(of_texts):
        raise ValueError(f"{told}: these files do not belong to the same model.")
    notes = [
        f"{told}, such as {piece!r}: they are unknown tokens, as in Marian" for piece in missing
    ]
    return MarianSide(file, model, ids[UNKNOWN], ids[END], ids, size, tuple(notes[:1]))
