"""`keras-transformer export`: a command for each form in which a run leaves this package."""

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FILE,
    FOLDER,
    MAX_LENGTH,
    Command,
    refuse,
    warn,
)
from keras_transformer.cli.export_options import (
    LENGTHS,
    SENTENCES,
    batch_sizes,
    check_limits,
    quantize,
)
from keras_transformer.cli.export_sentences import (
    languages_of,
    print_report,
    read_sentences,
    record,
)
from keras_transformer.cli.places import check_suffix
from keras_transformer.cli.progress import shown_progress
from keras_transformer.cli.search_options import (
    OF_GREEDY_OR_BEAM,
    greedy_or_beam,
    n_best,
    option_of,
    search_of_run,
)
from keras_transformer.cli.shortlist import SHORTLIST, with_shortlist
from keras_transformer.export.formats import FORMATS
from keras_transformer.text.lines import parse_lines

# Parameters that are the command's own, and no option of an export.
OF_THE_COMMAND = {
    *("run", "file", "directory", "sentences", "references", "max_length", "shortlist"),
}
LITERT, CTRANSLATE2 = FORMATS["litert"], FORMATS["ctranslate2"]


class Exports(click.Group):
    """The commands below `export`."""

    command_class = Command


@click.group(cls=Exports)
def export():
    """Write a run in a form that needs none of this package."""


@export.command("saved-model")
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@greedy_or_beam()
@n_best(
    "Outputs of an input that the signatures with several give.",
    "4, or the beam's N if that is less",
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
    help="Add the signature alignment: also what each token attended to, the mean of the heads of "
    "the decoder's last layer.",
)
@batch_sizes("1,4,16 with --jit")
@LENGTHS
@MAX_LENGTH
@SHORTLIST
@SENTENCES
def saved_model(
    run,
    directory,
    jit,
    alignment,
    batch_sizes,
    lengths,
    max_length,
    shortlist,
    sentences,
    **options,
):
    """Write DIRECTORY/1/ as TensorFlow Serving expects it.

    Its signatures, where a model generates text: serving_default, strings to translations; n_best,
    strings to the best M of a beam; tokens and beam_tokens, the same with token ids; search,
    strings to the best M of a beam of 1 to N hypotheses, whose size, length penalty and longest
    output come with each sentence; with --alignment one of that name, which adds to what
    serving_default gives the tokens and what they attended to. --beam and the options that need it
    are those of every search with a beam; with --beam serving_default is one of them. A classifier
    has serving_default and tokens, to labels. DIRECTORY/1/README.md explains how to start the
    server and send requests. A Python program that loads the version must import tensorflow_text
    first.
    """
    from keras_transformer.export.place_checks import check_place_of_versions

    shapes = {"batch_sizes": batch_sizes, "lengths": lengths}
    shapes = {name: value for name, value in shapes.items() if value is not None}
    if shapes and not jit:
        raise click.UsageError("--batch-sizes and --lengths need --jit.")
    options["search"] = search_of_run(run, options)
    options["alignment"] = (-1, None) if alignment else None
    options.update(jit=jit, **shapes)
    check_place_of_versions(directory)
    with shown_progress() as progress:
        progress("loading the run")
        sentences, options["references"], source = read_sentences(run, sentences)
        export = _Export("saved-model", run, max_length, shortlist)
        report = export(directory, sentences, progress=progress, **options)
    record(run, saved_model_agreement=100 * report["agreement"])
    print_report(report, source)


@export.command()
@click.argument("run", type=FOLDER)
@click.argument("file", type=FILE)
@quantize(LITERT)
@click.option(
    "--calibration",
    type=EXISTING_FILE,
    help="For int8_static: sentences that show the ranges of the activations, one per line. "
    "Default: 200 of the run's training data.",
)
@option_of(
    "beam",
    "Also put in a search with N hypotheses, beside greedy search.",
    "the run's own search, if that is a beam",
)
@greedy_or_beam("beam", *LITERT.beams.fixed)
@n_best("With --beam: outputs that it returns.", 1)
@batch_sizes("1")
@LENGTHS
@MAX_LENGTH
@SHORTLIST
@click.option(
    "--alignment",
    is_flag=True,
    help="Let greedy search also return what each token attended to: the mean of the heads of the "
    "decoder's last layer.",
)
@click.option("--license", help="Under which the model may be used: a line for the file's facts.")
@click.option(
    "--tokenizer",
    is_flag=True,
    help="Also put in signatures that take and give strings, for runtimes that register "
    "TensorFlow Text's operators. The vocabulary must be a unigram model.",
)
def litert(
    run, file, calibration, sentences, references, batch_sizes, alignment, max_length, **options
):
    """Write FILE.tflite: token ids in and out, the decoding loop and the vocabulary inside."""
    from keras_transformer.decoding import Beam
    from keras_transformer.export.place_checks import check_place_of_file

    search = search_of_run(run, options)
    if not isinstance(search, Beam):
        refuse(["n_best"], "needs --beam.")
    if calibration and options["quantize"] != "int8_static":
        raise click.UsageError("--calibration needs --quantize int8_static.")
    check_limits(options["quantize"], sentences, references)
    check_suffix(file, ".tflite")
    check_place_of_file(file)
    if options["tokenizer"]:
        refuse_run("litert", run, options["quantize"])
    checked_with = read_sentences(run, sentences, references)
    options["n_best"] = options["n_best"] or 1
    options["searches"] = [search]
    options.update(batch_sizes=batch_sizes or (1,), **languages_of(run))
    options["alignment"] = (-1, None) if alignment else None
    if options["quantize"] == "int8_static":
        options["calibration"], *_ = read_sentences(run, calibration, splits=("train",))
    export_quantized("litert", run, file, checked_with, max_length, **options)


@export.command()
@click.argument("run", type=FOLDER)
@click.argument("directory", type=FOLDER)
@quantize(CTRANSLATE2)
def ctranslate2(run, directory, sentences, references, **options):
    """Write DIRECTORY as CTranslate2 loads it, with the vocabulary beside the model."""
    from keras_transformer.export.ctranslate2.export import FILES
    from keras_transformer.export.place_checks import check_place_of_folder

    check_limits(options["quantize"], sentences, references)
    check_place_of_folder(directory, FILES)
    refuse_run("ctranslate2", run, options["quantize"])
    checked_with = read_sentences(run, sentences, references)
    export_quantized("ctranslate2", run, directory, checked_with, **options)


def refuse_run(form, run, quantize):
    """Refuses a run that cannot have a form, before anything dear.

    Raises:
        ExportError: With what the form cannot express.
        ValueError: If a file of the run is missing or damaged.
    """
    from keras_transformer.tasks.run import Run

    FORMATS[form].check_run(Run(run), quantize)


class _Export:
    """The export of a run in some form, with the options that have an effect on it.

    Args:
        form: A key of `FORMATS`.
        run: Folder of the run.
        max_length: Longest input and longest output in tokens. `None`: the model's.
        shortlist: Path of a shortlist for its searches. `None`: there is none.
    """

    def __init__(self, form, run, max_length, shortlist=None):
        from keras_transformer.tasks import open_run

        self._pipeline = with_shortlist(open_run(run, max_length), shortlist, run)
        self._run, self._format = run, FORMATS[form]
        self._taken = self._format.options_of(self._pipeline)
        known = self._taken | OF_THE_COMMAND
        if self._pipeline.generates:
            known |= set(OF_GREEDY_OR_BEAM)
        others = [name for name in click.get_current_context().params if name not in known]
        refuse(others, f"has no effect on {run}, a run for {self._pipeline.task}.")

    def __call__(self, path, sentences, **options):
        """Exports to `path`; returns the report. Options without effect are left out."""
        from keras_transformer.decoding import Beam
        from keras_transformer.tasks.run import Run

        own = Run(self._run).read_search()
        if isinstance(own, Beam) and not {"search", "searches"} & self._taken:
            warn(f"{path} has no place for the run's own search, {own}: it is searched greedily.")
        options["origin"] = Run(self._run).read_origin()
        taken = {name: value for name, value in options.items() if name in self._taken}
        examples = parse_lines(self._pipeline.parse, sentences, "sentence")
        count = self._affordable(examples, options["progress"])
        if count == len(examples):
            return self._format.export(self._pipeline, path, examples, **taken)
        warn(
            f"the check compares {count} of {len(examples)} sentences: with all of them it would "
            "take many minutes, perhaps because the model does not stop generating"
        )
        if taken.get("references"):
            taken["references"] = taken["references"][:count]
        taken["left_out"] = len(examples) - count
        return self._format.export(self._pipeline, path, examples[:count], **taken)

    def _affordable(self, examples, progress):
        """Returns the number of examples that the check compares."""
        from keras_transformer.export.extent import affordable

        if not self._pipeline.generates:
            return len(examples)
        return affordable(self._pipeline, examples, progress)


def export_quantized(
    form, run, path, checked_with, max_length=None, *, quantize, min_agreement, **options
):
    """Exports in a form that can be quantised, and keeps its figures in the run."""
    sentences, references, source = checked_with
    if min_agreement is not None:
        options["min_agreement"] = min_agreement / 100
    if quantize != "none":
        options["references"] = references
    with shown_progress() as progress:
        progress("loading the run")
        export = _Export(form, run, max_length, options.get("shortlist"))
        report = export(path, sentences, quantize=quantize, progress=progress, **options)
    name = form if quantize == "none" else f"{form}_{quantize}"
    figures = {f"{name}_agreement": 100 * report["agreement"], f"{name}_bytes": report["bytes"]}
    record(run, **figures)
    print_report(report, source)
