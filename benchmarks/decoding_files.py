"""The files that users get: a run, and what `keras-transformer export` makes of it.

Made in processes of their own, so that no peer shares its process with a framework that it does not
need. Every peer of ours, and CTranslate2, reads a file that a command has written.
"""

import pathlib
import subprocess
import sys

import numpy as np
from decoding_task import SOURCE_LENGTH, WEIGHTS, Case, Model, build, vocabulary, words
from figures import BenchmarkError

SENTENCES = 4  # that an export is checked with: the weights are random


class Files:
    """What `make` returns; there is nothing to run."""

    def __init__(self, facts):
        self.facts = facts


def make(order):
    """Writes the weights and a run; returns what has no file as facts."""
    from keras_transformer.tasks.run import Run

    model, folder = Model(**order["model"]), pathlib.Path(order["folder"])
    transformer = build(model)
    np.savez(folder / WEIGHTS, **{weight.path: weight.numpy() for weight in transformer.weights})
    run = Run(folder / "run")
    run.path.mkdir()
    transformer.save(run.model)
    run.tokenizer.write_bytes(vocabulary(model))
    run.update_metrics(parameters=transformer.count_params())
    rows = Case(1, SENTENCES, model.length).sources(model)
    lines = "".join(f"{words(row)}\n" for row in rows)
    (folder / "sentences.txt").write_text(lines, "utf-8")
    return Files({"parameters": transformer.count_params()})


def commands(model, folder, kinds, searches, batch_sizes):
    """Returns the commands that write files of some kinds: lists of arguments.

    Args:
        model: A `Model`.
        folder: Where `make` has written its run.
        kinds: Pairs of a kind of export, `saved-model`, `litert` or `ctranslate2`, and of how it
            computes: `none`, `int8` or, for a SavedModel, `jit`.
        searches: Increasing sizes of the beams; 1 is greedy search.
        batch_sizes: Increasing numbers of sentences at a time.
    """
    beams = [str(size) for size in searches if size > 1]
    sizes = ",".join(str(size) for size in batch_sizes)
    shapes = ["--batch-sizes", sizes, "--lengths", f"{SOURCE_LENGTH},{model.max_length}"]
    beam = ["--beam", beams[0], "--n-best", "1"] if beams else ["--greedy"]
    chosen = []
    for kind, how in kinds:
        options = ["--sentences", str(folder / "sentences.txt")]
        if kind != "ctranslate2":
            options += beam
        if how == "jit" or kind == "litert":
            options += shapes
        if how == "jit":
            options += ["--jit"]
        elif how != "none":
            options += ["--quantize", how, *LENIENT]
        target = path_of(folder, kind, how)
        chosen.append(["export", kind, str(folder / "run"), str(target), *options])
    return chosen


# Of random weights there is no quality to lose; the report says how many tokens agree.
LENIENT = ["--max-score-loss", "1000"]


def path_of(folder, kind, how):
    """Returns where the file of a kind is."""
    name = f"{kind}_{how}" + (".tflite" if kind == "litert" else "")
    return pathlib.Path(folder, name)


def run_command(arguments):
    """Runs a command of this package.

    Raises:
        BenchmarkError: If it fails, with its last line.
    """
    command = [sys.executable, "-m", "keras_transformer", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise BenchmarkError(f"keras-transformer {' '.join(arguments)}: {lines[-1:]}")
