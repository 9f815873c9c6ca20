"""Where `predict` reads lines and writes the answers: options, checks and streams."""

import contextlib
import dataclasses
import io
import os
import pathlib
import sys
from collections.abc import Callable, Generator
from typing import Any, BinaryIO

import click

from keras_transformer.cli.command import EXISTING_FILE, STRICT, given, refuse, standard
from keras_transformer.cli.command import shard as shard_option
from keras_transformer.cli.fixed_options import WORDING
from keras_transformer.cli.help import add_options, option
from keras_transformer.cli.outputs import OUTPUT
from keras_transformer.cli.places import check_folder, check_output
from keras_transformer.cli.search_options import BEAMS
from keras_transformer.files import replacing
from keras_transformer.native_code import ends_promptly
from keras_transformer.shards import Shard
from keras_transformer.text.lines import require_regular

# Suffixes of inputs that may be named after MODEL; see `Codec.suffixes`. No model reads the last
# ones, but then the error names what it reads.
FILES = (".wav", ".flac", ".png", ".jpg", ".jpeg", ".mp3", ".m4a", ".ogg", ".opus")
# Options that have no effect on a recording that arrives on stdin.
OF_LINES = ("source", "shard", "scores", "strict", "batch_size", "windows")
# Options that write the usual answers, or more about them.
OF_ANSWERS = ("scores", "n_best", "alignments", "stream")
# An option, those that have no effect beside it, and why.
EXCLUDED = (
    ("alignments", WORDING, ""),
    ("alignments", (*BEAMS, "n_best", "sample", "ctc"), ", which uses greedy search"),
    ("timestamps", OF_ANSWERS, ""),
    ("subtitles", (*OF_ANSWERS, "timestamps"), ""),
    ("sort", (*OF_ANSWERS, "timestamps", "subtitles", "shard"), ""),
    ("n_best", ("scores",), ", which writes them"),
    ("words", (*OF_ANSWERS, "timestamps"), ""),
)
GROUP = "Input and output"


OPTIONS = (
    option(
        "--input",
        "source",
        type=EXISTING_FILE,
        group=GROUP,
        help="File of lines to answer.  [default: stdin]",
    ),
    option(
        "--output",
        "target",
        type=OUTPUT,
        group=GROUP,
        help="File to write when all lines are answered. Its folder must exist. With --subtitles, "
        "a folder for the files of several recordings.  [default: stdout]",
    ),
    option(
        "--stream",
        is_flag=True,
        group=GROUP,
        help="In speech recognition: read raw samples from stdin, and write words as soon "
        "as they are final. Samples are little-endian integers of 16 bits, in one channel, "
        "at the sample rate of MODEL.",
    ),
    option(
        "--scores",
        is_flag=True,
        group=GROUP,
        help="Write a score and a tab before each answer. The score is the natural logarithm of "
        "the answer's probability; in beam search, it is divided by the length penalty. For an "
        "empty line, the score is 0.",
    ),
    option(
        "--alignments",
        is_flag=True,
        group=GROUP,
        help="Write a tab and pairs i-j after each translation: word j of the translation "
        "attended most to word i of the source. Words are separated by spaces and counted "
        "from 0.",
    ),
    option(
        "--token-scores",
        is_flag=True,
        default=None,
        group=GROUP,
        help="Write a tab and a JSON list after each answer. The list contains pairs: a "
        "token, as the vocabulary writes it, and the natural logarithm of its probability.",
    ),
    STRICT,
    shard_option(
        "Divide the lines of --input into N parts, numbered from 0, and answer only part I. The "
        "outputs of all parts, one after the other, are the output for the whole file.",
        group=GROUP,
    ),
)


def input_output_options(command) -> Any:
    """Adds the options for input and output to a command."""
    return add_options(command, *OPTIONS)


def refuse_together() -> None:
    """Refuses options that have no effect beside others.

    Raises:
        click.UsageError: If the command line sets such options.
    """
    for name, others, reason in EXCLUDED:
        if given(name):
            refuse(others, f"has no effect with --{name.replace('_', '-')}{reason}.")


def split_files(paths) -> tuple[list[pathlib.Path], list[pathlib.Path]]:
    """Returns the paths of models, and those of input files, which come after them."""
    files = [path for path in paths[1:] if path.suffix.lower() in FILES]
    return [path for path in paths if path not in files], files


@dataclasses.dataclass(frozen=True)
class InputOutput:
    """Where lines come from and where their answers go.

    Args:
        source: File of lines. `None`: stdin.
        files: Inputs that are named on the command line, in place of lines.
        target: File of the answers. `None`: stdout. With `subtitles`, also a folder.
        shard: Part of the lines of `source` to answer. `None`: all.
        stream: Whether stdin is a recording.
        subtitles: Format of subtitles, or `None`.
    """

    source: pathlib.Path | None
    files: list[pathlib.Path]
    target: pathlib.Path | None
    shard: Shard | None = None
    stream: bool = False
    subtitles: str | None = None

    def check(self) -> None:
        """Checks that the options fit together and that the answers can be written.

        Raises:
            click.UsageError: If an option has no effect or lacks another one.
            ValueError: If a path does not exist or cannot be written.
        """
        if self.stream:
            refuse(OF_LINES, "has no effect with --stream, which reads one recording.")
            if self.files:
                raise click.UsageError(f"--stream reads stdin: {self.files[0]} has no effect.")
        if self.files:
            refuse(["source", "shard"], "has no effect with FILEs after MODEL.")
        if self.shard is not None:
            if self.source is None:
                raise click.UsageError("--shard needs --input: the lines of a file can be counted.")
            require_regular(self.source)
        if self.target is not None:
            self._check_target(self.target)

    def _check_target(self, target):
        if target.is_dir():
            if not self.subtitles:
                raise click.UsageError(f"{target} is a directory: --output is a file.")
            check_folder(target)
            return
        check_output(target, *([f".{self.subtitles}"] if self.subtitles else []))
        if not target.parent.is_dir():
            raise ValueError(f"{target.parent} does not exist: create it first.")

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Indices of the first line to answer and of the line after the last. `None`: all lines."""
        return None if self.shard is None else self.shard.bounds(_count(self.source))

    @property
    def total(self) -> int | None:
        """Number of lines to answer, `None` if it is unknown."""
        if self.bounds is not None:
            begin, end = self.bounds
            return end - begin
        if self.files:
            return len(self.files)
        return _count(self.source) if self.source is not None and self.source.is_file() else None

    @contextlib.contextmanager
    def streams(self) -> Generator[tuple[BinaryIO, BinaryIO]]:
        """Opens the input and the output.

        Subtitles for a `target` have files of their own, and their output is stdout. A signal
        ends the block soon; with `stream` it only ends the recording.
        """
        with contextlib.ExitStack() as stack:
            if not self.stream:
                stack.enter_context(ends_promptly(*self._places()))
            lines = stack.enter_context(self._input())
            yield lines, stack.enter_context(_output(None if self.subtitles else self.target))

    def _places(self):
        """Returns the paths in which a draft may lie when a signal arrives."""
        if self.target is None:
            return []
        return [os.path.dirname(self.target) or ".", *([self.target] if self.subtitles else [])]

    @contextlib.contextmanager
    def _input(self):
        if self.files:
            yield io.BytesIO(b"".join(os.fsencode(file) + b"\n" for file in self.files))
        elif self.source is None:
            yield standard("stdin")
        else:
            with open(self.source, "rb") as file:
                yield file

    def shown_count(
        self, lines, total=None
    ) -> contextlib.AbstractContextManager[Callable[[int], Any]]:
        """Returns a context whose function shows the number of answers, if that is useful.

        A person who types lines, or sees the answers on the same terminal, needs no progress.

        Args:
            lines: The opened input.
            total: Number of answers, `None` if it is unknown.
        """
        shares_terminal = lines.isatty() or self.target is None and sys.stdout.isatty()
        if shares_terminal or not sys.stderr.isatty():
            return contextlib.nullcontext(lambda count: None)
        from keras_transformer.cli.progress import counted_lines

        return counted_lines(total)


def _count(path):
    """Returns the number of lines of a file."""
    with open(path, "rb") as file:
        return sum(1 for _ in file)


@contextlib.contextmanager
def _output(path):
    """Yields a binary stream to stdout, or to a file that appears when everything is written."""
    if path is None:
        yield standard("stdout")
    else:
        with replacing(path) as draft, open(draft, "wb") as file:
            yield file
