"""A run or an export, opened as what `translate` asks of it."""

import dataclasses

import click

from keras_transformer.cli.command import refuse, warn

# What belongs to a search: without it the option has no effect.
BEAM_ONLY = ("normalization", "min_length", "extra_length")
SAMPLE_ONLY = ("temperature", "top_k", "top_p", "seed")
BEAMS = ("beam", "length_penalty", *BEAM_ONLY)
SEARCHES = (*BEAMS, "n_best", "sample", *SAMPLE_ONLY, "max_length", "alignments")
KINDS = "a run, a SavedModel, a .tflite file or a folder for CTranslate2"
BY_SUM = 1e-9  # CTranslate2 ranks by the sum; with 0 it stops at another moment as well


@dataclasses.dataclass(frozen=True)
class Asked:
    """The options of `translate` that say what to search for; see its help."""

    beam: int | None
    length_penalty: float | None
    normalization: str | None
    min_length: int | None
    extra_length: int | None
    max_length: int | None
    n_best: int | None
    sample: bool
    temperature: float
    top_k: int
    top_p: float
    seed: int
    scores: bool
    alignments: bool

    def beam_options(self, *names):
        """The arguments of these names, as far as they are given."""
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


def open_search(path, asked, batch_size):
    """Returns one of `line_searches` for the run or the export at `path`.

    Args:
        path: The path.
        asked: The `Asked`.
        batch_size: Sentences at a time.

    Raises:
        click.UsageError: If there is nothing, or an option has no effect on it.
        ValueError: If it is damaged or something else.
    """
    if not path.exists():
        raise click.UsageError(f"{path} does not exist: MODEL is a run or an export.")
    if path.is_file():
        return _litert(path, asked)
    if any(path.glob("saved_model.pb")) or any(path.glob("*/saved_model.pb")):
        return _saved_model(path, asked)
    if (path / "model.bin").is_file():
        return _ctranslate2(path, asked)
    return _run(path, asked, batch_size)


def _run(path, asked, batch_size):
    from keras_transformer.cli.line_searches import Aligned, Best, Sampled, Several
    from keras_transformer.tasks.beam_translator import BeamTranslator
    from keras_transformer.tasks.translator import Translator

    _check_folder(path)
    translator = Translator.from_run(path, **asked.beam_options("max_length"))
    if asked.sample:
        return Sampled(translator, asked.beam_options(*SAMPLE_ONLY))
    if asked.alignments:
        return Aligned(translator)
    beam_size = asked.beam
    if beam_size is None and asked.n_best is not None:
        beam_size = max(4, asked.n_best)
    if beam_size is None:
        return Best(translator)
    beam = BeamTranslator(translator, beam_size, **asked.beam_options("length_penalty", *BEAM_ONLY))
    _check_memory(beam, batch_size)
    return Best(beam) if asked.n_best is None else Several(beam, asked.n_best)


def _check_memory(beam, batch_size):
    """Refuses a beam that is too large even for a word; warns of one that may be for some lines."""
    from keras_transformer.decoding.memory import available_memory, check_memory, gigabytes

    free, needed = available_memory(), beam.memory(batch_size)
    check_memory(beam.translator.model.config, 1, beam.beam_size, 1)
    if free is not None and needed > free / 2:
        warn(
            f"a beam of {beam.beam_size} for {batch_size} of the longest sentences takes about "
            f"{gigabytes(needed)} of memory; {gigabytes(free)} are available"
        )


def _check_folder(path):
    """Refuses a folder that holds nothing of a run."""
    if not any((path / name).exists() for name in ("config.toml", "model.keras", "checkpoints")):
        raise ValueError(f"{path} holds no model: MODEL is {KINDS}.")


def _saved_model(path, asked):
    from keras_transformer.cli.line_searches import Best, Several
    from keras_transformer.export.saved_model.runtime import SavedModelTranslator

    takes = {"beam", "length_penalty", "n_best"}
    refuse(
        [name for name in SEARCHES if name not in takes],
        f"has no effect on {path}: its searches are part of it.",
    )
    if asked.beam is None:
        refuse(["length_penalty"], f"needs --beam with {path}.")
    translator = SavedModelTranslator(path, asked.beam, **asked.beam_options("length_penalty"))
    if asked.n_best is None:
        return Best(translator)
    _check_n_best(path, asked.n_best, translator.n_best)
    return Several(translator, asked.n_best)


def _litert(path, asked):
    from keras_transformer.cli.line_searches import Best, Several
    from keras_transformer.export.litert.runtime import LiteRTTranslator

    _check_file(path)
    takes = {"beam", "length_penalty", "extra_length", "n_best"}
    refuse(
        [name for name in SEARCHES if name not in takes],
        f"has no effect on {path}: its searches are part of it.",
    )
    if asked.beam is None:
        refuse(["n_best", "length_penalty", "extra_length"], f"needs --beam with {path}.")
    options = asked.beam_options("length_penalty", "extra_length")
    translator = LiteRTTranslator(path, beam_size=asked.beam, **options)
    if asked.n_best is None:
        return Best(translator)
    _check_n_best(path, asked.n_best, translator.signatures[0].n_best)
    return Several(translator, asked.n_best)


def _ctranslate2(path, asked):
    from keras_transformer.cli.line_searches import Best, Several
    from keras_transformer.export.ctranslate2.runtime import CTranslate2Translator

    takes = {"beam", "length_penalty", "normalization", "n_best"}
    refuse(
        [name for name in SEARCHES if name not in takes],
        f"has no effect on {path}: it is no option of CTranslate2's search.",
    )
    if asked.length_penalty or asked.normalization == "gnmt" and asked.length_penalty is None:
        raise click.UsageError(
            f"--{'length-penalty' if asked.length_penalty else 'normalization gnmt'} has no effect "
            f"on {path}: CTranslate2 has no penalty like the paper's. With --beam alone it ranks "
            "by the mean of a token's log-probability; with --length-penalty 0 by their sum."
        )
    if asked.beam is None and asked.n_best is None:
        return Best(CTranslate2Translator(path))
    by_sum = asked.length_penalty == 0 or asked.normalization == "none"
    beam_size = max(4, asked.n_best) if asked.beam is None else asked.beam
    translator = CTranslate2Translator(
        path,
        beam_size=beam_size,
        length_penalty=BY_SUM if by_sum else 1,
    )
    return Best(translator) if asked.n_best is None else Several(translator, asked.n_best)


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
        raise click.UsageError(f"{path} is not a model: MODEL is {KINDS}.")


def _check_n_best(path, n, most):
    if n > most:
        raise click.UsageError(
            f"--n-best {n} is more than {path} gives, which is {most}. Export it again with "
            f"--n-best {n}."
        )
