"""Runs and exports, opened for `predict` and `plot attention`."""

import dataclasses
from typing import Any

import click

from keras_transformer.checkpoint_hints import hint
from keras_transformer.cli.command import given, refuse, warn
from keras_transformer.cli.search_options import (
    BEAMS,
    OF_SAMPLES,
    OPTIONS,
    SEARCHES,
    limited,
    name_default,
)
from keras_transformer.cli.shortlist import with_shortlist
from keras_transformer.export.formats import FORMATS

MODEL_KINDS = "a run, a SavedModel, a .tflite file or a folder for CTranslate2"
LANGUAGES = ("source_language", "target_language")
# Settings of answers, see `TextPass.with_settings`.
ANSWERS = ("no_answer", "dimensions", "timestamps")
TIMES = ("timestamps", "subtitles")  # options that need timestamps
# Options that a run supports, depending on its task.
ALL = {*SEARCHES, "max_length", "alignments", "shortlist", *LANGUAGES, *ANSWERS, *TIMES}


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
        click.UsageError: If a path does not exist, or an option has no effect on the model.
        ValueError: If a model is damaged, or a path holds something else.
    """
    paths = path if isinstance(path, list) else [path]
    for path in paths:
        if not path.exists():
            raise click.UsageError(
                f"{path} does not exist: MODEL is a run or an export.{hint(path)}"
            )
        if len(paths) > 1 and _is_export(path):
            raise click.UsageError(
                f"{path} is not a run: only runs form an ensemble. Lines to answer come from "
                "stdin or --input."
            )
    if len(paths) > 1 or not _is_export(path):
        options = max_length, alignments, batch_size, shortlist, languages, answers
        return _run(paths, search, n_best, *options)
    if path.is_file():
        return _litert(path, search, n_best, languages, answers)
    if _is_saved_model(path):
        return _saved_model(path, search, n_best, languages, answers)
    if (path / "decoder.yml").is_file():
        raise click.UsageError(
            f"{path} is a folder for Marian: `marian-decoder -c {path}/decoder.yml` opens it. "
            f"MODEL is {MODEL_KINDS}."
        )
    return _ctranslate2(path, search, n_best, languages, answers)


def open_attention(path) -> Any:
    """Returns an object with a method `attention` for the run or the SavedModel at `path`.

    Raises:
        click.UsageError: If the path does not exist, or is an export without attention weights.
        ValueError: If the model is damaged, or the path holds something else.
    """
    kinds = "a run, or a SavedModel that was exported with --alignment"
    if not path.exists():
        raise click.UsageError(f"{path} does not exist: MODEL is {kinds}.{hint(path)}")
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


def _run(paths, search, n_best, max_length, alignments, batch_size, shortlist, languages, answers):
    from keras_transformer.cli.line_searches import Aligned, Searched
    from keras_transformer.decoding import Beam
    from keras_transformer.tasks import open_run

    for path in paths:
        _check_folder(path)
    path, run = " and ".join(map(str, paths)), paths[0] if len(paths) == 1 else paths
    translator = with_shortlist(open_run(run, max_length), shortlist, path)
    translator = _with_answers(translator, answers, path, "run")
    if not translator.generates:
        translator = _with_search(translator, search, run, path)
        translator = _with_languages(translator, languages, path)
        return _answered(translator, path)
    if any(languages):
        _check_languages(translator.tokenizers, path)
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
    _check_choice("language", choices, LANGUAGES, path)
    return pipeline.with_settings(**choices.for_languages(*languages))


def _check_choice(name, choices, options, path):
    """Refuses options for something that a model of speech does not choose."""
    if name not in choices.names:
        what = "languages are" if name == "language" else f"{name} are"
        refuse(options, f"has no effect on {path}, whose {what} fixed.")


def _opened(model, languages, answers, path):
    """Returns the lines of an export of single answers, with its languages and settings."""
    choices = getattr(model.codec, "choices", None)
    _refuse_all_but(() if choices is None else {*LANGUAGES, *TIMES}, path)
    if any(languages):
        _check_choice("language", choices, LANGUAGES, path)
        answers = {**choices.for_languages(*languages), **answers}
    if "timestamps" in answers:
        _check_choice("timestamps", choices, TIMES, path)
    if answers:
        model.choose(**answers)
    return _answered(model, path)


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


def _with_answers(pipeline, answers, path, what="model"):
    """Returns a pipeline with the settings of answers that the options have, or refuses them."""
    if not answers:
        return pipeline
    others = [name for name in answers if name not in getattr(pipeline, "settings", ())]
    if "timestamps" in others:
        others += TIMES
    refuse(others, f"has no effect on {path}, a {what} for {pipeline.task}.")
    return pipeline.with_settings(**answers)


def _check_languages(tokenizers, path):
    """Refuses languages for a model that has none to choose from."""
    if tokenizers.languages is None:
        refuse(LANGUAGES, f"has no effect on {path}, whose languages are fixed.")


def _answered(model, path):
    """Returns a function that answers lines in one pass, independently or as one series."""
    from keras_transformer.cli.line_searches import Answered

    codec = model.codec
    if not hasattr(codec, "lines"):
        return Answered(model)
    refuse(["scores", "batch_size", "shard"], f"has no effect on {path}: its lines are one series.")
    return codec.lines(model.run, warn)


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


def _saved_model(path, search, n_best, languages, answers):
    from keras_transformer.export.saved_model.metadata import read_beam
    from keras_transformer.export.saved_model.runtime import (
        SavedModelSinglePass,
        SavedModelTranslator,
        newest_version,
        pipeline_class_of,
    )

    kind = pipeline_class_of(path)
    if kind is not None and not kind.generates:
        return _opened(SavedModelSinglePass(path), languages, answers, path)
    _refuse_all_but(FORMATS["saved-model"].opened_with, path)
    if any(languages) and (search is not None or n_best is not None):
        refuse(LANGUAGES, f"has no effect beside --beam and --n-best with {path}.")
    if not given("beam"):
        refuse(["length_penalty"], f"needs --beam with {path}.")
    if search is not None and (beam := read_beam(newest_version(path))) is not None:
        if not beam.has_exponent:
            refuse(["length_penalty"], f"has no effect on {path}: see its README.md.")
        values = {"length_penalty": search.length_penalty} if given("length_penalty") else {}
        search = dataclasses.replace(beam, size=search.size, **values)
    translator = SavedModelTranslator(path, search, *languages)
    return _exported(path, translator, n_best)


def _litert(path, search, n_best, languages, answers):
    from keras_transformer.decoding import Beam, Greedy
    from keras_transformer.export.litert.runtime import LiteRTTranslator, origin_of
    from keras_transformer.export.litert.single_pass import LiteRTSinglePass

    _check_file(path)
    kind, beam = origin_of(path)
    if not kind.generates:
        return _opened(LiteRTSinglePass(path), languages, answers, path)
    opened_with = FORMATS["litert"].opened_with
    _refuse_all_but(opened_with, path)
    # Settings that no option changes come from the export.
    taken = {name: OPTIONS[name]["beam"] for name in opened_with if name in BEAMS}
    if not given("beam"):
        refuse(taken, f"needs --beam with {path}.")
        search = Greedy() if given("greedy") else None
    if isinstance(search, Beam):
        values = {field: getattr(search, field) for name, field in taken.items() if given(name)}
        search = dataclasses.replace(beam or search, **values)
    translator = LiteRTTranslator(path, search)
    if any(languages):
        _check_languages(translator.tokenizers, path)
        translator.choose_languages(*languages)
    if not isinstance(translator.search, Beam):
        refuse(["n_best"], f"needs --beam with {path}.")
    return _exported(path, translator, n_best)


def _refuse_all_but(taken, path):
    refuse(sorted(ALL - {*taken}), f"has no effect on {path}: its searches are part of the export.")


def _exported(path, translator, n_best):
    """Returns a function for the best output of an export for each line, or the best `n_best`."""
    from keras_transformer.cli.line_searches import OwnSearch, Several

    if n_best is None:
        return OwnSearch(translator)
    if n_best > translator.n_best:
        raise click.UsageError(
            f"--n-best {n_best} is too large for {path}, which returns up to {translator.n_best} "
            f"outputs. Export the run again with --n-best {n_best}."
        )
    return Several(translator, n_best)


def _ctranslate2(path, search, n_best, languages, answers):
    from keras_transformer.decoding import Beam, Greedy
    from keras_transformer.export.ctranslate2.folder import CONFIG
    from keras_transformer.export.ctranslate2.metadata import task_of
    from keras_transformer.export.ctranslate2.opened import open_ctranslate2

    task = task_of(path / CONFIG)
    if task is not None:
        refuse(sorted(ALL - {*ANSWERS}), f"has no effect on {path}, a model for {task}.")
        return _answered(_with_answers(open_ctranslate2(path), answers, path), path)
    refuse(
        sorted(ALL - {*FORMATS["ctranslate2"].opened_with}),
        f"has no effect on {path}: it is not an option of CTranslate2's search.",
    )
    if search is None:
        search = Greedy() if n_best is None else Beam(max(4, n_best))
    if isinstance(search, Beam):
        search = _search_of_ctranslate2(path, search)
    translator = open_ctranslate2(path, search)
    if any(languages):
        _check_languages(translator.tokenizers, path)
        translator.choose_languages(*languages)
    return _exported(path, translator, n_best)


def _search_of_ctranslate2(path, search):
    """Returns a beam search that CTranslate2 supports, which ranks by mean log-probability."""
    normalization = "average"
    if search.normalization == "power":
        normalization = "power"
    elif given("length_penalty") and search.length_penalty == 0 or search.normalization == "none":
        normalization = "none"
    elif given("length_penalty") or given("normalization") and search.normalization == "gnmt":
        option = "length-penalty" if given("length_penalty") else "normalization gnmt"
        raise click.UsageError(
            f"--{option} has no effect on {path}: CTranslate2 does not have this length penalty. "
            "With --beam alone, it ranks outputs by the mean log-probability of their tokens; with "
            "--length-penalty 0, by the sum."
        )
    return dataclasses.replace(search, normalization=normalization, extra_length=None)


def _check_file(path):
    """Refuses a file that is not a .tflite file, and names the path to use instead."""
    if path.suffix == ".keras":
        raise click.UsageError(
            f"{path} holds only the weights of a run: name the run's folder, "
            f"{path.resolve().parent}."
        )
    if path.suffix in (".h5", ".hdf5"):
        raise click.UsageError(
            f"{path} is in Keras's older format, HDF5, which holds no vocabulary and no search. "
            f"MODEL is {MODEL_KINDS}."
        )
    with open(path, "rb") as file:
        beginning = file.read(8)
    if path.suffix != ".tflite" and beginning[4:] != b"TFL3":
        raise click.UsageError(f"{path} is not a model: MODEL is {MODEL_KINDS}.{hint(path)}")
