"""Runs and ensembles of runs, opened for `predict`."""

from typing import Any

from keras_transformer.checkpoint_hints import hint
from keras_transformer.cli.command import refuse, warn
from keras_transformer.cli.model_options import (
    LANGUAGES,
    MODEL_KINDS,
    answered,
    check_choice,
    check_languages,
    with_answers,
)
from keras_transformer.cli.search_options import (
    OF_SAMPLES,
    SEARCHES,
    check_ctc,
    limited,
    name_default,
)
from keras_transformer.cli.shortlist import with_shortlist


def open_runs(
    paths, search, n_best, max_length, alignments, batch_size, shortlist, languages, answers
) -> Any:
    """Returns one of `line_searches` for a run, or for several, which form an ensemble.

    Args:
        paths: List of paths.
        search, n_best, max_length, alignments, batch_size, shortlist, languages, answers: See
            `open_search`.
    """
    from keras_transformer.cli.line_searches import Aligned, Searched
    from keras_transformer.decoding import Beam
    from keras_transformer.tasks import open_run

    for path in paths:
        _check_folder(path)
    path, run = " and ".join(map(str, paths)), paths[0] if len(paths) == 1 else paths
    check_ctc(run, search)
    translator = with_shortlist(open_run(run, max_length), shortlist, path)
    translator = with_answers(translator, answers, path, "run")
    if not translator.generates:
        translator = _with_search(translator, search, run, path)
        translator = _with_languages(translator, languages, path)
        return answered(translator, path)
    if any(languages):
        check_languages(translator.tokenizers, path)
        translator = translator.with_languages(*languages)
    if alignments:
        if not translator.has_source:
            refuse(["alignments"], f"has no effect on {path}, a run for {translator.task}.")
        if isinstance(translator.search, Beam):
            warn("--alignments uses greedy search in place of the run's own search")
        return Aligned(translator)
    if search is None:
        search = translator.search if n_best is None else translator.search_for(n_best)
        name_default(run, search)
    search = limited(search, translator.search)
    translator.check(search, n_best or 1)
    if isinstance(search, Beam):
        _check_memory(translator, search.size, batch_size)
    return Searched(translator, search, n_best or 1)


def _with_search(pipeline, search, run, path):
    """Returns a pipeline of single answers with a search, if its model has one; refuses others."""
    others = [*SEARCHES, "alignments"]
    if pipeline.search is not None:
        others = ["n_best", "sample", *OF_SAMPLES, "alignments"]
    refuse(others, f"has no effect on {path}, a run for {pipeline.task}.")
    if pipeline.search is None:
        return pipeline
    if search is None:
        name_default(run, pipeline.search)
        return pipeline
    return pipeline.with_search(limited(search, pipeline.search))


def _with_languages(pipeline, languages, path):
    """Returns a pipeline of single answers with other languages, or refuses them."""
    if not any(languages):
        return pipeline
    choices = getattr(pipeline.codec, "choices", None)
    if choices is None:
        refuse(LANGUAGES, f"has no effect on {path}, a run for {pipeline.task}.")
    check_choice("language", choices, LANGUAGES, path)
    return pipeline.with_settings(**choices.for_languages(*languages))


def _check_memory(translator, size, batch_size):
    """Refuses a beam that needs too much memory even for one token; warns if long lines may."""
    from keras_transformer.tasks import memory

    configs, length = [model.config for model in translator.models], translator.max_length
    free = memory.available_memory()
    needed = sum(memory.beam_memory(config, batch_size, size, length) for config in configs)
    memory.check_memory(configs, 1, size, 1)
    if free is not None and needed > free / 2:
        warn(
            f"a beam of {size} for {batch_size} sentences of maximum length needs about "
            f"{memory.gigabytes(needed)} of memory; only {memory.gigabytes(free)} is available"
        )


def _check_folder(path):
    """Refuses a folder that does not look like a run."""
    if not any((path / name).exists() for name in ("config.toml", "model.keras", "checkpoints")):
        raise ValueError(f"{path} holds no model: MODEL is {MODEL_KINDS}.{hint(path)}")
