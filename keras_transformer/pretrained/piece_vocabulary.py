"""Vocabularies of SentencePiece: the model's own file, or Unigram or BPE in `tokenizer.json`."""

import pathlib
import typing
from typing import Any

from keras_transformer.pretrained.added_tokens import check_marks, token_name
from keras_transformer.pretrained.byte_bpe import EXPRESSIBLE, VOCABULARY, bpe_of_json
from keras_transformer.pretrained.pieces import END, UNKNOWN
from keras_transformer.pretrained.settings import CheckpointSettings
from keras_transformer.pretrained.unigram import normalization_of, unigram_of_json
from keras_transformer.text.byte_pairs import check_merges, merge_ranks
from keras_transformer.text.piece_table import NO_TEXT
from keras_transformer.text.sentencepiece_model import messages, pieces_of

KINDS = messages.ModelProto.SentencePiece
# SentencePiece joins consecutive unknown characters to one token.
BPE = {**EXPRESSIBLE, "ignore_merges": (False,), "fuse_unk": (True,), "unk_token": (UNKNOWN,)}


class PieceVocabulary(typing.NamedTuple):
    """A SentencePiece model and the ids of its tokens.

    Attributes:
        model: The bytes of the model.
        pieces: Its pieces, in order.
        ids: Ids by token in `tokenizer.json`. `None`: the vocabulary is the model's own file, whose
            pieces each family numbers in its own way.
        path: The file.
        content: Content of `tokenizer.json`, or `None` if there is none.
        steps: Names of the `TextSteps` before the model.
    """

    model: bytes
    pieces: list
    ids: dict | None
    path: pathlib.Path
    content: dict | None
    steps: tuple = ()

    def check_end(self) -> None:
        """Refuses a `tokenizer.json` that puts something else than an end after a text."""
        if self.ids is not None:
            check_marks(self.content, self.path, self.ids, [(None, END)])


def read_pieces(folder, name) -> PieceVocabulary:
    """Returns the `PieceVocabulary` of a checkpoint; a SentencePiece model takes precedence.

    Args:
        folder: The `CheckpointFolder`.
        name: Name of the file of the SentencePiece model.

    Raises:
        ValueError: If both files are missing, or the file is damaged or contains another kind of
            tokenizer.
    """
    content = folder.json(VOCABULARY)
    if folder.file(name) is None and content is not None:
        path = folder.path / VOCABULARY
        try:
            model, ids, steps = _of_json(content, path)
        except ValueError as error:
            message = str(error)
            raise ValueError(message if str(path) in message else f"{path}: {message}") from error
        return PieceVocabulary(model, pieces_of(model), ids, path, content, steps)
    if content is None and folder.file(name) is None:
        raise ValueError(f"{folder.path / name} is missing, and so is {VOCABULARY}.")
    return read_model(folder, name)._replace(content=content)


def read_model(folder, name) -> PieceVocabulary:
    """Returns the `PieceVocabulary` of a SentencePiece model's own file.

    Args:
        folder: The `CheckpointFolder`.
        name: Name of the file.

    Raises:
        ValueError: If it is missing or damaged.
    """
    path = folder.require(name)
    model = path.read_bytes()
    try:
        return PieceVocabulary(model, pieces_of(model), None, path, None)
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from error


def check_ids_agree(vocabulary, ids) -> None:
    """Refuses ids of a SentencePiece model's tokens that differ from those in `tokenizer.json`.

    Args:
        vocabulary: The `PieceVocabulary`.
        ids: Ids by token, as the family numbers them.

    Raises:
        ValueError: If a token has two ids; the error names both files.
    """
    model = (vocabulary.content or {}).get("model")
    other = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(other, list):
        names = [pair[0] if isinstance(pair, list) and pair else None for pair in other]
        other = {name: number for number, name in enumerate(names) if isinstance(name, str)}
    for name, number in (other or {}).items() if isinstance(other, dict) else ():
        if ids.get(name, number) != number:
            raise ValueError(
                f"{vocabulary.path} and {VOCABULARY} must have the same ids. Received for "
                f"{name!r}: {ids[name]} and {number}. Remove the file that does not belong to the "
                "checkpoint."
            )


def _of_json(content, path):
    """Returns the SentencePiece model of a `tokenizer.json`, its ids and its `TextSteps`."""
    kind = content.get("model")
    if isinstance(kind, dict) and kind.get("type") == "BPE":
        _, ids, merges = bpe_of_json(content, path, BPE)
        rules, steps = normalization_of(CheckpointSettings(content, path))
        proto, scores = messages.ModelProto(), _ranked(ids, merges)
        proto.trainer_spec.model_type = messages.TrainerSpec.BPE
    else:
        pairs, rules, steps = unigram_of_json(content, path, UNKNOWN)
        ids, scores = {name: number for number, (name, _) in enumerate(pairs)}, dict(pairs)
        proto = messages.ModelProto()
        proto.trainer_spec.model_type = messages.TrainerSpec.UNIGRAM
    for name in (UNKNOWN, END):
        if name not in ids:
            raise ValueError(f"the token {name!r} is missing.")
    proto.normalizer_spec.CopyFrom(rules)
    proto.pieces.add(piece=UNKNOWN, type=KINDS.UNKNOWN)
    proto.pieces.add(piece=END, type=KINDS.CONTROL)
    for name in sorted({*scores} - _not_text(content), key=ids.__getitem__):
        proto.pieces.add(piece=name, score=scores[name], type=KINDS.NORMAL)
    spec = proto.trainer_spec
    spec.unk_id, spec.eos_id, spec.bos_id, spec.pad_id = 0, 1, -1, -1
    spec.unk_piece, spec.eos_piece, spec.vocab_size = UNKNOWN, END, len(proto.pieces)
    return proto.SerializeToString(), ids, steps


def _ranked(ids, merges) -> dict[str, Any]:
    """Returns the scores of the pieces that merges make, and of single characters."""
    ranks = merge_ranks(ids, merges)
    check_merges(merges, ranks)
    return {p: -float(ranks.get(p, -1) + 1) for p in ids if p in ranks or len(p) == 1}


def _not_text(content):
    """Returns the tokens that no text contains, a set."""
    added = content.get("added_tokens")
    return {*NO_TEXT, *map(token_name, added if isinstance(added, list) else ())}
