"""Parameters, memory and speed of the presets, each with a vocabulary of its usual size.

    python benchmarks/presets.py --presets tiny,base

Each preset trains in one process and translates in another, on one core. Training uses batches of
4,096 source and 4,096 target tokens, in sentences of 32 tokens, padding included. Translation is
greedy search in float32 for one sentence of 32 tokens, with an output of 32 tokens. Memory is the
peak of the process beyond that of the imported libraries. Speed is measured in processor time of
the process, which other programs on the machine affect less than wall-clock time.
"""

import json

import click
import rich.console
import rich.table
from command import RESULTS, describe_machine, names, versions
from measurements import BenchmarkError
from workers import Worker

VOCABULARIES = {
    "tiny": 4_000,
    "small": 8_000,
    "student_tiny": 32_000,
    "student_base_memory": 32_000,
    "base": 37_000,
    "big": 37_000,
}
LENGTH, BATCH_TOKENS = 32, 4096
STEPS = {"training": 2, "translation": 5}
PRECISIONS = ("float32", "mixed_bfloat16")


def measure(preset, phase, vocab_size, precision):
    """Returns the number of parameters, the memory beyond the libraries' and seconds per step."""
    order = {
        "preset": preset, "phase": phase, "vocab_size": vocab_size, "precision": precision,
        "length": LENGTH, "batch_tokens": BATCH_TOKENS,
    }  # fmt: skip
    with Worker(f"{preset}, {phase}", "preset_phases", order, cores=1) as worker:
        worker.run(1)  # traces the graph
        done = worker.run(STEPS[phase])
        return {
            "parameters": worker.metadata["parameters"],
            "peak_bytes": done["peak_bytes"] - worker.metadata["start_bytes"],
            "seconds": done["processor_seconds"] / STEPS[phase],
        }


# fmt: off
@click.command(context_settings={"show_default": True})
@click.option("--presets", callback=names(VOCABULARIES), default=",".join(VOCABULARIES),
              help="Presets to measure.")
@click.option("--vocab-size", type=click.IntRange(5),
              help="Size of the vocabulary of all presets. Default: the usual size of each.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="float32",
              help="Precision of training.")
@RESULTS
# fmt: on
def main(presets, vocab_size, precision, output):
    """Measure presets."""
    report = {"machine": describe_machine(1), "versions": versions(["tensorflow", "keras"]),
              "precision": precision, "presets": {}}  # fmt: skip
    table = rich.table.Table(rich.table.Column("preset", no_wrap=True))
    for title in ("vocabulary", "parameters", "training, MB", "target tokens/s",
                  "translation, MB", "ms for a sentence"):  # fmt: skip
        table.add_column(title, justify="right")
    for preset in presets:
        size = vocab_size or VOCABULARIES[preset]
        try:
            training, translation = (measure(preset, phase, size, precision) for phase in STEPS)
        except BenchmarkError as error:
            raise click.ClickException(str(error)) from error
        speed = BATCH_TOKENS / training["seconds"]
        report["presets"][preset] = {
            "vocab_size": size, "training": training, "translation": translation,
        }  # fmt: skip
        table.add_row(
            preset, f"{size:,}", f"{training['parameters']:,}",
            f"{training['peak_bytes'] / 1e6:,.0f}", f"{speed:,.0f}",
            f"{translation['peak_bytes'] / 1e6:,.0f}", f"{1000 * translation['seconds']:,.1f}",
        )  # fmt: skip
        print(f"{preset}: {training['parameters']:,} parameters", flush=True)
    if output is not None:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    console = rich.console.Console()
    console.width = max(console.width, 110)  # in a file, the default would be 80 columns
    console.print(table)


if __name__ == "__main__":
    main()
