"""Models of `predict` and `plot attention`, opened and changed as the options say."""

from typing import Any

import click

from keras_transformer.checkpoint_hints import hint
from keras_transformer.cli.command import given, refuse, warn
from keras_transformer.cli.fixed_options import (
    ALL,
    LANGUAGES,
    SILENCE,
    TIMES,
    refuse_fixed,
)
from keras_transformer.cli.search_options import (
    BEAMS,
    OF_GREEDY_OR_BEAM,
    OPTIONS,
    SAMPLING,
    check_ctc,
    limited,
    name_default,
)
from keras_transformer.cli.shortlist import with_shortlist
from keras_transformer.options import OptionError

# Options that stand for several.
GROUPS = {"search": OF_GREEDY_OR_BEAM, "sample": SAMPLING}


def accepted(opened) -> set[str]:
    """Returns the names of the options that have an effect on an `Answering`."""
    return {name for option in opened.accepts for name in GROUPS.get(option, (option,))}


def open_lines(
    paths,
    search,
    n_best=None,
    max_length=None,
    alignments=False,
    batch_size=64,
    shortlist=None,
    languages=(None, None),
    answers=None,
) -> Any:
    """Returns the function that answers lines with a run, an ensemble of runs, or an export.

    Args:
        paths: List of the path of a run or an export, or of the paths of several runs.
        search: Search that the options describe; see `make_search`. `None`: the model's own.
        n_best: Maximum number of answers to a line, which are numbered. `None`: one.
        max_length: Maximum length of inputs and outputs in tokens. `None`: the model's limit.
        alignments: Whether to return alignments.
        batch_size: Number of sentences to answer at a time.
        shortlist: Path of a shortlist for the searches of a run. `None`: no shortlist.
        languages: Codes of the source and target language, `None` for the defaults of the model.
        answers: Values of settings of answers by name, of those that differ from the model's own.

    Raises:
        click.UsageError: If an option has no effect on the model.
        ValueError: If a path does not exist or holds something else, or a model is damaged.
    """
    from keras_transformer.opening.forms import RunForm, form_of
    from keras_transformer.opening.lines import lines_of

    other = next((path for path in paths[1:] if path.is_file() or not path.exists()), None)
    if other is not None:
        reason = "is not a run" if other.exists() else "does not exist"
        raise click.UsageError(
            f"{other} {reason}: only runs form an ensemble. Lines to answer come from stdin or "
            "--input."
        )
    path, form = " and ".join(map(str, paths)), form_of(paths)
    try:
        if form is RunForm:
            check_ctc(paths, search)
            opened = form.open(_one_of(paths), max_length=max_length)
            if shortlist is not None:
                opened = with_shortlist(opened, shortlist, path)
            check_silence(getattr(opened, "codec", None), path)
            refuse_others(opened, path)
            opened = _changed(opened, languages, answers or {}, path)
            opened = _search_of_run(opened, paths, search, n_best, alignments, batch_size)
        else:
            opened = form.open(paths[0])
            check_silence(getattr(opened, "codec", None), path)
            _refuse_fixed(opened, path, form)
            opened = search_of_export(opened, path, search, n_best, alignments, languages)
            opened = _changed(opened, languages, answers or {}, path)
    except OptionError as error:
        raise click.UsageError(f"--{error.name.replace('_', '-')} {error.reason}") from error
    if not opened.generates and opened.codec.simulates:
        others = ["scores", "batch_size", "shard"]
        refuse(others, f"has no effect on {path}: its lines are one series.")
    return lines_of(opened, n_best, alignments, warn)


def refuse_others(pipeline, path) -> None:
    """Refuses options that have no effect on the pipeline of a run."""
    others = sorted(ALL - accepted(pipeline))
    refuse(others, f"has no effect on {path}, a run for {pipeline.task}.")


def check_silence(codec, path) -> None:
    """Refuses thresholds of silence for a model of speech that does not compute its probability."""
    if codec is not None and getattr(codec, "silence", codec) is None:
        rule = "whose model does not compute the probability of silence, as Whisper does"
        refuse(SILENCE, f"has no effect on {path}, {rule}.")


def _refuse_fixed(opened, path, form):
    """Refuses options that an export does not take."""
    from keras_transformer.tasks import TASKS

    if given(*sorted(ALL - (taken := accepted(opened) - {"max_length"}))) is None:
        return  # without importing the pipeline
    kind = TASKS[opened.task].pipeline_class() if opened.task in TASKS else None
    written = getattr(opened, "beam", None)
    refuse_fixed(taken, path, form.name, kind, written)


def _changed(opened, languages, answers, path):
    """Returns a model with other languages and settings of answers, or refuses them."""
    if any(languages):
        if not opened.has_languages:
            refuse(LANGUAGES, f"has no effect on {path}, whose languages are fixed.")
        opened = opened.with_languages(*languages)
    if "timestamps" in answers and "timestamps" not in opened.settings:
        refuse(TIMES, f"has no effect on {path}, whose timestamps are fixed.")
    return opened.with_settings(**answers) if answers else opened


def _search_of_run(pipeline, paths, search, n_best, alignments, batch_size):
    """Returns the pipeline of runs with a search that the options describe, else its own."""
    from keras_transformer.decoding import Beam

    run = _one_of(paths)
    if alignments:
        if isinstance(pipeline.search, Beam):
            warn("--alignments uses greedy search in place of the run's own search")
        return pipeline
    if pipeline.search is None:
        return pipeline
    if search is None:
        search = pipeline.search if n_best is None else pipeline.search_for(n_best)
        wide = pipeline.default_search if given("glossary") and n_best is None else search
        if wide == search:
            name_default(run, search)
        else:
            search = wide
            click.echo(f"--glossary is searched with {search}. --beam replaces it.", err=True)
    search = limited(search, pipeline.search)
    if pipeline.generates:
        pipeline.check(search, n_best or 1)
        if isinstance(search, Beam):
            _check_memory(pipeline, search.size, batch_size)
    return pipeline.with_search(search)


def search_of_export(
    opened, path, search, n_best=None, alignments=False, languages=(None, None)
) -> Any:
    """Returns an export with a search that the options describe, else its own.

    Args:
        opened: The export.
        path: Its path, for messages.
        search, n_best, alignments, languages: See `open_lines`.

    Raises:
        click.UsageError: If an option has no effect on the export.
    """
    from keras_transformer.decoding import Beam, Greedy, Sample

    if not opened.generates:
        return opened
    if isinstance(search, Sample):
        chosen = [kinds.get(search.word) for name, kinds in OPTIONS.items() if given(name)]
        settings = {field: getattr(search, field) for field in chosen if field is not None}
        return _searching(opened, opened.sample_with(**settings))
    if isinstance(search, Greedy) and opened.any_greedy:
        return _searching(opened, limited(search, opened.search))
    if any(languages) and opened.search is None and (search is not None or n_best is not None):
        refuse(LANGUAGES, f"has no effect beside --beam and --n-best with {path}.")
    beams = [name for name in BEAMS if name in accepted(opened)]
    if not (opened.any_beam or given("beam")):
        refuse([name for name in beams if name != "beam"], f"needs --beam with {path}.")
    elif search is None and n_best is not None:
        search = Beam(max(4, n_best))
    if isinstance(search, Beam) and (opened.any_beam or given("beam")):
        fields = {OPTIONS[name]["beam"] for name in beams if given(name)} | {"size"}
        search = opened.beam_with(**{field: getattr(search, field) for field in fields})
        opened = _searching(opened, search)
    elif isinstance(search, Greedy) or alignments and opened.search is not None:
        opened = _searching(opened, search or Greedy())
    if alignments:
        check_alignments(opened, path)
    if isinstance(opened.search, (Greedy, Sample)):
        refuse(["n_best"], f"needs --beam with {path}.")
    if n_best is not None and n_best > opened.max_outputs:
        raise click.UsageError(
            f"--n-best {n_best} is too large for {path}, which returns up to {opened.max_outputs} "
            f"outputs. Export the run again with --n-best {n_best}."
        )
    return opened


def _searching(opened, search):
    """Returns an export with a search that the command line describes, or refuses the search."""
    try:
        return opened.with_search(search)
    except OptionError:  # the caller names the option
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def check_alignments(opened, path):
    """Refuses alignments of an export that has none."""
    if not opened.aligns:
        raise click.UsageError(
            f"--alignments needs the attention weights, which {path} does not return: export the "
            "run again with --alignment."
        )
    if opened.has_languages:
        raise click.UsageError(
            f"--alignments needs the run: {path} does not say which of its tokens are languages."
        )


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


def _one_of(paths):
    """Returns the only path of a list, or the list."""
    return paths[0] if len(paths) == 1 else paths


def open_attention(path) -> Any:
    """Returns an object with a method `attention` for the run or the SavedModel at `path`.

    Raises:
        click.UsageError: If the path is an export without attention weights.
        ValueError: If the path does not exist or holds something else, or the model is damaged.
    """
    from keras_transformer.opening.forms import exported_forms
    from keras_transformer.tasks import open_run

    kinds = "a run, or a SavedModel that was exported with --alignment"
    if not path.exists():
        raise ValueError(f"{path} does not exist: MODEL is {kinds}.{hint(path)}")
    form = next((form for form in exported_forms() if form.fits(path)), None)
    if form is None and not path.is_file():
        return open_run(path)
    if form is not None and form.attends:
        opened = form.open(path)
        if opened.generates:
            return opened
    raise click.UsageError(f"{path} has no attention weights: MODEL is {kinds}.")


def check_files(lines, files) -> None:
    """Refuses files that are named on the command line unless the model reads such files.

    Args:
        lines: Result of `open_lines`.
        files: List of paths.
    """
    codec = getattr(getattr(lines, "answering", None), "codec", None)
    suffixes = getattr(codec, "suffixes", ())
    for file in files:
        if file.suffix.lower() not in suffixes:
            kinds = f"files {', '.join(suffixes)}" if suffixes else "lines from stdin or --input"
            raise click.UsageError(f"{file} is not an input of the model, which reads {kinds}.")
