"""`keras-transformer predict`, also called `translate`: an answer for each line."""

import click

from keras_transformer.cli.answer_options import answer_options, settings_of_answers
from keras_transformer.cli.command import FOLDER, MAX_LENGTH, LateCommand, batch_size, warn
from keras_transformer.cli.documents import document_options, without_documents, write_document
from keras_transformer.cli.input_output import (
    InputOutput,
    input_output_options,
    refuse_together,
    split_files,
)
from keras_transformer.cli.opened import check_files, open_lines
from keras_transformer.cli.search_options import make_search, search_options
from keras_transformer.cli.shortlist import SHORTLIST

WINDOW = 2048  # lines whose answers are written together
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
@input_output_options
@answer_options
@document_options
@search_options
@SHORTLIST
@MAX_LENGTH
@batch_size()
def predict(
    models,
    source,
    target,
    shard,
    n_best,
    max_length,
    batch_size,
    shortlist,
    source_language,
    target_language,
    **options,
) -> None:
    """Answer each input line with one output line, in order.

    `predict` and `translate` are two names of this command.

    The task of MODEL determines whether the answer is a translation, a summary, a label or a
    continuation of the text. MODEL is a run, a SavedModel, a .tflite file, an .onnx file or a
    folder for CTranslate2. A run supports all options of its task. An export supports only the
    options that it was exported with.

    For recordings and images, an input line is the path of a file. You can also give the paths as
    FILE after MODEL. A recording longer than the model's limit is processed in windows.

    Several runs form an ensemble, which uses the mean of their probabilities or of their predicted
    values.

    A bad line, such as one that is not UTF-8 or that names an unreadable image, gets an empty
    answer and a warning. In a time series, a bad line is an error, because later answers depend on
    it. No answers are then written for the block of 2,048 lines that contains the bad line.

    With --split-sentences or --format, the input is a document, whose sentences are translated.
    """
    refuse_together()
    document, options = without_documents(options)
    wanted = make_search(n_best=n_best, **options)
    answers = settings_of_answers(options)
    models, files = split_files(models)
    places = InputOutput(source, files, target, shard, options["stream"], options["subtitles"])
    places.check()
    with places.streams() as (lines, output):
        search = open_lines(
            models,
            wanted,
            n_best,
            max_length,
            options["alignments"],
            batch_size,
            shortlist,
            languages=(source_language, target_language),
            answers=answers,
        )
        check_files(search, files)
        how = {"batch_size": batch_size, "strict": options["strict"]}
        _write(search, lines, output, places, document, n_best, options, how)


def _write(search, lines, output, places, document, n_best, options, how):
    """Writes the answers in the form that the options choose."""
    if places.stream:
        return _write_stream(search, lines, output)
    if document is not None:
        with places.shown_count(lines) as progress:
            return write_document(
                search, lines, output, warn, document, how["batch_size"], progress
            )
    how["bounds"] = places.bounds
    if places.subtitles:
        from keras_transformer.cli.subtitles import write_subtitles

        words = options["words"]
        kind = places.subtitles
        return write_subtitles(search, lines, places.target, output, warn, kind, words=words, **how)
    if options["sort"]:
        return _write_sorted(search, lines, output, how)
    from keras_transformer.opening.stream import answer_stream

    window = 1 if lines.isatty() else WINDOW
    form = _line_format(n_best, options)
    with places.shown_count(lines, places.total) as progress:
        answer_stream(
            search, lines, output, warn, window=window, form=form, progress=progress, **how
        )


def _line_format(n_best, options):
    """Returns the `LineFormat` that the options choose."""
    from keras_transformer.opening.lines import LineFormat

    return LineFormat(
        numbers=n_best is not None,
        scores=options["scores"] or n_best is not None,
        alignments=options["alignments"],
        token_scores=bool(options["token_scores"]),
        timestamps=bool(options["timestamps"] or options["words"]),
        words=bool(options["words"]),
        nothing="[]" if options["spans"] else "{}" if options["probabilities"] else "",
    )


def _write_sorted(search, lines, output, how):
    """Writes the lines sorted by their scores."""
    from keras_transformer.cli.sorted_lines import write_sorted

    codec = getattr(search.answering, "codec", None)
    if not getattr(codec, "sorts", False):
        raise click.UsageError("--sort needs a model for scoring or late_interaction as MODEL.")
    write_sorted(search, lines, output, warn, **how)


def _write_stream(search, source, target):
    """Answers a recording that arrives on stdin."""
    from keras_transformer.cli.sound_stream import transcribe_stream

    recognizer = getattr(search, "answering", None)
    if not hasattr(recognizer, "stream"):
        raise click.UsageError("--stream needs a run for speech_recognition as MODEL.")
    click.echo(f"reading {recognizer.sample_rate:,} samples of 16 bits a second", err=True)
    transcribe_stream(recognizer, source, target, warn)
