"""Sentences that an export is checked with, and their languages."""

from keras_transformer.text.lines import read_lines

FALLBACK = ", which has no test split"


def read_sentences(
    run, file, references=None, splits=("test", "validation"), count=200
) -> tuple[list, list | None, str]:
    """Returns real sentences to check or calibrate an export with.

    Args:
        run: Folder of the run.
        file: File of sentences. `None`: the sentences come from the run's data.
        references: File of the correct outputs, such as translations, or `None`.
        splits: Splits of the run's data; the first one that exists is read.
        count: Maximum number of sentences from a split.

    Returns:
        The sentences, which are inputs of the run's task; their correct outputs, or `None`; and a
        description of their origin.
    """
    from keras_transformer.tasks.run import Run
    from keras_transformer.training.evaluate import read_columns
    from keras_transformer.training.settings.sources import open_source
    from keras_transformer.training.settings.toml import load_settings

    if file is not None and references is None:
        return read_lines(file), None, str(file)
    Run(run).require_finished(vocabulary=False)
    settings = load_settings(Run(run).config)
    task = settings.task.get()
    if file is not None:
        return *task.read_files(file, references), str(file)
    data = open_source(settings.data, task.columns)
    split = next((split for split in splits if split in data.splits), splits[0])
    inputs, *others = read_columns(data, task, split, count)
    count = len(inputs)
    source = f"{count} {'sentence' if count == 1 else 'sentences'}"
    source += f" of the {split} split of the run's data"
    if split != splits[0]:
        source += FALLBACK
    return task.samples(inputs), others[-1] if others else None, source


def languages_of(run) -> dict[str, str | None]:
    """Returns the source and target language of a run, each `None` if its settings name none."""
    from keras_transformer.tasks.run import Run
    from keras_transformer.training.settings.toml import load_settings

    config = Run(run).config
    data = load_settings(config).data if config.exists() else None
    return {name: getattr(data, name, None) for name in ("source_language", "target_language")}
