"""Time and memory of the first answer: a process that opens a model and answers one text.

    python benchmarks/first_answer.py runs/minilm minilm.tflite minilm.onnx --repeats 5

Each model is opened by `keras-transformer predict` and by a Python program. The table has the
fastest of the repeats, for which the files are in the disk cache, and the processor time of the
process, on which other programs have less effect. `--before` runs a shell command before each
process, such as one that empties Linux's disk cache, as root:

    python benchmarks/first_answer.py x.tflite --before "echo 3 > /proc/sys/vm/drop_caches"
"""

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import click

# Memory is read in the process: what `wait4` reports is at least that of this one.
REPORT = """
import atexit, sys
def report():
    with open("/proc/self/status") as file:
        peak = next(line.split()[1] for line in file if line.startswith("VmHWM"))
    sys.stderr.write("\\nMODULES " + " ".join([peak, *sys.modules]))
atexit.register(report)
"""
CODES = {
    "command": "from keras_transformer.cli.main import main; main()",
    "Python": "import keras_transformer\nprint(keras_transformer.open(sys.argv[2])(sys.argv[3]))",
}
HEAVY = ("tensorflow", "keras", "tensorflow_text", "scipy", "pydantic", "rich", "jinja2")


@dataclasses.dataclass(frozen=True)
class First:
    """Measurements of a process.

    Args:
        seconds: Time from its start to its end.
        processor_seconds: Processor time, in the kernel as well.
        megabytes: Peak memory.
        modules: Names of the modules that it has imported.
    """

    seconds: float
    processor_seconds: float
    megabytes: float
    modules: tuple


def first_answer(how, model, text, before=None) -> First:
    """Measures a process that opens a model and answers a text.

    Args:
        how: `"command"` or `"Python"`.
        model: Path of the model.
        text: The text.
        before: Shell command to run first, which is not measured.

    Raises:
        click.ClickException: If the process or the command before it fails.
    """
    if before and subprocess.run(before, shell=True).returncode:
        raise click.ClickException(f"--before: {before!r} failed.")
    arguments = ["predict", str(model), *([text] if how == "Python" else [])]
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:  # a pipe would fill up
        process = subprocess.Popen(
            [sys.executable, "-c", REPORT + CODES[how], *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        process.stdin.write(f"{text}\n")
        process.stdin.close()
        answer = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        errors.seek(0)
        log = errors.read()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not answer.strip():
        raise click.ClickException(f"{model}: {log.strip() or 'no answer'}")
    peak, *modules = log.rpartition("MODULES ")[2].split()
    used = usage.ru_utime + usage.ru_stime
    return First(seconds, used, int(peak) / 1024, tuple(modules))


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option("--text", default="A dog runs through the park.", help="The text to answer.")
@click.option("--repeats", default=5, help="Number of processes for each row.")
@click.option("--before", metavar="COMMAND", help="Shell command to run before each process.")
def main(models, text, repeats, before) -> None:
    """Prints a table of the first answers of MODELS."""
    titles = "model", "by", "seconds", "processor seconds", "MB", "modules", "heavy modules"
    print(*titles, sep=" | ")
    print(*["---"] * len(titles), sep=" | ")
    for model in models:
        for how in CODES:
            rows = [first_answer(how, model, text, before) for _ in range(repeats)]
            heavy = [name for name in HEAVY if name in rows[0].modules]
            print(
                model.name, how, f"{min(row.seconds for row in rows):.2f}",
                f"{min(row.processor_seconds for row in rows):.2f}",
                f"{max(row.megabytes for row in rows):.0f}", len(rows[0].modules),
                ", ".join(heavy) or "none", sep=" | ", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
