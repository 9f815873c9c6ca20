"""No data: what a run has that was not trained here."""


def open_none(settings):
    """Refuses a section `[data]` without data.

    Raises:
        ValueError: In any case, with what to do.
    """
    raise ValueError(
        '`data.source = "none"`: this run was converted and has no data of its own. Name files on '
        "the command line (`export` takes --sentences, `export marian` in int8 also "
        "--calibration, `evaluate` --source and --reference); to train on from it, write a "
        "configuration with `[model] start_from` and the data."
    )
