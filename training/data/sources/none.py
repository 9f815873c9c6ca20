"""No data, for converted runs."""

from typing import NoReturn


def open_none(settings) -> NoReturn:
    """Raises the error for a `[data]` section without data.

    Raises:
        ValueError: Always; the message says what to do.
    """
    raise ValueError(
        '`data.source = "none"`: this run was converted and has no data of its own. Name files on '
        "the command line (`export` takes --sentences, a file with a text on each line, or with "
        "the path of a recording or an image; `export marian` in int8 also --calibration; "
        "`evaluate` --source and --reference); to train a model from it, write a configuration "
        "with `[model] start_from` and the data."
    )
