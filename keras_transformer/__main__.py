"""The command line: the one place that knows the layers, training and export.

TensorFlow is imported by the commands that need it, so that `--help` answers at once.
"""

import importlib
import json
import os
import pathlib
import sys
import tempfile
import traceback

import click

FOLDER = click.Path(path_type=pathlib.Path)
FILE = click.Path(path_type=pathlib.Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=pathlib.Path, dir_okay=False, exists=True)


class Command(click.Command):
    """A command that needs TensorFlow."""

    def invoke(self, context):  # noqa: D102
        _start_tensorflow()
        return super().invoke(context)


class Commands(click.Group):
    """Turns errors about the user's input into one line; `--traceback` shows where they rose."""

    command_class = Command

    def invoke(self, context):  # noqa: D102
        try:
            return super().invoke(context)
        except BrokenPipeError:  # translate ... | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            context.exit(1)
        except (ValueError, TypeError, OSError) as error:
            if context.params.get("traceback"):
                raise
            raise click.ClickException(" ".join(str(error).split())) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--traceback", is_flag=True, help="Show where in the code an error was raised.")
@click.version_option(package_name="keras-transformer-kit", prog_name="keras-transformer")
def cli(traceback):
    """Train, evaluate and ship the Transformer of "Attention Is All You Need"."""


@cli.command()
@click.argument("config")
@click.option("--output", "run", type=FOLDER, required=True, help="Folder of the run.")
@click.option("--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Setting.")
@click.option(
    "--strategy",
    type=click.Choice(["default", "mirrored", "multi_worker", "tpu"]),
    default="default",
    show_default=True,
    help="One device; all GPUs of this machine; several machines, as TF_CONFIG says; the TPU "
    "TPU_NAME.",
)
def train(config, run, overrides, strategy):
    """Train as CONFIG says; continue where RUN stopped if it already holds a checkpoint.

    CONFIG is a TOML file, or the name of one that comes with the package.
    """
    from keras_transformer.training.settings import load_settings
    from keras_transformer.training.strategy import make_strategy
    from keras_transformer.training.train import train as train_run

    settings = load_settings(config, overrides)
    try:
        train_run(settings, run, strategy=make_strategy(strategy))
    except ConnectionError as error:
        _leave(error)


def _leave(error):
    """Ends the process at once: TensorFlow may wait for ever for the worker that is lost."""
    if click.get_current_context().find_root().params["traceback"]:
        traceback.print_exception(error)
    click.ClickException(" ".join(str(error).split())).show()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


BEAM = click.option(
    "--beam",
    type=click.IntRange(1),
    metavar="N",
    help="Search with N hypotheses at a time; the paper's N is 4. Default: greedy search.",
)
LENGTH_PENALTY = click.option(
    "--length-penalty",
    type=click.FloatRange(0),
    metavar="A",
    help="With --beam: divide scores by ((5 + length) / 6) ** A.  [default: 0.6]",
)


@cli.command()
@click.argument("run", type=FOLDER)
@click.option("--last", default=5, show_default=True, type=click.IntRange(1), metavar="N")
@click.option("--output", type=FOLDER, help="Folder of the new run.  [default: RUN-average-N]")
def average(run, last, output):
    """Average the weights of the last N checkpoints of RUN into a new run.

    The new run is used like any other: evaluate it, translate with it, export it.
    """
    from keras_transformer.training.averaging import average_checkpoints

    click.echo(average_checkpoints(run, last, output))


@cli.command()
@click.argument("run", type=FOLDER)
@click.option("--source", type=EXISTING_FILE, help="Sentences to translate, one per line.")
@click.option("--reference", type=EXISTING_FILE, help="Their translations, line by line.")
@click.option("--split", default="test", show_default=True, help="Of the run's own data.")
@click.option(
    "--tokenize",
    type=click.Choice(["13a", "none", "intl", "char"]),
    default="13a",
    show_default=True,
    help="sacreBLEU's tokeniser; none for text that is tokenised already.",
)
@click.option("--lowercase", is_flag=True, help="Ignore case in BLEU and chrF.")
@BEAM
@LENGTH_PENALTY
def evaluate(run, source, reference, split, tokenize, lowercase, beam, length_penalty):
    """Translate and compare: sacreBLEU and chrF with signatures, as JSON on stdout.

    Without files, a split of the data that RUN was trained on; the figures of the test split are
    kept in RUN/metrics.json.
    """
    from keras_transformer.training.evaluate import evaluate_files, evaluate_split

    if bool(source) != bool(reference):
        raise click.UsageError("--source and --reference go together.")
    options = {**_search(beam, length_penalty), "tokenize": tokenize, "lowercase": lowercase}
    if source:
        results = evaluate_files(run, source, reference, **options)
    else:
        results = evaluate_split(run, split, **options)
    click.echo(json.dumps(results, indent=2, ensure_ascii=False))


@cli.command()
@click.argument("model", type=FOLDER)
@click.option("--batch-size", default=64, show_default=True, type=click.IntRange(1))
@BEAM
@LENGTH_PENALTY
def translate(model, batch_size, beam, length_penalty):
    """Translate stdin to stdout: one line out per line in, in order.

    MODEL is a run, a SavedModel, a .tflite file or a folder for CTranslate2.
    """
    from keras_transformer.streaming import translate_stream

    translator = _open_model(model, **_search(beam, length_penalty))
    source = sys.stdin.buffer
    window = 1 if source.isatty() else 2048
    translate_stream(
        translator,
        source,
        sys.stdout.buffer,
        _warn,
        batch_size=batch_size,
        window=window,
    )


@cli.command()
@click.argument("run", type=FOLDER)
@click.option("--source", type=EXISTING_FILE, required=True, help="Sentences, one per line.")
@click.option("--target", type=EXISTING_FILE, required=True, help="Translations, line by line.")
@click.option("--batch-size", default=64, show_default=True, type=click.IntRange(1))
def score(run, source, target, batch_size):
    """Say how probable RUN finds given translations.

    One line for each pair: the natural logarithm of the probability of the translation, a tab, and
    its number of tokens, the end of the sentence included in both.
    """
    from keras_transformer.streaming import check_lines, score_files
    from keras_transformer.translator import Translator

    check_lines(source, target)  # before the model is loaded
    score_files(
        Translator.from_run(run), source, target, sys.stdout.buffer, _warn, batch_size=batch_size
    )


@cli.command()
@click.argument("run", type=FOLDER)
@click.argument("sentence")
@click.option("--output", type=FILE, required=True, help="PNG file to write.")
def picture(run, sentence, output):
    """Draw which words of SENTENCE each word of its translation attended to."""
    from keras_transformer.training.picture import draw_attention
    from keras_transformer.translator import Translator

    draw_attention(Translator.from_run(run), sentence, output)
    click.echo(output)


class Exports(click.Group):
    """The commands below `export`."""

    command_class = Command


@cli.group(cls=Exports)
def export():
    """Write a run in a form that needs none of this package."""


SENTENCES = click.option(
    "--sentences",
    type=EXISTING_FILE,
    help="Sentences to check the export with, one per line. Default: of the run's own data.",
)


def _quantize(*choices):
    return click.option("--quantize", type=click.Choice(choices), default="none", show_default=True)


MIN_AGREEMENT = click.option(
    "--min-agreement",
    type=click.FloatRange(0, 100),
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

    search = _search(beam, length_penalty)
    sentences = _sentences(run, sentences)
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
    click.echo(json.dumps(report, indent=2, ensure_ascii=False))


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
    type=click.FloatRange(0),
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
    sentences, references = _pairs(run, sentences, references)
    options = {"beam_size": beam, "n_best": n_best or 1, "license": license}
    options.update(references=references, max_loss=max_loss, tokenizer=tokenizer)
    options["alignment"] = (-1, None) if alignment else None
    if quantize == "int8_static":
        options["calibration"], _ = _pairs(run, calibration, split="train")
    _export_quantized(
        "litert", export_litert, run, file, sentences, quantize, min_agreement, **options
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

    sentences = _sentences(run, sentences)
    _export_quantized(
        "ctranslate2", export_ctranslate2, run, directory, sentences, quantize, min_agreement
    )


def _export_quantized(name, export, run, path, sentences, quantize, min_agreement, **options):
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
    click.echo(json.dumps(report, indent=2, ensure_ascii=False))


def _warn(line):
    click.echo(f"Warning: {line}", err=True)


def _search(beam, length_penalty):
    """The options of a search with a beam; none for greedy search."""
    if beam is None and length_penalty is not None:
        raise click.UsageError("--length-penalty needs --beam.")
    options = {"beam_size": beam, "length_penalty": length_penalty}
    return {name: value for name, value in options.items() if value is not None}


def _sentences(run, file):
    return _pairs(run, file)[0]


def _pairs(run, file, references=None, split="test", count=200):
    """Real sentences to check or calibrate an export with, and their translations or `None`.

    Those of the files, or else of a split of the run's data.
    """
    if file is not None:
        return [each and each.read_text("utf-8").splitlines() for each in (file, references)]
    from keras_transformer.run import Run
    from keras_transformer.training.data import parallel_data
    from keras_transformer.training.evaluate import read_pairs
    from keras_transformer.training.settings import load_settings

    data = parallel_data(load_settings(Run(run).config).data)
    return read_pairs(data, split, count)


def _open_model(path, **search):
    """The run or export at `path`, as something with `translate_batch`."""
    from keras_transformer.beam_translator import BeamTranslator
    from keras_transformer.export.ctranslate2_loaded import MODEL, CTranslate2Translator
    from keras_transformer.export.loaded import LiteRTTranslator, SavedModelTranslator
    from keras_transformer.translator import Translator

    if not path.exists():
        raise click.UsageError(f"{path} does not exist: MODEL is a run or an export.")
    if path.is_file():
        return LiteRTTranslator(path, **search)
    if any(path.glob("saved_model.pb")) or any(path.glob("*/saved_model.pb")):
        if search:
            raise click.UsageError(f"--beam has no effect on {path}: its search is part of it.")
        return SavedModelTranslator(path)
    if (path / MODEL).is_file():
        if search.get("length_penalty"):
            raise click.UsageError(
                f"--length-penalty has no effect on {path}: CTranslate2 has no penalty like the "
                "paper's. With --beam alone it ranks by the mean of a token's log-probability."
            )
        return CTranslate2Translator(path, **search and {**search, "length_penalty": 1})
    translator = Translator.from_run(path)
    return BeamTranslator(translator, **search) if search else translator


def _start_tensorflow():
    """Imports TensorFlow without its remarks on stderr, which no log level stops any more.

    Who sets `TF_CPP_MIN_LOG_LEVEL` sees them, and so does who meets an error on the way.
    """
    os.environ["KERAS_BACKEND"] = "tensorflow"
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as remarks:
        os.dup2(remarks.fileno(), 2)
        try:
            importlib.import_module("keras_transformer.model")  # registers the layers
            importlib.import_module("tensorflow").config.list_physical_devices()
        except BaseException:
            remarks.seek(0)
            os.write(stderr, remarks.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def main():
    """Runs the command line."""
    cli(prog_name="keras-transformer")


if __name__ == "__main__":
    main()
