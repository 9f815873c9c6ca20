"""Updates and searches of this package, compiled for TPUs and GPUs that this machine does not have.

    python -m venv JAX
    JAX/bin/pip install "jax[tpu]"                                    # for --chip v5e and others
    JAX/bin/pip install --no-deps jax-cuda12-plugin jax-cuda12-pjrt   # for --chip h100
    python benchmarks/accelerators.py extract base update base.hlo --rows 128 --length 32
    python benchmarks/accelerators.py compile base.hlo --chip v5e --jax-python JAX/bin/python

`extract` writes a program as TensorFlow hands it to XLA, and FILE.json with its counts. `compile`
compiles it in an environment with JAX, and prints a line of JSON: time, memory of the chip in
bytes, operations per token, all-reduces, and whether the chip overwrites variables in place. Sizes
are those that the compiler reports; nothing runs, so that nothing here is a speed.

Programs of several replicas contain all-reduces as under `TPUStrategy`, but are not its programs.
TensorFlow lowers its operations as for a processor.
"""

import json
import pathlib
import subprocess
import sys

import click
from measurements import BenchmarkError
from peers_python import versions_in

MODELS = ("tiny", "base", "big", "bert-base", "whisper-tiny")
PROGRAMS = ("update", "greedy", "beam", "prediction")
CHIPS = ("v4", "v5e", "v5p", "v6e", "h100")
COMPILER = pathlib.Path(__file__).with_name("accelerators_jax.py")
PATH = click.Path(dir_okay=False, path_type=pathlib.Path)
FILE = click.Path(dir_okay=False, exists=True, path_type=pathlib.Path)
MIB = 2**20


def facts_path(file):
    """Returns the path of the counts of a program."""
    return file.with_name(f"{file.name}.json")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main():
    """Compile programs of this package for TPUs and GPUs that this machine does not have."""


@main.command()
@click.argument("model", type=click.Choice(MODELS))
@click.argument("program", type=click.Choice(PROGRAMS))
@click.argument("file", type=PATH)
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=128,
    show_default=True,
    help="Sentences, texts or recordings in the batch of one replica.",
)
@click.option(
    "--length",
    type=click.IntRange(2),
    default=32,
    show_default=True,
    help="Tokens of each; in a search also the maximum length of outputs.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Devices that share an update.",
)
@click.option(
    "--precision", default="mixed_bfloat16", show_default=True, help="Dtype policy of Keras."
)
@click.option(
    "--chunk-mib",
    type=click.IntRange(1),
    help="Logits of an update that are in memory at a time; by default as in training.",
)
def extract(model, program, file, rows, length, replicas, precision, chunk_mib):  # fmt: skip
    """Write a program of a model into FILE."""
    if replicas > 1 and program != "update":
        raise click.UsageError("--replicas: only an update has several replicas.")
    if model == "bert-base" and program in ("greedy", "beam"):
        raise click.UsageError("bert-base generates no tokens: choose update or prediction.")
    if not file.parent.is_dir():
        raise click.UsageError(f"{file}: there is no folder {file.parent}.")
    from accelerator_counts import Counts
    from accelerator_programs import Batch, extract

    chunk = chunk_mib and chunk_mib * MIB
    content = extract(model, program, Batch(rows, length, replicas), precision, chunk)
    counts = Counts(content)
    facts = {
        "model": model, "program": program, "rows": rows, "length": length, "replicas": replicas,
        "precision": precision, "chunk_mib": chunk_mib, "updated": counts.updated,
        "flops": counts.flops, "flops_per_token": flops_per_token(counts, rows, length),
    }  # fmt: skip
    file.write_bytes(content)
    facts_path(file).write_text(json.dumps(facts) + "\n", encoding="utf-8")
    click.echo(json.dumps(facts))


def flops_per_token(counts, rows, length):
    """Returns operations for each token of a batch, or for each that a search generates.

    A search generates `length` tokens in each row; each step of it is as expensive as its last one.
    """
    steps = counts.steps[-1] if counts.steps else 0
    return round(counts.flops / (rows * length) + steps / rows)


@main.command("compile")
@click.argument("file", type=FILE)
@click.option("--chip", type=click.Choice(CHIPS), default="v5e", show_default=True)
@click.option("--jax-python", default=sys.executable, show_default="this Python",
              help='Python of an environment with JAX.')  # fmt: skip
def compile_file(file, chip, jax_python):
    """Compile the program in FILE for a chip; print a report as a line of JSON."""
    try:
        facts = json.loads(facts_path(file).read_text("utf-8"))
    except OSError as error:
        raise click.ClickException(
            f"{facts_path(file)} is missing: write {file} with `extract`."
        ) from error
    try:
        versions_in(jax_python, ["jax", "jaxlib"], 'pip install "jax[tpu]"')
    except BenchmarkError as error:
        raise click.ClickException(str(error).replace("--peers-python", "--jax-python")) from error
    order = [jax_python, str(COMPILER), chip, str(file), "--replicas", str(facts["replicas"])]
    done = subprocess.run(order, capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise click.ClickException(f"{file} for {chip}: {last[0]}")
    report = json.loads(done.stdout.splitlines()[-1])
    click.echo(json.dumps({**facts, "chip": chip, **report}))


if __name__ == "__main__":
    main()
