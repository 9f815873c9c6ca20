"""Exports, opened for `predict`."""

import dataclasses
from typing import Any

import click

from keras_transformer.checkpoint_hints import hint
from keras_transformer.cli.command import given, refuse
from keras_transformer.cli.fixed_options import refuse_fixed
from keras_transformer.cli.model_options import (
    ALL,
    ANSWERS,
    LANGUAGES,
    MODEL_KINDS,
    TIMES,
    answered,
    check_choice,
    check_languages,
    check_silence,
    with_answers,
)
from keras_transformer.cli.search_options import BEAMS, OPTIONS
from keras_transformer.export.formats import FORMATS


def open_saved_model(path, search, n_best, languages, answers, alignments=False) -> Any:
    """Returns one of `line_searches` for a SavedModel; see `open_search`."""
    from keras_transformer.export.saved_model.metadata import read_beam
    from keras_transformer.export.saved_model.runtime import (
        SavedModelSinglePass,
        SavedModelTranslator,
        newest_version,
        pipeline_class_of,
    )

    kind = pipeline_class_of(path)
    if kind is not None and not kind.generates:
        return _opened(SavedModelSinglePass(path), languages, answers, path, "saved-model", kind)
    beam = read_beam(newest_version(path))
    refuse_fixed(FORMATS["saved-model"].opened_with, path, "saved-model", kind, beam)
    if any(languages) and (search is not None or n_best is not None):
        refuse(LANGUAGES, f"has no effect beside --beam and --n-best with {path}.")
    if not given("beam"):
        refuse(["length_penalty"], f"needs --beam with {path}.")
    if search is not None and beam is not None:
        if not beam.has_exponent:
            refuse(["length_penalty"], f"has no effect on {path}: see its README.md.")
        values = {"length_penalty": search.length_penalty} if given("length_penalty") else {}
        search = dataclasses.replace(beam, size=search.size, **values)
    translator = SavedModelTranslator(path, search, *languages)
    return _aligned(path, translator) if alignments else _exported(path, translator, n_best)


def open_litert(path, search, n_best, languages, answers, alignments=False) -> Any:
    """Returns one of `line_searches` for a .tflite file; see `open_search`."""
    from keras_transformer.decoding import Beam, Greedy
    from keras_transformer.export.litert.runtime import LiteRTTranslator, origin_of
    from keras_transformer.export.litert.single_pass import LiteRTSinglePass

    _check_file(path)
    kind, beam = origin_of(path)
    if not kind.generates:
        model = LiteRTSinglePass(path)
        return _opened(model, languages, answers, path, "litert", kind, model.codec.settings)
    opened_with = FORMATS["litert"].opened_with
    refuse_fixed(opened_with, path, "litert", kind, beam)
    # Settings that no option changes come from the export.
    taken = {name: OPTIONS[name]["beam"] for name in opened_with if name in BEAMS}
    if not given("beam"):
        refuse(taken, f"needs --beam with {path}.")
        search = Greedy() if given("greedy") or alignments else None
    if isinstance(search, Beam):
        values = {field: getattr(search, field) for name, field in taken.items() if given(name)}
        search = dataclasses.replace(beam or search, **values)
    translator = LiteRTTranslator(path, search)
    if alignments:
        return _aligned(path, translator)
    if any(languages):
        check_languages(translator.tokenizers, path)
        translator.choose_languages(*languages)
    if not isinstance(translator.search, Beam):
        refuse(["n_best"], f"needs --beam with {path}.")
    return _exported(path, translator, n_best)


def open_ctranslate2_folder(path, search, n_best, languages, answers) -> Any:
    """Returns one of `line_searches` for a folder for CTranslate2; see `open_search`."""
    from keras_transformer.decoding import Beam, Greedy
    from keras_transformer.export.ctranslate2.folder import CONFIG
    from keras_transformer.export.ctranslate2.metadata import task_of
    from keras_transformer.export.ctranslate2.opened import open_ctranslate2

    task = task_of(path / CONFIG)
    if task is not None:
        refuse(sorted(ALL - {*ANSWERS}), f"has no effect on {path}, a model for {task}.")
        return answered(with_answers(open_ctranslate2(path), answers, path), path)
    refuse_fixed(FORMATS["ctranslate2"].opened_with, path, "ctranslate2", None)
    if search is None:
        search = Greedy() if n_best is None else Beam(max(4, n_best))
    if isinstance(search, Beam):
        search = _search_of_ctranslate2(path, search)
    translator = open_ctranslate2(path, search)
    if any(languages):
        check_languages(translator.tokenizers, path)
        translator.choose_languages(*languages)
    return _exported(path, translator, n_best)


def _opened(model, languages, answers, path, command, kind, settings=()):
    """Returns the lines of an export of single answers, with its languages and settings."""
    choices = getattr(model.codec, "choices", None)
    taken = *getattr(choices, "command_options", ()), *settings
    check_silence(model.codec, path)
    refuse_fixed(taken, path, command, kind)
    if any(languages):
        check_choice("language", choices, LANGUAGES, path)
        answers = {**choices.for_languages(*languages), **answers}
    if "timestamps" in answers:
        check_choice("timestamps", choices, TIMES, path)
    if answers:
        model.choose(**answers)
    return answered(model, path)


def _aligned(path, translator):
    """Returns a function for the translation of each line with its alignment."""
    from keras_transformer.cli.line_searches import Aligned

    if not translator.aligns:
        raise click.UsageError(
            f"--alignments needs the attention weights, which {path} does not return: export the "
            "run again with --alignment."
        )
    if translator.has_languages:
        raise click.UsageError(
            f"--alignments needs the run: {path} does not say which of its tokens are languages."
        )
    return Aligned(translator)


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
