"""Time of `.tflite` files with loops and without: the search in the file, or repeated by a program.

    python benchmarks/unrolled.py LOOPS.tflite UNROLLED.tflite SENTENCES

Both files hold one model, exported by `keras-transformer export litert`, the second one with
`--unrolled`. Their searches translate the first lines of a file, one sentence at a time on one
thread, in turn for each sentence. Times are processor times of the process, which other programs on
the machine affect less than wall-clock times. Tokenization is not timed. The tokens of both must be
equal, and their scores must differ by at most 1e-4, otherwise no time is shown. No accelerator is
used: the figures show what calls and copies of the state cost on a processor.
"""

import collections
import json
import pathlib
import time

import click
import numpy as np
from command import RESULTS
from measurements import BenchmarkError, spread

from keras_transformer.export.litert.runtime import LiteRTTranslator

TOLERANCE = 1e-4  # of scores
FILE = click.Path(exists=True, dir_okay=False, path_type=pathlib.Path)


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("loops", type=FILE)
@click.argument("unrolled", type=FILE)
@click.argument("sentences", type=FILE)
@click.option("--count", type=click.IntRange(1), default=100, show_default=True,
              help="Number of sentences.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True,
              help="Number of times that all are translated.")
@RESULTS
# fmt: on
def main(loops, unrolled, sentences, count, repeats, output):
    """Compare LOOPS and UNROLLED, which translate the first lines of the file SENTENCES."""
    sentences = sentences.read_text("utf-8").split("\n")[:count]
    files = {"loops": loops, "unrolled": unrolled}
    try:
        results = measure(files, sentences, repeats)
    except (BenchmarkError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    print("| file | MB | ms for a sentence |\n|---|---|---|")
    for name, path in files.items():
        median = 1000 * results[name]["seconds"]["median"]
        print(f"| {name} | {path.stat().st_size / 1e6:.2f} | {median:.2f} |")
    print(f"{results['sentences']} sentences of {results['tokens']:.1f} tokens on average")
    if output is not None:
        output.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def measure(files, sentences, repeats):
    """Returns the seconds for a sentence by the name of the file, after comparing the outputs.

    Args:
        files: Dictionary from names to paths.
        sentences: List of strings.
        repeats: Number of times that all sentences are translated.

    Raises:
        BenchmarkError: If the tokens or the scores differ.
    """
    opened = {name: LiteRTTranslator(path) for name, path in files.items()}
    encoded = next(iter(opened.values())).tokenizers.source.encode(sentences).to_list()
    found = {name: [one.decode([ids]) for ids in encoded] for name, one in opened.items()}
    tokens, scores = (
        [np.concatenate([pair[part] for pair in pairs]) for pairs in found.values()]
        for part in (0, 1)
    )
    different = int(np.any(tokens[0] != tokens[1], axis=(1, 2)).sum())
    if different:
        raise BenchmarkError(f"{different} of {len(sentences)} outputs have other tokens.")
    if not np.allclose(*scores, rtol=0, atol=TOLERANCE):
        raise BenchmarkError(f"Scores differ by {np.abs(scores[0] - scores[1]).max():.1e}.")
    seconds = collections.defaultdict(list)
    for repeat in range(repeats):
        total = collections.Counter()
        for number, ids in enumerate(encoded):
            names = [*opened] if (repeat + number) % 2 else [*reversed(opened)]
            for name in names:
                begin = time.process_time()
                opened[name].decode([ids])
                total[name] += time.process_time() - begin
        for name in opened:
            seconds[name].append(total[name] / len(encoded))
    return {
        "sentences": len(sentences),
        "tokens": float(np.mean(np.count_nonzero(tokens[0], axis=-1))),
        **{name: {"seconds": spread(times)} for name, times in seconds.items()},
    }


if __name__ == "__main__":
    main()
