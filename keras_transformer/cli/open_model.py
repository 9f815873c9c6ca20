"""Models of `predict` and `plot attention`: runs and exports, told apart by their files."""

from typing import Any

import click

from keras_transformer.checkpoint_hints import hint, quoted
from keras_transformer.cli.model_options import MODEL_KINDS
from keras_transformer.cli.open_export import (
    open_ctranslate2_folder,
    open_litert,
    open_saved_model,
)
from keras_transformer.cli.open_run import open_runs


def open_search(
    path,
    search,
    n_best,
    max_length,
    alignments,
    batch_size,
    shortlist=None,
    languages=(None, None),
    answers=None,
) -> Any:
    """Returns one of `line_searches` for a run, an ensemble of runs, or an export.

    Args:
        path: Path of a run or an export, or a list of the paths of several runs.
        search: Search that the options describe; see `make_search`. `None`: the model's own.
        n_best: Maximum number of translations of a line, which are numbered. `None`: one.
        max_length: Maximum length of sources and outputs in tokens. `None`: the model's limit.
        alignments: Whether to return alignments.
        batch_size: Number of sentences to answer at a time.
        shortlist: Path of a shortlist for the searches of a run. `None`: no shortlist.
        languages: Codes of the source and target language, `None` for the defaults of the model.
        answers: Values of `ANSWERS` by name, of those that differ from the model's own.

    Raises:
        click.UsageError: If an option has no effect on the model.
        ValueError: If a path does not exist or holds something else, or a model is damaged.
    """
    paths = path if isinstance(path, list) else [path]
    for path in paths:
        if not path.exists():
            raise ValueError(f"{path} does not exist: MODEL is a run or an export.{hint(path)}")
        if len(paths) > 1 and _is_export(path):
            raise click.UsageError(
                f"{path} is not a run: only runs form an ensemble. Lines to answer come from "
                "stdin or --input."
            )
    if len(paths) > 1 or not _is_export(path):
        options = max_length, alignments, batch_size, shortlist, languages, answers
        return open_runs(paths, search, n_best, *options)
    if path.is_file():
        return open_litert(path, search, n_best, languages, answers, alignments)
    if _is_saved_model(path):
        return open_saved_model(path, search, n_best, languages, answers, alignments)
    if (path / "decoder.yml").is_file():
        raise click.UsageError(
            f"{path} is a folder for Marian: `marian-decoder -c "
            f"{quoted(path / 'decoder.yml')}` opens it. "
            f"MODEL is {MODEL_KINDS}."
        )
    return open_ctranslate2_folder(path, search, n_best, languages, answers)


def open_attention(path) -> Any:
    """Returns an object with a method `attention` for the run or the SavedModel at `path`.

    Raises:
        click.UsageError: If the path is an export without attention weights.
        ValueError: If the path does not exist or holds something else, or the model is damaged.
    """
    kinds = "a run, or a SavedModel that was exported with --alignment"
    if not path.exists():
        raise ValueError(f"{path} does not exist: MODEL is {kinds}.{hint(path)}")
    if _is_saved_model(path):
        from keras_transformer.export.saved_model.runtime import (
            SavedModelTranslator,
            pipeline_class_of,
        )

        if pipeline_class_of(path).generates:
            return SavedModelTranslator(path)
    elif not path.is_file() and not (path / "model.bin").is_file():
        from keras_transformer.tasks import open_run

        return open_run(path)
    raise click.UsageError(f"{path} has no attention weights: MODEL is {kinds}.")


def _is_saved_model(path):
    return any(path.glob("saved_model.pb")) or any(path.glob("*/saved_model.pb"))


def _is_export(path):
    """Returns whether a path is a file or a folder with an export."""
    is_file = path.is_file() or any(
        (path / name).is_file() for name in ("decoder.yml", "model.bin")
    )
    return is_file or _is_saved_model(path)


def check_files(search, files) -> None:
    """Refuses files that are named on the command line unless the model reads such files.

    Args:
        search: Result of `open_search`.
        files: List of paths.
    """
    suffixes = getattr(getattr(search, "model", None), "codec", None)
    suffixes = getattr(suffixes, "suffixes", ())
    for file in files:
        if file.suffix.lower() not in suffixes:
            kinds = f"files {', '.join(suffixes)}" if suffixes else "lines from stdin or --input"
            raise click.UsageError(f"{file} is not an input of the model, which reads {kinds}.")
