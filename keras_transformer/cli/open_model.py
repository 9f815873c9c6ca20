"""A run or an export, opened as what `predict` needs."""

import dataclasses

import click

from keras_transformer.checkpoint_hints import hint
from keras_transformer.cli.command import given, refuse, warn
from keras_transformer.cli.search_options import BEAMS, OPTIONS, SEARCHES, limited, name_default
from keras_transformer.cli.shortlist import with_shortlist
from keras_transformer.export.formats import FORMATS

KINDS = "a run, a SavedModel, a .tflite file or a folder for CTranslate2"
ALL = {*SEARCHES, "max_length", "alignments", "shortlist"}  # a run takes all of them


def open_search(path, search, n_best, max_length, alignments, batch_size, shortlist=None):
    """Returns one of `line_searches` for a run, for several that answer together, or an export.

    Args:
        path: The path of the run or the export, or a list of those of several runs.
        search: The search that the options describe: see `make_search`. `None`: the model's own.
        n_best: Translations of each line. `None`: one, without the number of the line.
        max_length: Longest source and longest output in tokens. `None`: the model's.
        alignments: Whether alignments are asked for.
        batch_size: Sentences at a time.
        shortlist: Path of a shortlist for the searches of a run. `None`: there is none.

    Raises:
        click.UsageError: If there is nothing, or an option has no effect on it.
        ValueError: If it is damaged or something else.
    """
    paths = path if isinstance(path, list) else [path]
    for path in paths:
        if not path.exists():
            raise click.UsageError(
                f"{path} does not exist: MODEL is a run or an export.{hint(path)}"
            )
        if len(paths) > 1 and _is_export(path):
            raise click.UsageError(
                f"{path} is not a run: several models that answer together are runs. Lines to "
                "answer come from stdin or --input."
            )
    if len(paths) > 1:
        return _run(paths, search, n_best, max_length, alignments, batch_size, shortlist)
    if path.is_file():
        return _litert(path, search, n_best)
    if _is_saved_model(path):
        return _saved_model(path, search, n_best)
    if (path / "decoder.yml").is_file():
        raise click.UsageError(
            f"{path} is a folder for Marian: `marian-decoder -c {path}/decoder.yml` opens it. "
            f"MODEL is {KINDS}."
        )
    if (path / "model.bin").is_file():
        return _ctranslate2(path, search, n_best)
    return _run(paths, search, n_best, max_length, alignments, batch_size, shortlist)


def open_attention(path):
    """Returns the run or the SavedModel at `path` as something with a method `attention`.

    Raises:
        click.UsageError: If there is nothing, or an export that has no attention weights.
        ValueError: If it is damaged or something else.
    """
    kinds = "a run, or a SavedModel that was exported with --alignment"
    if not path.exists():
        raise click.UsageError(f"{path} does not exist: MODEL is {kinds}.{hint(path)}")
    if _is_saved_model(path):
        from keras_transformer.export.saved_model.runtime import (
            SavedModelTranslator,
            pipeline_class_of,
        )

        if not pipeline_class_of(path).generates:
            raise click.UsageError(f"{path} gives no attention: MODEL is {kinds}.")
        return SavedModelTranslator(path)
    if path.is_file() or (path / "model.bin").is_file():
        raise click.UsageError(f"{path} gives no attention: MODEL is {kinds}.")
    from keras_transformer.tasks import open_run

    return open_run(path)


def _is_saved_model(path):
    return any(path.glob("saved_model.pb")) or any(path.glob("*/saved_model.pb"))


def _is_export(path):
    """Returns whether a path is a file, or a folder with an export."""
    is_file = path.is_file() or any(
        (path / name).is_file() for name in ("decoder.yml", "model.bin")
    )
    return is_file or _is_saved_model(path)


def _run(paths, search, n_best, max_length, alignments, batch_size, shortlist):
    from keras_transformer.cli.line_searches import Aligned, Searched
    from keras_transformer.decoding import Beam
    from keras_transformer.tasks import open_run

    for path in paths:
        _check_folder(path)
    path, run = " and ".join(map(str, paths)), paths[0] if len(paths) == 1 else paths
    translator = with_shortlist(open_run(run, max_length), shortlist, path)
    if not translator.generates:
        refuse([*SEARCHES, "alignments"], f"has no effect on {path}, a run for {translator.task}.")
        return _answered(translator, path)
    if alignments:
        if not translator.has_source:
            refuse(["alignments"], f"has no effect on {path}, a run for {translator.task}.")
        if isinstance(translator.search, Beam):
            warn("--alignments goes with greedy search, not with the run's own")
        return Aligned(translator)
    if search is None:
        search = translator.search if n_best is None else translator.search_for(n_best)
        name_default(run, search)
    search = limited(search, translator.search)
    translator.check(search, n_best or 1)
    if isinstance(search, Beam):
        _check_memory(translator, search.size, batch_size)
    return Searched(translator, search, n_best or 1)


def _answered(model, path):
    """The answers of a model that answers in one pass: of lines by themselves, or of one series."""
    from keras_transformer.cli.line_searches import Answered

    codec = model.codec
    if not hasattr(codec, "lines"):
        return Answered(model)
    refuse(["scores", "batch_size", "shard"], f"has no effect on {path}: its lines are one series.")
    return codec.lines(model.run, warn)


def _check_memory(translator, size, batch_size):
    """Refuses a beam that is too large even for a word; warns of one that may be for some lines."""
    from keras_transformer.tasks import memory

    configs, length = [model.config for model in translator.models], translator.max_length
    free = memory.available_memory()
    needed = sum(memory.beam_memory(config, batch_size, size, length) for config in configs)
    memory.check_memory(configs, 1, size, 1)
    if free is not None and needed > free / 2:
        warn(
            f"a beam of {size} for {batch_size} of the longest sentences takes about "
            f"{memory.gigabytes(needed)} of memory; {memory.gigabytes(free)} are available"
        )


def _check_folder(path):
    """Refuses a folder that holds nothing of a run."""
    if not any((path / name).exists() for name in ("config.toml", "model.keras", "checkpoints")):
        raise ValueError(f"{path} holds no model: MODEL is {KINDS}.{hint(path)}")


def _saved_model(path, search, n_best):
    from keras_transformer.export.saved_model.metadata import read_beam
    from keras_transformer.export.saved_model.runtime import (
        SavedModelSinglePass,
        SavedModelTranslator,
        newest_version,
        pipeline_class_of,
    )

    kind = pipeline_class_of(path)
    if kind is not None and not kind.generates:
        _refuse_all_but(set(), path)
        return _answered(SavedModelSinglePass(path), path)
    _refuse_all_but(FORMATS["saved-model"].opened_with, path)
    if not given("beam"):
        refuse(["length_penalty"], f"needs --beam with {path}.")
    if search is not None and (beam := read_beam(newest_version(path))) is not None:
        if not beam.has_exponent:
            refuse(["length_penalty"], f"has no effect on {path}: see its README.md.")
        values = {"length_penalty": search.length_penalty} if given("length_penalty") else {}
        search = dataclasses.replace(beam, size=search.size, **values)
    translator = SavedModelTranslator(path, search)
    return _exported(path, translator, n_best)


def _litert(path, search, n_best):
    from keras_transformer.decoding import Beam, Greedy
    from keras_transformer.export.litert.runtime import (
        LiteRTTranslator,
        exported_beam,
        pipeline_class_of,
    )
    from keras_transformer.export.litert.single_pass import LiteRTSinglePass

    _check_file(path)
    if not pipeline_class_of(path).generates:
        _refuse_all_but(set(), path)
        return _answered(LiteRTSinglePass(path), path)
    opened_with = FORMATS["litert"].opened_with
    _refuse_all_but(opened_with, path)
    # What is not given is as in the export.
    taken = {name: OPTIONS[name]["beam"] for name in opened_with if name in BEAMS}
    if not given("beam"):
        refuse(taken, f"needs --beam with {path}.")
        search = Greedy() if given("greedy") else None
    if isinstance(search, Beam):
        values = {field: getattr(search, field) for name, field in taken.items() if given(name)}
        search = dataclasses.replace(exported_beam(path) or search, **values)
    translator = LiteRTTranslator(path, search)
    if not isinstance(translator.search, Beam):
        refuse(["n_best"], f"needs --beam with {path}.")
    return _exported(path, translator, n_best)


def _refuse_all_but(taken, path):
    refuse(sorted(ALL - {*taken}), f"has no effect on {path}: its searches are part of it.")


def _exported(path, translator, n_best):
    """The best output of an export for each line, or the best few."""
    from keras_transformer.cli.line_searches import OwnSearch, Several

    if n_best is None:
        return OwnSearch(translator)
    if n_best > translator.n_best:
        raise click.UsageError(
            f"--n-best {n_best} is more than {path} gives, which is {translator.n_best}. Export it "
            f"again with --n-best {n_best}."
        )
    return Several(translator, n_best)


def _ctranslate2(path, search, n_best):
    from keras_transformer.decoding import Beam, Greedy
    from keras_transformer.export.ctranslate2.runtime import CTranslate2Translator

    refuse(
        sorted(ALL - {*FORMATS["ctranslate2"].opened_with}),
        f"has no effect on {path}: it is not an option of CTranslate2's search.",
    )
    if search is None:
        search = Greedy() if n_best is None else Beam(max(4, n_best))
    if isinstance(search, Beam):
        search = _search_of_ctranslate2(path, search)
    return _exported(path, CTranslate2Translator(path, search), n_best)


def _search_of_ctranslate2(path, search):
    """A beam as CTranslate2 has it: it has no penalty for the length, and ranks by the mean."""
    normalization = "average"
    if search.normalization == "power":
        normalization = "power"
    elif given("length_penalty") and search.length_penalty == 0 or search.normalization == "none":
        normalization = "none"
    elif given("length_penalty") or given("normalization") and search.normalization == "gnmt":
        option = "length-penalty" if given("length_penalty") else "normalization gnmt"
        raise click.UsageError(
            f"--{option} has no effect on {path}: CTranslate2 has no penalty like the paper's. "
            "With --beam alone it ranks by the mean of a token's log-probability; with "
            "--length-penalty 0 by their sum."
        )
    return dataclasses.replace(search, normalization=normalization, extra_length=None)


def _check_file(path):
    """Refuses a file that is no .tflite file, and says what to name instead."""
    if path.suffix == ".keras":
        raise click.UsageError(
            f"{path} is only the weights of a run: name the run's folder, {path.resolve().parent}."
        )
    if path.suffix in (".h5", ".hdf5"):
        raise click.UsageError(
            f"{path} is in Keras's older format, HDF5, which holds no vocabulary and no search. "
            f"MODEL is {KINDS}."
        )
    with open(path, "rb") as file:
        beginning = file.read(8)
    if path.suffix != ".tflite" and beginning[4:] != b"TFL3":
        raise click.UsageError(f"{path} is not a model: MODEL is {KINDS}.{hint(path)}")
