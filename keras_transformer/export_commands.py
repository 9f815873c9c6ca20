"""`keras-transformer export`: a command for each form in which a run leaves this package."""

import json

import click

from keras_transformer.command import (
    BEAM,
    EXISTING_FILE,
    FILE,
    FOLDER,
    LENGTH_PENALTY,
    Command,
    FiniteRange,
    check_folder,
    check_output,
    refuse,
    search_options,
)
from keras_transformer.lines import read_lines, read_parallel


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


def _quantize(*choices):
    return click.option("--quantize", type=click.Choice(choices), default="none", show_default=True)


MIN_AGREEMENT = click.option(
    "--min-agreement",
    type=FiniteRange(0, 100),
    metavar="PERCENT",
    help="Tokens of a quantised model that must be those of the run.  [default: 98 for float16, "
    "90 for int8 and int8_static]",
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
@SENTENCES
def saved_model(run, directory, beam, length_penalty, n_best, jit, alignment, sentences):
    """Write DIRECTORY/1/ as TensorFlow Serving expects it.

    Its signatures: serving_default, strings to translations; n_best, strings to the best M of a
    beam; tokens and beam_tokens, the same with token ids; with --alignment one of that name, which
    adds to what serving_default gives the tokens and what they attended to. --beam and
    --length-penalty are those of every search with a beam; with --beam serving_default is one of
    them. DIRECTORY/1/README.md says how to start the server and how to ask it.
    """
    from keras_transformer.beam_translator import BeamTranslator
    from keras_transformer.export.saved_model import export_saved_model
    from keras_transformer.run import Run
    from keras_transformer.translator import Translator

    search = search_options(beam, length_penalty)
    check_folder(directory)
    sentences, _, source = _pairs(run, sentences)
    translator = Translator.from_run(run)
    if search:
        translator = BeamTranslator(translator, **search)
    report = export_saved_model(
        translator,
        directory,
        sentences,
        n_best,
        jit=jit,
        alignment=(-1, None) if alignment else None,
    )
    Run(run).update_metrics(saved_model_agreement=100 * report["agreement"])
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
    sentences,
    references,
    alignment,
    license,
    tokenizer,
):
    """Write FILE.tflite: token ids in and out, the decoding loop and the vocabulary inside."""
    from keras_transformer.export.litert import export_litert

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
    check_output(file, ".tflite")
    sentences, references, source = _pairs(run, sentences, references)
    options = {"beam_size": beam, "n_best": 1 if n_best is None else n_best, "license": license}
    options.update(references=references, max_loss=max_loss, tokenizer=tokenizer)
    options["alignment"] = (-1, None) if alignment else None
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
    from keras_transformer.export.ctranslate2 import export_ctranslate2

    if quantize == "none":
        refuse(["min_agreement"], "needs --quantize.")
    check_folder(directory)
    sentences, _, source = _pairs(run, sentences)
    _export_quantized(
        "ctranslate2", export_ctranslate2, run, directory, sentences, source, quantize,
        min_agreement,
    )  # fmt: skip


def _export_quantized(
    name, export, run, path, sentences, source, quantize, min_agreement, **options
):
    """Exports in a form that can be quantised, and keeps its figures in the run."""
    from keras_transformer.run import Run
    from keras_transformer.translator import Translator

    if min_agreement is not None:
        min_agreement /= 100
    translator = Translator.from_run(run)
    report = export(translator, path, sentences, quantize, min_agreement=min_agreement, **options)
    if quantize != "none":
        name = f"{name}_{quantize}"
    figures = {f"{name}_agreement": 100 * report["agreement"], f"{name}_bytes": report["bytes"]}
    Run(run).update_metrics(**figures)
    _print_report(report, source)


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
    source = f"{len(pairs[0])} sentences of the {split} split of the run's data"
    if split != splits[0]:
        source += FALLBACK
    return *pairs, source
