"""Options of `predict` that change the answers of a model."""

from typing import Any

import click

from keras_transformer.cli.command import EXISTING_FILE, NumberList
from keras_transformer.cli.fixed_options import ANSWERS, WORDS
from keras_transformer.cli.help import add_options, option
from keras_transformer.cli.numbers import LimitedNumber
from keras_transformer.cli.voice_activity import VOICE_ACTIVITY
from keras_transformer.cli.wording import BANNED, PREFIX, wording
from keras_transformer.cli.wording import WORDS as HEADING
from keras_transformer.options import SUBTITLES, WINDOWS

OPTIONS = (
    option(
        "--glossary",
        type=EXISTING_FILE,
        group=HEADING,
        help="File of terms. Each line has a source term, a tab and a target term. If an "
        "input contains the source term, its output contains the target term. If several "
        "lines have the same source term, their target terms are alternatives: the output "
        "contains at least one of them. Without --beam, the beam is the run's own, but has "
        "at least 10 hypotheses.",
    ),
    BANNED,
    PREFIX,
    option(
        "--prefixes",
        type=EXISTING_FILE,
        group=HEADING,
        help="File with the beginning of each output, one per input line. An empty line "
        "means no beginning.",
    ),
    option(
        "--source-language",
        metavar="CODE",
        group="Languages",
        help="For a multilingual MODEL: language of the lines, such as deu_Latn. In speech "
        "recognition: language of the recordings, such as de or german; auto detects the "
        "language.  [default: the MODEL's own]",
    ),
    option(
        "--target-language",
        metavar="CODE",
        group="Languages",
        help="For a multilingual MODEL: language of the translations. In speech recognition: the "
        "source language for a transcript, or English for a translation.  [default: the MODEL's "
        "own]",
    ),
    option(
        "--no-answer/--always-answer",
        default=None,
        group="Answers",
        help="In question answering: leave an answer empty if its probability is below the "
        "probability that the passage contains no answer.  [default: the run's own setting]",
    ),
    option(
        "--dimensions",
        type=LimitedNumber(int, 1),
        metavar="N",
        group="Answers",
        help="In sentence embeddings: write only the first N numbers of each vector. If the run's "
        "vectors have unit length, the shorter vectors are scaled to unit length.  [default: all]",
    ),
    option(
        "--max-active",
        type=LimitedNumber(int, 1),
        metavar="N",
        group="Answers",
        help="In sparse embeddings: write at most N tokens, the ones with the largest weights.  "
        "[default: the run's own limit, 256 unless it was changed]",
    ),
    option(
        "--prompt",
        metavar="NAME",
        group="Answers",
        help="In embeddings of texts: name of the prompt in front of each line, such as query, or "
        "an empty string for none.  [default: the prompt of the checkpoint, mostly none]",
    ),
    option(
        "--sort",
        "sort",
        is_flag=True,
        default=None,
        group="Answers",
        help="In scoring of pairs and late interaction: write the score, a tab and the line, "
        "sorted by score. The passages of each query are sorted separately, the best first; "
        "queries keep the order of the input.",
    ),
    option(
        "--spans",
        is_flag=True,
        default=None,
        group="Answers",
        help="In token classification of raw texts: write the entities of each line as a JSON "
        "list. Each entity has a label, its start and end in characters of the line, a score and "
        "its text.",
    ),
    option(
        "--threshold",
        type=LimitedNumber(float, 0, 1),
        metavar="P",
        group="Answers",
        help="In classification with several labels: write the labels whose probability is at "
        "least P.  [default: the run's own threshold]",
    ),
    option(
        "--probabilities",
        is_flag=True,
        default=None,
        group="Answers",
        help="In classification with several labels: write each answer as a JSON object with the "
        "labels and their probabilities, the highest first. With --threshold 0, the object "
        "contains all labels.",
    ),
    option(
        "--hops",
        is_flag=True,
        default=None,
        group="Answers",
        help="In questions about stories: write each answer as a JSON object, with the "
        "sentences and the attention that each hop of a memory network gives them.",
    ),
    option(
        "--timestamps",
        is_flag=True,
        default=None,
        group="Answers",
        help="In speech recognition: write a line for each segment of a recording. The "
        "fields, separated by tabs, are the number of the input line, start and end in "
        "seconds, and the text.",
    ),
    option(
        "--words",
        is_flag=True,
        default=None,
        group="Answers",
        help="In speech recognition with Whisper: like --timestamps, but with a line for each "
        "word. With --subtitles, write a subtitle for each word.",
    ),
    option(
        "--subtitles",
        type=click.Choice([*SUBTITLES]),
        group="Answers",
        help="In speech recognition: write the segments of a recording as SubRip, WebVTT or "
        "JSON. Several recordings need a folder as --output, where a.wav becomes a.srt, a.vtt "
        "or a.json.",
    ),
    option(
        "--no-speech-threshold",
        type=LimitedNumber(float, 0, 1),
        metavar="P",
        group="Answers",
        help="In speech recognition with Whisper: leave out the text of a recording, or of a "
        "window of a long recording, if the text is improbable and the probability that nobody "
        "speaks is above P. 1 leaves out no text.  [default: the threshold of the checkpoint, "
        "mostly 0.6]",
    ),
    option(
        "--log-probability-threshold",
        type=float,
        metavar="X",
        group="Answers",
        help="For --no-speech-threshold, a text is improbable if the mean log-probability of its "
        "tokens is below X.  [default: the threshold of the checkpoint, mostly -1]",
    ),
    option(
        "--compression-ratio-threshold",
        type=LimitedNumber(float, above=0),
        metavar="R",
        group="Answers",
        help="In speech recognition with Whisper: warn that a text repeats itself if zlib "
        "compresses it to less than 1/R of its bytes.  [default: the threshold of the checkpoint, "
        "mostly 2.4]",
    ),
    option(
        "--windows",
        type=click.Choice([*WINDOWS]),
        group="Answers",
        help="In speech recognition: how a long recording is read. overlap: windows "
        "overlap, and their texts are joined where they agree; timestamps, with Whisper: a "
        "window begins where the last complete segment ended; context: like timestamps, "
        "but MODEL also reads the text before the window.  [default: timestamps with "
        "Whisper, otherwise overlap]",
    ),
    option(
        "--temperatures",
        type=NumberList(),
        metavar="T,T,...",
        group="Answers",
        help="In speech recognition with Whisper: transcribe a window again if its text "
        "repeats itself or is improbable. These temperatures, such as 0.2,0.4,0.6,0.8,1, "
        "are tried one after the other until the text is good enough.  [default: none]",
    ),
    VOICE_ACTIVITY,
)


def answer_options(command) -> Any:
    """Adds the options of answers to a command."""
    return add_options(command, *OPTIONS)


def settings_of_answers(options) -> dict[str, Any]:
    """Returns the settings of answers that options choose, by name.

    Args:
        options: Dictionary of the values of a command's options; those that are not set are `None`.
    """
    segments = options["timestamps"] or options["subtitles"] and not options["words"]
    values = {name: options[name] for name in ANSWERS if name not in WORDS}
    values["timestamps"] = True if segments else None
    values |= wording(**{name: options[name] for name in WORDS})
    return {name: value for name, value in values.items() if value is not None}
