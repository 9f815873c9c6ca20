"""Time to the first token and tokens per second of the page for chats, in headless Chromium.

    python benchmarks/chat_browser.py model.onnx model.tflite

The files were exported with `--streaming` from an instruct model. Each is opened by the program of
`examples/browser` in a page of its own, on one core, and by `keras_transformer.open`. Both continue
the prompt of the same message by greedy search; the tokens of the page are compared with those of
Python. Times are those of the page's clock, medians of the repeats. Needs Node, Chromium, and `npm
install` in `examples/browser`.
"""

import contextlib
import json
import os
import pathlib
import statistics
import tempfile

import click
from command import RESULTS, describe_machine, versions
from measurements import BenchmarkError, spread
from student_parts.browser import Page, missing
from workers import processors

import keras_transformer
from keras_transformer.decoding import Greedy
from keras_transformer.pipelines import Chat

PACKAGES = ("keras", "tensorflow", "ai-edge-litert", "onnxruntime")


# fmt: off
@click.command(context_settings={"show_default": True})
@click.argument("files", nargs=-1, required=True,
                type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False))
@click.option("--message", default="Why is the sky blue?", help="Message of the user.")
@click.option("--tokens", default=32, type=click.IntRange(2), help="Number of new tokens.")
@click.option("--repeats", default=3, type=click.IntRange(1), help="Number of repeats.")
@RESULTS
# fmt: on
def main(files, message, tokens, repeats, output):
    """Answer a message with FILES, .onnx or .tflite, in Chromium and in Python."""
    if lacking := missing():
        raise click.ClickException(f"Chromium cannot run the page: {lacking} is missing.")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, processors(1))
    try:
        rows = [row_of(path, message, tokens, repeats) for path in files]
    except (BenchmarkError, RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    report = {"machine": describe_machine(1), "versions": versions(PACKAGES), "rows": rows}
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def row_of(path, message, tokens, repeats):
    """Returns the results of a file, which are also printed."""
    order = json.dumps({"content": message, "tokens": tokens})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        given = {"engine": "chat", "files": [str(path.resolve())], "folder": folder}
        # The first answer is that of a cold page.
        with contextlib.closing(Page(given, [order] * (repeats + 1))) as page:
            answers = [json.loads(answer) for answer in page.answers][1:]
    row = {"file": path.name, "bytes": path.stat().st_size, **summary(answers)}
    chat = Chat(keras_transformer.open(path), search=Greedy(tokens))
    ids = chat.ids([{"role": "user", "content": message}])
    expected = [*chat._text.generate(ids, chat.search)]
    row["equal"] = equal_tokens(answers[0]["tokens"], expected)
    print(
        f"{path.name}: prompt of {row['prompt_tokens']} tokens, first token after "
        f"{row['seconds_to_first']['median']:.2f} s, then "
        f"{row['tokens_per_second']['median']:.1f} tokens/s; the first {row['equal']} of "
        f"{len(expected)} tokens are those of Python; answer: {answers[0]['text']!r}"
    )
    return row


def equal_tokens(tokens, expected):
    """Returns the number of the first tokens that are equal."""
    pairs = enumerate(zip(tokens, expected, strict=False))
    fewest = min(len(tokens), len(expected))
    return next((place for place, (one, other) in pairs if one != other), fewest)


def summary(answers):
    """Returns the results of equal answers of a page.

    Args:
        answers: List of dictionaries of the number of tokens of the `prompt`, the `tokens`, and the
            `times` in milliseconds: of the beginning and of each token.
    """
    if len({tuple(answer["tokens"]) for answer in answers}) > 1:
        raise BenchmarkError("the page has other tokens when it answers again.")
    times = [answer["times"] for answer in answers]
    return {
        "prompt_tokens": statistics.median(answer["prompt"] for answer in answers),
        "seconds_to_first": spread([(first - begin) / 1000 for begin, first, *_ in times]),
        "tokens_per_second": spread(
            [1000 * (len(all_) - 2) / (all_[-1] - all_[1]) for all_ in times]
        ),
    }


if __name__ == "__main__":
    main()
