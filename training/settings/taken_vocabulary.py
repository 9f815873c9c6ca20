"""A vocabulary that is taken from another run or from files: `vocabulary.from`.

The training copies it into its run, whose `config.toml` describes it: the run needs what it was
taken from no more. Fine-tuning and distillation take a vocabulary over in the same way, with the
weights or from the teacher.
"""

import pathlib

SENTENCEPIECE = "SentencePiece"
KEYS = ("shared", "size", "model_type", "split_digits", "character_coverage")


def fill_in(values, load):
    """Describes the vocabulary that a configuration takes, where it leaves that out.

    A configuration that was written for a run has every key, and nothing is read.

    Args:
        values: The configuration as nested dictionaries, with resolved paths; changed.
        load: Function from the path of a configuration to its `Settings`.

    Raises:
        ValueError: If the vocabulary cannot be read, or is described otherwise.
    """
    section, model = values.get("vocabulary"), values.get("model")
    if not isinstance(section, dict) or not _is_place(section.get("from")):
        return
    if isinstance(model, dict) and "start_from" in model:
        raise ValueError(
            "`vocabulary.from` and `model.start_from` exclude each other: the weights of a run "
            "come with its vocabulary. Remove one of them."
        )
    if set(KEYS) <= section.keys():
        return
    theirs = describe(_listed(section["from"]), load)
    refuse_conflicts(section, theirs)
    values["vocabulary"] = {**theirs, **section}


def describe(places, load):
    """Returns the keys of `[vocabulary]` that describe a vocabulary, a dictionary.

    Args:
        places: See `read_tokenizers`.
        load: Function from the path of a configuration to its `Settings`.

    Raises:
        ValueError: If it cannot be read, or is none of the two kinds.
    """
    from keras_transformer.text.sentencepiece_model import training_of

    tokenizers = read_tokenizers(places)
    if tokenizers.source.title != SENTENCEPIECE:
        raise ValueError(
            f"`vocabulary.from` must name a vocabulary of {SENTENCEPIECE}. Received: {places[0]}, "
            f"one of {tokenizers.source.title}, which comes with weights: `model.start_from`."
        )
    kind, split_digits, coverage = training_of(tokenizers.source.model)
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
        "split_digits": split_digits,
        "character_coverage": coverage,
    }


def read_tokenizers(places):
    """Returns the `Tokenizers` that `vocabulary.from` names.

    Args:
        places: List of the folder of a run, of a SentencePiece file, or of two of these, source and
            target.

    Raises:
        ValueError: If one cannot be read, or two do not number special pieces alike.
    """
    from keras_transformer.tasks.run import (
        Run,  # imports Keras, which reading settings does not need
    )
    from keras_transformer.text.tokenizers import Tokenizers

    try:
        if len(places) == 1 and pathlib.Path(places[0]).is_dir():
            return Run(places[0]).load_tokenizers()
        sides = [_read_file(pathlib.Path(place)) for place in places]
        return Tokenizers.of(sides if len(sides) == 2 else sides[0])
    except ValueError as error:
        raise ValueError(f"`vocabulary.from` cannot be used: {error}") from error


def read_rules(places):
    """Returns the rules for outputs that hold for every model with a vocabulary.

    Args:
        places: See `read_tokenizers`.

    Returns:
        A `Generation` without a search; `None` where the run of the vocabulary has no such rules.
    """
    from keras_transformer.tasks.run import Run

    place = pathlib.Path(places[-1])
    generation = Run(place if place.is_dir() else place.parent).read_generation()
    return generation and generation.of_vocabulary()


def refuse_conflicts(ours, theirs):
    """Raises unless keys of `[vocabulary]` describe the vocabulary that is taken.

    Args:
        ours: Dictionary of the keys that are given.
        theirs: What `describe` returned.

    Raises:
        ValueError: One line, with every key that does not.
    """
    if wrong := conflicts(ours, theirs, "vocabulary"):
        raise ValueError(
            f"the vocabulary that `vocabulary.from` names is another one: {', '.join(wrong)}. "
            "Leave these keys out."
        )


def conflicts(ours, theirs, section):
    """Returns the keys of a section that two configurations have with other values, in words.

    Args:
        ours, theirs: Dictionaries; keys that one of them lacks are left out.
        section: Name of the section.
    """
    return [
        f"{section}.{key} is {ours[key]!r} here and {theirs[key]!r} there"
        for key in ours
        if key in theirs and ours[key] != theirs[key]
    ]


def _read_file(path):
    """The `Tokenizer` of a file, with the table of ids beside it, if there is one."""
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
