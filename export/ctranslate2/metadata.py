"""Metadata of a model in the `config.json` of a folder for CTranslate2."""

import json
import pathlib
from typing import Any

MAX_LENGTH = "max_length"  # of sources and outputs
TASK, MODEL_CONFIG = "task", "model"  # only encoders have them
GREEDY = "greedy_max_new_tokens"
OLD_GREEDY = "greedy_max_length"  # of folders that counted the tokens of prompts
PROMPTS = "prompts"  # only sentence encoders may have them
FORCED = "forced_eos_id"  # for this and the following keys see `TransformerConfig`
FIRST = "forced_bos_id"
NGRAM = "no_repeat_ngram"
SUPPRESSED = "suppressed_ids"
LANGUAGES = "language_codes"
ENDS = "end_ids"
FACTOR = "max_length_ratio"
HIDDEN = "hides_start"  # whether outputs are computed without the token that begins them
# Rules of a model for its outputs, with the values that have no effect. They are also those of
# folders in which a rule is missing.
RULES = {FORCED: None, FIRST: None, NGRAM: 0, LANGUAGES: "none", ENDS: (), FACTOR: None}
RULES |= {SUPPRESSED: ()}


def metadata_of(config, max_length, greedy_length) -> dict[str, Any]:
    """Returns the metadata of a model, a dictionary of plain values.

    Args:
        config: A `TransformerConfig` or a `LanguageModelConfig`.
        max_length: Maximum source and output length in tokens.
        greedy_length: Maximum number of new tokens of greedy search.
    """
    hidden = {HIDDEN: True} if config.decoder.hides_start else {}
    return {MAX_LENGTH: max_length, GREEDY: greedy_length, **rules_of(config), **hidden}


def metadata_of_encoder(pipeline) -> dict[str, Any]:
    """Returns the metadata of the `SinglePass` of an encoder, a dictionary of plain values."""
    return {
        TASK: pipeline.task,
        MAX_LENGTH: pipeline.max_length,
        MODEL_CONFIG: pipeline.model.config.to_dict(),
        **{k: v for k, v in pipeline.codec.line_metadata().items() if k == PROMPTS},
    }


def task_of(path) -> str | None:
    """Returns the name of an encoder's task; `None` for a model that generates text.

    A file that cannot be read has no task: the class that opens the folder reports it.

    Args:
        path: Path of the `config.json`.
    """
    try:
        return json.loads(path.read_bytes()).get(TASK)
    except (OSError, ValueError, AttributeError):
        return None


def rules_of(config) -> dict[str, Any]:
    """Returns the rules of a model for its outputs by name, a dictionary with the keys `RULES`."""
    return {name: getattr(config.head.rules, name) for name in RULES}


def read_metadata(folder) -> dict[str, Any]:
    """Returns the metadata in a `config.json`, with all rules.

    Args:
        folder: Path of the file.

    Raises:
        ValueError: If the file is damaged or of an earlier version; the message names it.
    """
    path = pathlib.Path(folder)
    try:
        metadata = {**RULES, **json.loads(path.read_bytes())}
        metadata[MAX_LENGTH] = int(metadata[MAX_LENGTH])
    except (ValueError, KeyError, TypeError) as error:  # not JSON, or of another program
        raise ValueError(
            f"{path} is damaged: it has no valid `{MAX_LENGTH}`. Export the model again."
        ) from error
    if OLD_GREEDY in metadata:
        raise ValueError(
            f"{path} was exported by an earlier version, whose limits counted the tokens of "
            "prompts. Export the model again."
        )
    return metadata


def renormalizing(rules) -> str | None:
    """Returns the name of a rule with which CTranslate2 changes probabilities, or `None`.

    It excludes tokens before the softmax, so that the probabilities of the others sum to 1. In our
    searches, scores are those of the model.

    Args:
        rules: Dictionary of rules by name, such as the metadata.
    """
    return next((name for name in (NGRAM, SUPPRESSED) if rules[name]), None)
