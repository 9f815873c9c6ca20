"""Options of `predict` for words that outputs must or must not contain."""

from typing import Any

from keras_transformer.cli.command import EXISTING_FILE, refuse
from keras_transformer.cli.help import option
from keras_transformer.text.lines import read_lines

WORDS = "Words of the outputs"
BANNED = option(
    "--banned",
    type=EXISTING_FILE,
    group=WORDS,
    help="File of words or phrases, one per line, that no output contains.",
)
PREFIX = option("--prefix", metavar="TEXT", group=WORDS, help="Beginning of every output.")


def wording(glossary=None, banned=None, prefix=None, prefixes=None) -> dict[str, Any]:
    """Returns the settings of answers that the options describe; `None` for options not given.

    Args:
        glossary, banned, prefixes: Paths of files, or `None`.
        prefix: Text of `--prefix`, or `None`.

    Raises:
        click.UsageError: If an option has no effect beside another one.
        ValueError: If a file is not of the form that the option needs.
    """
    from keras_transformer.text.terms import read_glossary, read_phrases

    if glossary is not None:
        for kind in ("greedy", "sample", "ctc"):
            refuse([kind], "has no effect with --glossary, which needs a beam.")
    if prefixes is not None:
        refuse(["prefix"], "has no effect with --prefixes.")
    return {
        "glossary": None if glossary is None else read_glossary(glossary),
        "banned": None if banned is None else read_phrases(banned),
        "prefix": prefix if prefixes is None else read_lines(prefixes),
    }
