"""`keras-transformer export`: a command for each form in which a run leaves this package."""

import json
import re

import click

from keras_transformer.command import (
    BEAM,
    EXISTING_FILE,
    FILE,
    FOLDER,
    LENGTH_PENALTY,
    Command,
    FiniteRange,
    refuse,
    search_options,
)
from keras_transformer.export_progress import shown_progress
from keras_transformer.lines import read_lines, read_parallel
from keras_transformer.places import check_suffix


class Exports(click.Group):
    """The commands below `export`."""

    command_class = Command


@click.group(cls=Exports)
def export():
    """Write a run in a form that needs none of this package."""


FALLBACK = ", which has no test split"
SENTENCES = click.option(
    "--sentences",
    type=EXISTING_FILE,
    help="Sentences to check the export with, one per line. Default: of the run's own data.",
)


class Numbers(click.ParamType):
    """Positive numbers in increasing order, such as 1,4,16."""

    name = "numbers"

    def convert(self, value, param, context):  # noqa: D102
        if isinstance(value, tuple):
            return value
        if not re.fullmatch("[0-9]+(,[0-9]+)*", value):
            self.fail(f"{value!r} is not a list of numbers such as 1,4,16.", param, context)
        numbers = tuple(map(int, value.split(",")))
        if numbers[0] < 1 or list(numbers) != sorted(set(numbers)):
            self.fail(f"{value!r} must be positive and increasing, as 1,4,16 is.", param, context)
        return numbers


def _batch_sizes(default):
    return click.option(
        "--batch-sizes",
        type=Numbers(),
        metavar="N,N,...",
        help="Numbers of sentences to make a graph of fixed shape for. Other numbers are padded to "
        f"the next of these, or split.  [default: {default}]",
    )


LENGTHS = click.option(
    "--lengths",
    type=Numbers(),
    metavar="N,N,...",
    help="Source lengths in tokens to make a graph of fixed shape for; the last is the longest "
    "there can be. Other lengths are padded to the next of these.  [default: 16,64,... up to the "
    "longest]",
)
MAX_LENGTH = click.option(
    "--max-length",
    type=click.IntRange(1),
    metavar="N",
    help="Longest source and longest output in tokens.  [default: the model's]",
)


def _quantize(*choices):
    return click.option("--quantize", type=click.Choice(choices), default="none", show_default=True)


MIN_AGREEMENT = click.option(
    "--min-agreement",
    type=FiniteRange(0, 100),
    metavar="PERCENT",
    help="Tokens of a quantised model that must be those of the run, on this processor.  [default: "
    "any; what is limited are its losses]",
)


@export.command("saved-model")
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@BEAM
@LENGTH_PENALTY
@click.option(
    "--n-best",
    type=click.IntRange(1),
    metavar="M",
    help="Translations of a sentence that the signatures with several give.  [default: 4, or the "
    "beam's N if that is less]",
)
@click.option(
    "--jit",
    is_flag=True,
    help="Let XLA compile the searches when the server loads the model. On a processor TensorFlow "
    "Serving then needs --xla_cpu_compilation_enabled=true.",
)
@click.option(
    "--alignment",
    is_flag=True,
    help="Add the signature alignment: what each token attended to, too, the mean of the heads of "
    "the decoder's last layer.",
)
@_batch_sizes("1,4,16 with --jit")
@LENGTHS
@MAX_LENGTH
@SENTENCES
def saved_model(
    run,
    directory,
    beam,
    length_penalty,
    n_best,
    jit,
    alignment,
    batch_sizes,
    lengths,
    max_length,
    sentences,
):
    """Write DIRECTORY/1/ as TensorFlow Serving expects it.

    Its signatures: serving_default, strings to translations; n_best, strings to the best M of a
    beam; tokens and beam_tokens, the same with token ids; search, strings to the best M of a beam
    of 1 to N hypotheses, whose size, length penalty and longest output come with each sentence;
    with --alignment one of that name, which adds to what serving_default gives the tokens and what
    they attended to. --beam and --length-penalty are those of every search with a beam; with --beam
    serving_default is one of them. DIRECTORY/1/README.md says how to start the server and how to
    ask it. A Python program that loads the version must import tensorflow_text first.
    """
    from keras_transformer.beam_translator import BeamTranslator
    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.export.staging import check_place_of_versions
    from keras_transformer.translator import Translator

    search = search_options(beam, length_penalty)
    shapes = {"batch_sizes": batch_sizes, "lengths": lengths}
    shapes = {name: value for name, value in shapes.items() if value is not None}
    if shapes and not jit:
        raise click.UsageError("--batch-sizes and --lengths need --jit.")
    check_place_of_versions(directory)
    with shown_progress() as progress:
        progress("loading the run")
        sentences, _, source = _pairs(run, sentences)
        translator = Translator.from_run(run, max_length)
        if search:
            translator = BeamTranslator(translator, **search)
        report = export_saved_model(
            translator,
            directory,
            sentences,
            n_best,
            jit=jit,
            alignment=(-1, None) if alignment else None,
            progress=progress,
            **shapes,
        )
    _record(run, saved_model_agreement=100 * report["agreement"])
    _print_report(report, source)


@export.command()
@click.argument("run", type=FOLDER)
@click.argument("file", type=FILE)
@_quantize("none", "float16", "int8", "int8_static")
@click.option(
    "--calibration",
    type=EXISTING_FILE,
    help="For int8_static: sentences that show the ranges of the activations, one per line. "
    "Default: 200 of the run's training data.",
)
@MIN_AGREEMENT
@click.option(
    "--max-loss",
    type=FiniteRange(0),
    default=1.0,
    show_default=True,
    metavar="POINTS",
    help="BLEU, and chrF, that a quantised file may lose.",
)
@click.option(
    "--beam",
    type=click.IntRange(1),
    metavar="N",
    help="Put a search with N hypotheses in, too, beside greedy search.",
)
@click.option(
    "--n-best",
    type=click.IntRange(1),
    metavar="M",
    help="With --beam: translations that it returns.  [default: 1]",
)
@_batch_sizes("1")
@LENGTHS
@MAX_LENGTH
@SENTENCES
@click.option(
    "--references",
    type=EXISTING_FILE,
    help="Their translations, line by line, for BLEU and chrF of a quantised file.",
)
@click.option(
    "--alignment",
    is_flag=True,
    help="Let greedy search say, too, what each token attended to: the mean of the heads of the "
    "decoder's last layer.",
)
@click.option("--license", help="Under which the model may be used: a line for the file's facts.")
@click.option(
    "--tokenizer",
    is_flag=True,
    help="Put signatures in, too, that take and give strings, for runtimes that register "
    "TensorFlow Text's operators. The vocabulary must be a unigram model.",
)
def litert(
    run,
    file,
    quantize,
    calibration,
    min_agreement,
    max_loss,
    beam,
    n_best,
    batch_sizes,
    lengths,
    max_length,
    sentences,
    references,
    alignment,
    license,
    tokenizer,
):
    """Write FILE.tflite: token ids in and out, the decoding loop and the vocabulary inside."""
    from keras_transformer.export.litert import export_litert
    from keras_transformer.export.staging import check_place_of_file

    if n_best is not None and beam is None:
        raise click.UsageError("--n-best needs --beam.")
    if references and not sentences:
        raise click.UsageError("--references needs --sentences.")
    if calibration and quantize != "int8_static":
        raise click.UsageError("--calibration needs --quantize int8_static.")
    if quantize == "none":
        refuse(["min_agreement", "max_loss", "references"], "needs --quantize.")
    if sentences and not references:
        refuse(["max_loss"], "needs --references beside --sentences.")
    check_suffix(file, ".tflite")
    check_place_of_file(file)
    sentences, references, source = _pairs(run, sentences, references)
    options = {"beam_size": beam, "n_best": 1 if n_best is None else n_best, "license": license}
    options.update(references=references, max_loss=max_loss, tokenizer=tokenizer)
    options["alignment"] = (-1, None) if alignment else None
    options.update(lengths=lengths, batch_sizes=batch_sizes or (1,), max_length=max_length)
    options.update(_languages(run))
    if quantize == "int8_static":
        options["calibration"], *_ = _pairs(run, calibration, splits=("train",))
    _export_quantized(
        "litert", export_litert, run, file, sentences, source, quantize, min_agreement, **options
    )


@export.command()
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@_quantize("none", "float16", "int8")
@MIN_AGREEMENT
@SENTENCES
def ctranslate2(run, directory, quantize, min_agreement, sentences):
    """Write DIRECTORY as CTranslate2 loads it, with the vocabulary beside the model."""
    from keras_transformer.export.ctranslate2 import FILES, export_ctranslate2
    from keras_transformer.export.staging import check_place_of_folder

    if quantize == "none":
        refuse(["min_agreement"], "needs --quantize.")
    check_place_of_folder(directory, FILES)
    sentences, references, source = _pairs(run, sentences)
    _export_quantized(
        "ctranslate2", export_ctranslate2, run, directory, sentences, source, quantize,
        min_agreement, references=references if quantize != "none" else None,
    )  # fmt: skip


def _export_quantized(
    name,
    export,
    run,
    path,
    sentences,
    source,
    quantize,
    min_agreement,
    max_length=None,
    **options,
):
    """Exports in a form that can be quantised, and keeps its figures in the run."""
    from keras_transformer.translator import Translator

    if min_agreement is not None:
        min_agreement /= 100
    with shown_progress() as progress:
        progress("loading the run")
        translator = Translator.from_run(run, max_length)
        options.update(min_agreement=min_agreement, progress=progress)
        report = export(translator, path, sentences, quantize, **options)
    if quantize != "none":
        name = f"{name}_{quantize}"
    figures = {f"{name}_agreement": 100 * report["agreement"], f"{name}_bytes": report["bytes"]}
    _record(run, **figures)
    _print_report(report, source)


def _record(run, **figures):
    """Keeps figures in the run, if it can be written: the export is in its place by now."""
    from keras_transformer.run import Run

    try:
        Run(run).update_metrics(**figures)
    except (OSError, ValueError) as error:  # not writable, or not JSON
        reason = getattr(error, "strerror", None) or error
        click.echo(f"Warning: {run} keeps no figures of this export: {reason}.", err=True)


def _languages(run):
    """The languages of a run, as far as its settings name them."""
    from keras_transformer.run import Run
    from keras_transformer.training.settings import load_settings

    config = Run(run).config
    data = load_settings(config).data if config.exists() else None
    return {name: getattr(data, name, None) for name in ("source_language", "target_language")}


def _print_report(report, source):
    if FALLBACK in source:
        click.echo(f"Checked with {source}.", err=True)
    report = {**report, "checked_with": source}
    click.echo(json.dumps(report, indent=2, ensure_ascii=False))


def _pairs(run, file, references=None, splits=("test", "validation"), count=200):
    """Real sentences to check or calibrate an export with.

    Args:
        run: Folder of the run.
        file: File of sentences, or `None`: of the first of `splits` that the run's data has.
        references: File of their translations, or `None`.
        splits: Splits of the run's data.
        count: Most sentences of a split.

    Returns:
        The sentences; their translations or `None`; and where they are from.
    """
    if references is not None:
        return *read_parallel(file, references), str(file)
    if file is not None:
        return read_lines(file), None, str(file)
    from keras_transformer.run import Run
    from keras_transformer.training.data import parallel_data
    from keras_transformer.training.evaluate import read_pairs
    from keras_transformer.training.settings import load_settings

    Run(run).require_finished()
    data = parallel_data(load_settings(Run(run).config).data)
    split = next((split for split in splits if split in data.splits), splits[0])
    pairs = read_pairs(data, split, count)
    count = len(pairs[0])
    source = f"{count} {'sentence' if count == 1 else 'sentences'}"
    source += f" of the {split} split of the run's data"
    if split != splits[0]:
        source += FALLBACK
    return *pairs, source
