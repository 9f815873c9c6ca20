"""Vocabulary files of a Marian model: SentencePiece models, and tables of tokens with their ids.

Marian takes the ids from a SentencePiece model, as the students of browsers do, or from a table of
texts that were split before, as the models of OPUS-MT do: `opus.spm32k-spm32k.vocab.yml`.
"""

import json
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_transformer.pretrained.files.marian.settings import decoder_settings
from keras_transformer.pretrained.files.marian.yaml_files import pairs_of_yaml

YAML = (".yml", ".yaml")
TABLES = (*YAML, ".json", ".txt")  # endings; Marian's own text files have one token on each line
LARGEST = 2**26  # bytes; a table of 58,101 tokens has 1 million
END, UNKNOWN = "</s>", "<unk>"
SOURCES, TARGETS = ("src", "source"), ("trg", "tgt", "target")


class VocabularyFiles(NamedTuple):
    """Vocabulary files of source and target.

    Attributes:
        models: Two SentencePiece models.
        tables: Two tables of ids, or `None` if the ids are those of the models.
    """

    models: list[pathlib.Path]
    tables: list[pathlib.Path] | None


def find_vocabularies(path, given=None) -> VocabularyFiles:
    """Returns the vocabulary files of a model.

    Tables take precedence over the ids of SentencePiece. They are those that are given, otherwise
    those that the settings of the decoder name (see `decoder_settings`), otherwise those beside the
    model. The same holds for the SentencePiece models.

    Args:
        path: The model.
        given: List of files. `None`: there are none.

    Raises:
        ValueError: If files are missing, or it is not clear which they are.
    """
    given = None if given is None else [pathlib.Path(file) for file in given]
    models = [file for file in given or () if file.suffix not in TABLES]
    tables = [file for file in given or () if file.suffix in TABLES]
    if given == [] or max(len(models), len(tables)) > 2:
        raise ValueError(
            "`vocabularies` must be one SentencePiece file, or those of source and target, and as "
            f"many tables of ids. Received: {len(models)} and {len(tables)}."
        )
    named = [] if tables else _named(path)
    tables = tables or [file for file in named if file.suffix in TABLES]
    models = models or [file for file in named if file.suffix not in TABLES]
    if not tables and not (named and models):
        tables = _tables_beside(path)
    models = models or _models_beside(path, tables)
    both = [models[0], models[-1]]
    return VocabularyFiles(both, [tables[0], tables[-1]] if tables else None)


def _named(path):
    """Returns the vocabularies that a decoder's settings name, if they are here; or `[]`."""
    choices = {}
    for file, settings in decoder_settings(path).items():
        names = settings.get("vocabs")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            continue
        files = [_beside(file, name) for name in names[:2]]
        missing = [str(name) for name in files if name.suffix in TABLES and not name.is_file()]
        if missing:
            raise ValueError(
                f"{file} names a vocabulary that is missing, {missing[0]}. Put it there, or name "
                "it with --vocab."
            )
        if files and all(name.is_file() for name in files):
            choices[file] = files
    (first, files), *others = choices.items() or [(None, [])]
    for other, different in others:
        if different != files:
            raise ValueError(
                f"{first} and {other} name different vocabularies. Choose with --vocab."
            )
    if len({name.suffix in TABLES for name in files}) > 1:
        names = " and ".join(name.name for name in files)
        raise ValueError(
            f"{first} must name two SentencePiece models or two tables of ids. Received: {names}."
        )
    return files


def _beside(file, name):
    """Returns the path that a decoder's settings name, in their folder if it is not there."""
    path = file.parent / name
    return path if path.is_file() else file.parent / pathlib.PurePath(name).name


def _tables_beside(path):
    """Returns the tables in the folder of a model, at most two."""
    files = [file for ending in YAML for file in path.parent.glob(f"*vocab*{ending}")]
    sides = [[f for f in files if _is_of(f, side)] for side in (SOURCES, TARGETS)]
    if len(files) == 2 and [len(side) for side in sides] == [1, 1]:
        return sides[0] + sides[1]
    if len(files) > 1:
        names = ", ".join(sorted(file.name for file in files))
        raise ValueError(
            f"{path} has several vocabularies beside it, {names}. Name its own with --vocab."
        )
    return files


def _is_of(file, side):
    return any(word in side for word in file.name.split("."))


def _models_beside(path, tables):
    """Returns the SentencePiece files in the folder of a model: one, or source and target.

    Of two that of the source is `source.spm` or begins with `src`, as in browsers.
    """
    files = sorted(path.parent.glob("*.spm"), key=lambda file: not file.name.startswith(SOURCES))
    clear = len(files) == 1 or [file.name.startswith(SOURCES) for file in files] == [True, False]
    if clear:
        return files
    names = ", ".join(file.name for file in files) or "none"
    if tables:
        raise ValueError(
            f"{tables[0].name} has the ids of {path}, but splitting texts also needs source.spm "
            f"and target.spm beside it. Received: {names}. Files of subword-nmt (.bpe) are not "
            "read."
        )
    raise ValueError(
        f"{path} must have one vocabulary beside it, a .spm file, or source.spm and target.spm."
        f" Received: {names}."
    )


def read_table(path, size) -> dict[str, int]:
    """Returns the ids of a table by token.

    Args:
        path: The file: YAML or JSON with the id of each token, or text with one token on each line.
        size: Number of entries that the model has for them.

    Raises:
        ValueError: If the file is damaged, or is not that of a model of this size. The error is one
            line.
        OSError: If the file cannot be read.
    """
    ids, tokens = {}, {}
    for token, written in _pairs(path):
        number = _whole(written)
        if number is None:
            raise ValueError(f"{path}: ids must be whole numbers. Received: {token!r}: {written}.")
        if token in ids or number in tokens:
            other = f"{token!r} twice" if token in ids else f"{tokens[number]!r} and {token!r}"
            raise ValueError(
                f"{path}: every token must occur once, with an id of its own. Received: {other}, "
                f"with the id {number}."
            )
        ids[token], tokens[number] = number, token
    if len(ids) != size:
        raise ValueError(
            f"{path} has {len(ids)} tokens, the model {size} entries for them: it must be the "
            "vocabulary with which the model was trained."
        )
    missing = [number for number in range(size) if number not in tokens]
    if missing:
        raise ValueError(f"{path}: no token has the id {missing[0]}; ids must be 0 to {size - 1}.")
    for token in (END, UNKNOWN):
        if token not in ids:
            raise ValueError(f"{path}: the token {token!r} is missing.")
    return ids


def _whole(text):
    """Returns the number that digits stand for, or `None`."""
    text = str(text)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _pairs(path) -> Sequence[tuple[str, Any]]:
    """Returns pairs of a token and its id as a file writes them."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} must be smaller than 64 MiB.")
    try:
        text = path.read_text("utf-8")
        if path.suffix in YAML:
            return [*pairs_of_yaml(text)]
        if path.suffix == ".json":
            return _pairs_of_json(text)
        lines = text.removesuffix("\n").split("\n")
        return [(line.removesuffix("\r"), str(number)) for number, line in enumerate(lines)]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a table of tokens and ids: {error}.") from error


def _pairs_of_json(text):
    pairs = json.loads(text, object_pairs_hook=tuple)
    if not isinstance(pairs, tuple):
        raise ValueError("it must be a JSON object")
    return pairs
