"""Exported files of one model in headless Chromium and in Python, one sentence at a time.

    python benchmarks/browser.py model.tflite model.onnx --source test.en

Every file is opened by the program of `examples/browser`, in a page of its own, and by
`keras_transformer.open`. Each translates the same sentences on their own, from text to text. The
translations of the page are compared with those of the same file in Python. All files run in turn
on one core, and each repeat begins with another one. Times are processor times of Python and of the
page's process, which other programs on the machine affect less than wall-clock times. Needs Linux,
Node, Chromium, and `npm install` in `examples/browser`.
"""

import collections
import contextlib
import json
import os
import pathlib
import tempfile
import time

import click
from command import RESULTS, describe_machine, versions
from measurements import BenchmarkError, spread
from student_parts.browser import Page, missing
from workers import processors

import keras_transformer

PACKAGES = ("keras", "tensorflow", "ai-edge-litert", "onnxruntime")
PLACES = ("chromium", "python")


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True,
                type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False))
@click.option("--source", required=True,
              type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False),
              help="Text file with a sentence on each line.")
@click.option("--sentences", type=click.IntRange(1), default=50, show_default=True,
              help="Number of sentences, the first ones of the file.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True,
              help="Number of repeats.")
@RESULTS
# fmt: on
def main(files, source, sentences, repeats, output):
    """Translate sentences with FILES, .tflite or .onnx, in Chromium and in Python."""
    if lacking := missing():
        raise click.ClickException(f"Chromium cannot run the page: {lacking} is missing.")
    texts = source.read_text("utf-8").splitlines()[:sentences]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, processors(1))
    try:
        rows = measure(files, texts, repeats)
    except (BenchmarkError, RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    report = {
        "machine": describe_machine(1), "versions": versions(PACKAGES), "sentences": len(texts),
        "repeats": repeats, "rows": rows,
    }  # fmt: skip
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(table(rows))


class InPython:
    """A file that `keras_transformer.open` opens.

    Args:
        path: The file.
        texts: The sentences, a list of strings.

    Attributes:
        answers: Their translations, a list of strings.
    """

    def __init__(self, path, texts):
        self._opened, self._texts = keras_transformer.open(path), texts
        self.answers = self._translations()

    def run(self, steps):
        """Translates all sentences `steps` times; returns the processor time."""
        begin = time.process_time()
        for _ in range(steps):
            self._translations()
        return {"page_seconds": time.process_time() - begin}

    def _translations(self):
        return [self._opened([text])[0] for text in self._texts]


def measure(files, texts, repeats):
    """Returns a dictionary of results for each file; times are seconds for a sentence."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        engines = {}
        for path in files:
            print(f"opening {path.name}", flush=True)
            order = {"engine": "alone", "files": [str(path)], "folder": folder}
            page = stack.enter_context(contextlib.closing(Page(order, texts)))
            engines |= {(path, "chromium"): page, (path, "python"): InPython(path, texts)}
        seconds = interleaved(engines, repeats)
    return [
        {
            "file": path.name, "bytes": path.stat().st_size,
            "same": share(*(engines[path, place].answers for place in PLACES)),
            **{place: spread([one / len(texts) for one in seconds[path, place]])
               for place in PLACES},
        }
        for path in files
    ]  # fmt: skip


def interleaved(engines, repeats):
    """Returns the processor time of each engine for all sentences, in each repeat, in seconds."""
    seconds, ring = collections.defaultdict(list), collections.deque(engines)
    for repeat in range(repeats):
        print(f"repeat {repeat + 1} of {repeats}", flush=True)
        for name in ring:
            seconds[name].append(engines[name].run(1)["page_seconds"])
        ring.rotate(-1)
    return seconds


def share(ours, theirs):
    """Returns the fraction of equal texts."""
    return sum(one == other for one, other in zip(ours, theirs, strict=True)) / len(ours)


def table(rows):
    """Returns the results as a table in Markdown."""
    titles = ["file", "MB", "ms a sentence in Chromium", "in Python", "equal"]
    lines = [titles, ["---"] * len(titles)]
    lines += [
        [
            f"`{row['file']}`", f"{row['bytes'] / 1e6:.2f}",
            *(f"{1000 * row[place]['median']:.1f}" for place in PLACES), f"{row['same']:.1%}",
        ]
        for row in rows
    ]  # fmt: skip
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
