"""Vocabularies that are copied from another run or from files: `vocabulary.from`.

`train` copies the vocabulary into its run, whose `config.toml` describes it, so that the run
no longer needs the original. Fine-tuning and distillation copy a vocabulary in the same way.
"""

import pathlib
from typing import TYPE_CHECKING, Any

from keras_transformer.variants import short

if TYPE_CHECKING:
    from keras_transformer.text.tokenizers import Tokenizers

SENTENCEPIECE = "SentencePiece"
KEYS = ("shared", "size", "model_type", "split_digits", "character_coverage")


def fill_in(values, load) -> None:
    """Fills in the missing keys of `[vocabulary]` from the vocabulary that `vocabulary.from` names.

    The configuration in the folder of a run has every key; nothing is read for it.

    Args:
        values: The configuration as nested dictionaries with resolved paths; changed in place.
        load: Function from the path of a configuration to its `Settings`.

    Raises:
        ValueError: If the vocabulary cannot be read, or keys that are given do not describe it.
    """
    section, model = values.get("vocabulary"), values.get("model")
    if not isinstance(section, dict) or not _is_place(section.get("from")):
        return
    if isinstance(model, dict) and "start_from" in model:
        raise ValueError(
            "`vocabulary.from` and `model.start_from` cannot be combined: the weights of a run "
            "come with its vocabulary. Remove one of them."
        )
    if set(KEYS) <= section.keys():
        return
    theirs = describe(_listed(section["from"]), load)
    refuse_conflicts(section, theirs)
    values["vocabulary"] = {**theirs, **section}


def describe(places, load) -> dict[str, Any]:
    """Returns the keys of `[vocabulary]` that describe a vocabulary, a dictionary.

    Args:
        places: See `read_tokenizers`.
        load: Function from the path of a configuration to its `Settings`.

    Raises:
        ValueError: If the vocabulary cannot be read, or is neither a BPE nor a unigram model of
            SentencePiece.
    """
    from keras_transformer.text.sentencepiece_model import read_model, type_of

    tokenizers = read_tokenizers(places)
    if tokenizers.source.title != SENTENCEPIECE:
        raise ValueError(
            f"`vocabulary.from` must name a vocabulary of {SENTENCEPIECE}. Received: {places[0]}, "
            f"a vocabulary of {tokenizers.source.title}, which can only be used with its weights: "
            "see `model.start_from`."
        )
    tokenizer: Any = tokenizers.source
    proto = read_model(tokenizer.model)
    kind, spec = type_of(proto), proto.trainer_spec
    if kind not in ("bpe", "unigram"):
        raise ValueError(
            f"`vocabulary.from` must name a BPE or a unigram model. Received: {places[0]}, a model "
            f"of the type {kind!r}."
        )
    config = pathlib.Path(places[0]) / "config.toml"
    return {
        "shared": load(config).vocabulary.shared if config.is_file() else tokenizers.shared,
        "size": tokenizers.source.vocab_size,
        "model_type": kind,
        "split_digits": spec.split_digits,
        "character_coverage": round(spec.character_coverage, 6),  # stored as float32
    }


def read_tokenizers(places) -> "Tokenizers":
    """Returns the `Tokenizers` that `vocabulary.from` names.

    Args:
        places: List of the path of a run or of a SentencePiece file, or of the paths of two files,
            for source and target.

    Raises:
        ValueError: If a path cannot be read, or two vocabularies differ in their special ids.
    """
    from keras_transformer.tasks.run import (
        Run,  # imports Keras, which is slow
    )
    from keras_transformer.text.tokenizers import Tokenizers

    try:
        if len(places) == 1 and pathlib.Path(places[0]).is_dir():
            return Run(places[0]).load_tokenizers()
        sides = [_read_file(pathlib.Path(place)) for place in places]
        return Tokenizers.of(sides if len(sides) == 2 else sides[0])
    except ValueError as error:
        raise ValueError(f"`vocabulary.from` cannot be used: {error}") from error


def read_rules(places) -> Any:
    """Returns the rules for outputs that apply to every model with a vocabulary.

    Args:
        places: See `read_tokenizers`.

    Returns:
        A `Generation` without a search. `None`: the run of the vocabulary has no such rules.
    """
    from keras_transformer.tasks.run import Run

    place = pathlib.Path(places[-1])
    generation = Run(place if place.is_dir() else place.parent).read_generation()
    return generation and generation.of_vocabulary()


def refuse_conflicts(ours, theirs) -> None:
    """Checks that the keys of `[vocabulary]` describe the vocabulary that is copied.

    Args:
        ours: Dictionary of the keys that are given.
        theirs: Description of the vocabulary: see `describe`.

    Raises:
        ValueError: If a key differs. One line, with every such key.
    """
    if wrong := conflicts(ours, theirs, "vocabulary"):
        raise ValueError(
            f"the vocabulary that `vocabulary.from` names is a different one: {', '.join(wrong)}. "
            "Remove these keys."
        )


def conflicts(ours, theirs, section) -> list[str]:
    """Returns descriptions of the keys of a section in which two configurations differ, a list.

    Args:
        ours, theirs: Dictionaries of keys and values; only keys in both are compared.
        section: Name of the section.
    """
    return [
        f"{section}.{key} is {short(ours[key])!r} here and {short(theirs[key])!r} there"
        for key in ours
        if key in theirs and ours[key] != theirs[key]
    ]


def _read_file(path):
    """Returns the `Tokenizer` of a file and of the table of ids beside it, if there is one."""
    from keras_transformer.text.tokenizers.sentencepiece import (
        MODEL,
        TABLE,
        SentencePieceTokenizer,
    )

    if not path.is_file():
        raise ValueError(f"{path} is neither a run nor a file.")
    files, table = {MODEL: path.read_bytes()}, path.with_name(path.name.replace(MODEL, TABLE))
    if table != path and table.is_file():
        files[TABLE] = table.read_bytes()
    try:
        return SentencePieceTokenizer.from_files(files)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _is_place(value):
    places = value if isinstance(value, list) else [value]
    return bool(places) and len(places) <= 2 and all(isinstance(place, str) for place in places)


def _listed(value):
    return value if isinstance(value, list) else [value]
