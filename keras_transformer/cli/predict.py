"""`keras-transformer predict`, also called `translate`: an answer for each line."""

import contextlib
import io
import os
import sys

import click

from keras_transformer.cli.command import (
    EXISTING_FILE,
    FOLDER,
    MAX_LENGTH,
    STRICT,
    LateCommand,
    NumberList,
    batch_size,
    refuse,
    shard,
    standard,
    warn,
)
from keras_transformer.cli.documents import document_options, without_documents, write_document
from keras_transformer.cli.fixed_options import WORDING
from keras_transformer.cli.help import option
from keras_transformer.cli.numbers import LimitedNumber
from keras_transformer.cli.opened import check_files, open_lines
from keras_transformer.cli.places import check_folder, check_output
from keras_transformer.cli.search_options import BEAMS, make_search, search_options
from keras_transformer.cli.shortlist import SHORTLIST
from keras_transformer.cli.voice_activity import VOICE_ACTIVITY
from keras_transformer.cli.wording import BANNED, PREFIX, WORDS, wording
from keras_transformer.files import replacing
from keras_transformer.native_code import ends_promptly
from keras_transformer.options import SUBTITLES, WINDOWS
from keras_transformer.text.lines import require_regular

# Suffixes of inputs that may be named after MODEL; see `Codec.suffixes`. No model reads the last
# ones, but then the error names what it reads.
FILES = (".wav", ".flac", ".png", ".jpg", ".jpeg", ".mp3", ".m4a", ".ogg", ".opus")
# Options that have no effect on a recording that arrives on stdin.
OF_LINES = ("source", "shard", "scores", "strict", "batch_size", "windows")
EXAMPLE = """# Each line of a file, with beam search:
keras-transformer predict runs/base --beam 4 < in.txt > out.txt
# The three best outputs of each line, with their scores:
keras-transformer predict runs/base --beam 4 --n-best 3 < in.txt
# An ensemble of two runs:
keras-transformer predict runs/base runs/base2 < in.txt
# A web page:
keras-transformer predict runs/base --format html < in.html > out.html
# Subtitles of a recording:
keras-transformer predict runs/whisper a.wav --subtitles srt --output a.srt"""


@click.command(cls=LateCommand, example=EXAMPLE)
@click.argument("models", type=FOLDER, nargs=-1, required=True, metavar="MODEL... [FILE]...")
@option(
    "--input",
    "source",
    type=EXISTING_FILE,
    group="Input and output",
    help="File of lines to answer.  [default: stdin]",
)
@option(
    "--output",
    "target",
    type=FOLDER,
    group="Input and output",
    help="File to write when all lines are answered; with --subtitles, a folder for the files of "
    "several recordings.  [default: stdout]",
)
@option(
    "--stream",
    is_flag=True,
    group="Input and output",
    help="In speech recognition: read raw samples from stdin, integers of 16 bits, little-endian, "
    "one channel, at the sample rate of MODEL, and write words as soon as they are final.",
)
@option(
    "--scores",
    is_flag=True,
    group="Input and output",
    help="Write a score and a tab before each answer: the natural logarithm of its probability, "
    "in beam search divided by the length penalty; 0 for an empty line.",
)
@option(
    "--alignments",
    is_flag=True,
    group="Input and output",
    help="Write a tab and pairs i-j after each translation: word j of the translation attended "
    "most to word i of the source. Words are separated by spaces and counted from 0.",
)
@option(
    "--token-scores",
    is_flag=True,
    group="Input and output",
    help="Write a tab and a list in JSON after each answer: pairs of a token, as the vocabulary "
    "writes it, and the natural logarithm of its probability.",
)
@option(
    "--glossary",
    type=EXISTING_FILE,
    group=WORDS,
    help="File of lines with a source term, a tab and a target term: where a line contains the "
    "source term, its output contains the target term. Several lines with the same source term "
    "list spellings, of which one is enough. Without --beam, the beam is the run's own, but has at "
    "least 10 hypotheses.",
)
@BANNED
@PREFIX
@option(
    "--prefixes",
    type=EXISTING_FILE,
    group=WORDS,
    help="File with the beginning of each output, one per input line; an empty line for none.",
)
@option(
    "--source-language",
    metavar="CODE",
    group="Languages",
    help="Language of the lines, for a multilingual MODEL, such as deu_Latn; in speech "
    "recognition of the recordings, such as de or german, or auto: it is detected.  [default: the "
    "MODEL's own]",
)
@option(
    "--target-language",
    metavar="CODE",
    group="Languages",
    help="Language of the translations, for a multilingual MODEL; in speech recognition the source "
    "language, or English: the text is translated.  [default: the MODEL's own]",
)
@option(
    "--no-answer/--always-answer",
    default=None,
    group="Answers",
    help="In question answering: leave an answer empty if it is more probable that the passage has "
    "none.  [default: the run's own setting]",
)
@option(
    "--dimensions",
    type=LimitedNumber(int, 1),
    metavar="N",
    group="Answers",
    help="In sentence embeddings: write the first N numbers of a vector, scaled to unit length if "
    "the run's vectors are.  [default: all]",
)
@option(
    "--max-active",
    type=LimitedNumber(int, 1),
    metavar="N",
    group="Answers",
    help="In sparse embeddings: write the N tokens with the largest weights, or fewer.  [default: "
    "that of the run, 256 unless it was changed]",
)
@option(
    "--prompt",
    metavar="NAME",
    group="Answers",
    help="In embeddings of texts: name of the prompt in front of each line, such as query, or an "
    "empty string for none.  [default: that of the checkpoint, mostly none]",
)
@option(
    "--sort",
    "sort",
    is_flag=True,
    group="Answers",
    help="In scoring of pairs and late interaction: write the score, a tab and the line, sorted "
    "by score. The passages of each query are sorted separately, the best first; queries keep the "
    "order of the input.",
)
@option(
    "--spans",
    is_flag=True,
    group="Answers",
    help="In token classification of raw texts: write the entities of each line as a list in JSON, "
    "with label, start and end in characters of the line, score and text.",
)
@option(
    "--threshold",
    type=LimitedNumber(float, 0, 1),
    metavar="P",
    group="Answers",
    help="In classification with several labels: write the labels whose probability is at least P. "
    " [default: that of the run]",
)
@option(
    "--probabilities",
    is_flag=True,
    group="Answers",
    help="In classification with several labels: write each answer as an object in JSON, from the "
    "labels to their probabilities, the highest first; with --threshold 0 all labels.",
)
@option(
    "--hops",
    is_flag=True,
    group="Answers",
    help="In questions about stories: write each answer as an object in JSON, with the sentences "
    "and the attention of each hop of a memory network to them.",
)
@option(
    "--timestamps",
    is_flag=True,
    group="Answers",
    help="In speech recognition: write a line for each segment of a recording: number of its input "
    "line, tab, start, tab, end, both in seconds, tab, text.",
)
@option(
    "--words",
    is_flag=True,
    group="Answers",
    help="In speech recognition with Whisper: as --timestamps, with a line for each word; with "
    "--subtitles, a subtitle for each word.",
)
@option(
    "--subtitles",
    type=click.Choice([*SUBTITLES]),
    group="Answers",
    help="In speech recognition: write the segments of a recording as SubRip, WebVTT or JSON. "
    "Several recordings need a folder as --output, where a.wav becomes a.srt, a.vtt or a.json.",
)
@option(
    "--no-speech-threshold",
    type=LimitedNumber(float, 0, 1),
    metavar="P",
    group="Answers",
    help="In speech recognition with Whisper: leave a recording, or a window of a long one, empty "
    "if the probability that nobody speaks is above P, and the text is improbable. 1: never.  "
    "[default: that of the checkpoint, mostly 0.6]",
)
@option(
    "--log-probability-threshold",
    type=float,
    metavar="X",
    group="Answers",
    help="A text is improbable, see --no-speech-threshold, if the mean log-probability of its "
    "tokens is below X.  [default: that of the checkpoint, mostly -1]",
)
@option(
    "--compression-ratio-threshold",
    type=LimitedNumber(float, above=0),
    metavar="R",
    group="Answers",
    help="In speech recognition with Whisper: warn of a text that repeats itself if zlib "
    "compresses it to less than 1/R of its bytes.  [default: that of the checkpoint, mostly 2.4]",
)
@option(
    "--windows",
    type=click.Choice([*WINDOWS]),
    group="Answers",
    help="In speech recognition: how a long recording is read. overlap: windows overlap, and their "
    "texts are joined where they agree; timestamps, with Whisper: a window begins where the last "
    "complete segment ended; context: the same, and MODEL also reads the text before.  "
    "[default: timestamps with Whisper, otherwise overlap]",
)
@option(
    "--temperatures",
    type=NumberList(),
    metavar="T,T,...",
    group="Answers",
    help="In speech recognition with Whisper: if the text of a window repeats itself or is "
    "improbable, transcribe the window again at these temperatures, such as 0.2,0.4,0.6,0.8,1, "
    "until its text is neither.  [default: none]",
)
@VOICE_ACTIVITY
@STRICT
@shard(
    "Answer only part I of N of the lines of --input, I from 0 to N - 1. The outputs of all parts "
    "in order are the output for the whole file.",
    group="Input and output",
)
@document_options
@search_options
@SHORTLIST
@MAX_LENGTH
@batch_size()
def predict(
    models,
    source,
    target,
    batch_size,
    max_length,
    shortlist,
    n_best,
    stream,
    scores,
    alignments,
    token_scores,
    glossary,
    banned,
    prefix,
    prefixes,
    shard,
    strict,
    source_language,
    target_language,
    no_answer,
    dimensions,
    max_active,
    prompt,
    sort,
    spans,
    threshold,
    probabilities,
    hops,
    timestamps,
    words,
    subtitles,
    no_speech_threshold,
    log_probability_threshold,
    compression_ratio_threshold,
    windows,
    temperatures,
    voice_activity,
    **options,
) -> None:
    """Answer each input line with one output line, in order.

    `predict` and `translate` are two names of this command.

    The task of MODEL determines whether the answer is a translation, a summary, a label or a
    continuation of the text. MODEL is a run, a SavedModel, a .tflite file, an .onnx file or a
    folder for CTranslate2. A run supports all options of its task, an export only those that it was
    exported with.

    Recordings and images are named by their paths, one per line, or as FILEs after MODEL. A
    recording longer than the model's limit is processed in windows.

    Several runs form an ensemble, which uses the mean of their probabilities or of the values that
    they predict.

    A bad line, such as one that is not UTF-8 or that names an unreadable image, gets an empty
    answer and a warning. In a time series, a bad line is an error, because later answers depend on
    it; its block of 2,048 lines then gets no answers.

    With --split-sentences or --format, the input is a document, whose sentences are translated.
    """
    from keras_transformer.opening.lines import LineFormat
    from keras_transformer.opening.stream import answer_stream

    _refuse_together(alignments, timestamps, subtitles, n_best, sort)
    if words:
        others = ["scores", "n_best", "alignments", "stream", "timestamps"]
        refuse(others, "has no effect with --words.")
    document, options = without_documents(options)
    wanted = make_search(n_best=n_best, **options)
    answers = {
        "no_answer": no_answer,
        "dimensions": dimensions,
        "max_active": max_active,
        "prompt": prompt,
        "spans": True if spans else None,
        "threshold": threshold,
        "probabilities": True if probabilities else None,
        "hops": True if hops else None,
        "timestamps": True if timestamps or subtitles and not words else None,
        "words": True if words else None,
        "no_speech_threshold": no_speech_threshold,
        "log_probability_threshold": log_probability_threshold,
        "compression_ratio_threshold": compression_ratio_threshold,
        "windows": windows,
        "temperatures": temperatures,
        "voice_activity": voice_activity,
        "token_scores": True if token_scores else None,
        **wording(glossary, banned, prefix, prefixes),
    }
    form = LineFormat(
        numbers=n_best is not None,
        scores=scores or n_best is not None,
        alignments=alignments,
        token_scores=token_scores,
        timestamps=timestamps or words,
        words=words,
        nothing="[]" if spans else "{}" if probabilities else "",
    )
    models, files = _split(models)
    _check_files_of(source, target, files, shard, stream, subtitles)
    with (
        _ending(stream, target, subtitles),
        _lines(source, files) as lines,
        _output(None if subtitles else target) as output,
    ):
        window = 1 if lines.isatty() else 2048
        search = open_lines(
            list(models),
            wanted,
            n_best,
            max_length,
            alignments,
            batch_size,
            shortlist,
            languages=(source_language, target_language),
            answers={name: value for name, value in answers.items() if value is not None},
        )
        check_files(search, files)
        if stream:
            _stream(search, lines, output)
            return
        if document is not None:
            with _progress(lines, target, None, files, None) as progress:
                write_document(search, lines, output, warn, document, batch_size, progress)
            return
        bounds = None if shard is None else shard.bounds(_count(source))
        how = {"batch_size": batch_size, "strict": strict, "bounds": bounds}
        if subtitles:
            from keras_transformer.cli.subtitles import write_subtitles

            write_subtitles(search, lines, target, output, warn, subtitles, words=words, **how)
            return
        if sort:
            _sort(search, lines, output, how)
            return
        with _progress(lines, target, source, files, bounds) as progress:
            how.update(window=window, form=form, progress=progress)
            answer_stream(search, lines, output, warn, **how)


def _ending(stream, target, subtitles):
    """Lets a signal end the command soon; with --stream it only ends the recording."""
    if stream:
        return contextlib.nullcontext()
    folders = [] if target is None else [os.path.dirname(target) or "."]
    return ends_promptly(*folders, *([target] if subtitles and target is not None else []))


def _progress(lines, target, source, files, bounds):
    """Returns a context whose function shows the number of answered lines, if that is useful.

    A person who types lines, or sees the answers on the same terminal, needs no progress.
    """
    shares_terminal = lines.isatty() or target is None and sys.stdout.isatty()
    if shares_terminal or not sys.stderr.isatty():
        return contextlib.nullcontext(lambda count: None)
    from keras_transformer.cli.progress import counted_lines

    if bounds is not None:
        return counted_lines(bounds[1] - bounds[0])
    if files or source is not None and source.is_file():
        return counted_lines(len(files) or _count(source))
    return counted_lines()


def _refuse_together(alignments, timestamps, subtitles, n_best, sort):
    """Refuses options that have no effect with others."""
    if alignments:
        refuse(WORDING, "has no effect with --alignments.")
        refuse(
            (*BEAMS, "n_best", "sample", "ctc"),
            "has no effect with --alignments, which uses greedy search.",
        )
    if timestamps:
        refuse(["scores", "n_best", "alignments", "stream"], "has no effect with --timestamps.")
    if subtitles:
        others = ["scores", "n_best", "alignments", "stream", "timestamps"]
        refuse(others, "has no effect with --subtitles.")
    if sort:
        others = ["scores", "n_best", "alignments", "stream", "timestamps", "subtitles", "shard"]
        refuse(others, "has no effect with --sort.")
    if n_best is not None:
        refuse(["scores"], "has no effect with --n-best, which writes them.")


def _check_files_of(source, target, files, shard, stream, subtitles):
    """Checks where the inputs come from and where the answers go."""
    if stream:
        refuse(OF_LINES, "has no effect with --stream, which reads one recording.")
        if files:
            raise click.UsageError(f"--stream reads stdin: {files[0]} has no effect.")
    if files:
        refuse(["source", "shard"], "has no effect with FILEs after MODEL.")
    if shard is not None and source is None:
        raise click.UsageError("--shard needs --input: the lines of a file can be counted.")
    if shard is not None:
        require_regular(source)
    if target is not None and target.is_dir():
        if not subtitles:
            raise click.UsageError(f"{target} is a directory: --output is a file.")
        check_folder(target)
    elif target is not None:
        check_output(target, *([f".{subtitles}"] if subtitles else []))
        if not target.parent.is_dir():
            raise ValueError(f"{target.parent} does not exist: create it first.")


def _count(path):
    """Returns the number of lines of a file."""
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def _sort(search, lines, output, how):
    """Writes the lines sorted by their scores."""
    from keras_transformer.cli.sorted_lines import write_sorted

    codec = getattr(search.answering, "codec", None)
    if not getattr(codec, "sorts", False):
        raise click.UsageError("--sort needs a model for scoring or late_interaction as MODEL.")
    write_sorted(search, lines, output, warn, **how)


def _stream(search, source, target):
    """Answers a recording that arrives on stdin."""
    from keras_transformer.cli.sound_stream import transcribe_stream

    recognizer = getattr(search, "answering", None)
    if not hasattr(recognizer, "stream"):
        raise click.UsageError("--stream needs a run for speech_recognition as MODEL.")
    click.echo(f"reading {recognizer.sample_rate:,} samples of 16 bits a second", err=True)
    transcribe_stream(recognizer, source, target, warn)


def _split(paths):
    """Returns the paths of models, and those of input files, which come after them."""
    files = [path for path in paths[1:] if path.suffix.lower() in FILES]
    return [path for path in paths if path not in files], files


@contextlib.contextmanager
def _lines(path, files=()):
    if files:
        yield io.BytesIO(b"".join(os.fsencode(file) + b"\n" for file in files))
    elif path is None:
        yield standard("stdin")
    else:
        with open(path, "rb") as file:
            yield file


@contextlib.contextmanager
def _output(path):
    """Yields a binary stream to stdout, or to a file that appears when everything is written."""
    if path is None:
        yield standard("stdout")
    else:
        with replacing(path) as draft, open(draft, "wb") as file:
            yield file
