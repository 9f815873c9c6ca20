"""Files for the peers: a run, and the exports that `keras-transformer export` writes.

They are written in separate processes, so that no peer shares its process with a framework that it
does not need. Each of our own peers, and CTranslate2, reads a file written by a command.
"""

import pathlib
import subprocess
import sys

import numpy as np
from decoding_task import WEIGHTS, Case, Model, build, vocabulary, words
from measurements import BenchmarkError

SENTENCES = 4  # to check an export with; few, because the weights are random


class Files:
    """Result of `make` in a worker with nothing to run."""

    def __init__(self, metadata):
        self.metadata = metadata


def make(order):
    """Writes the weights and a run; the number of parameters is among the metadata."""
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
    """Returns the commands that write exports, as lists of arguments; the fourth is the path.

    An .onnx file has one search, so that there is one for each.

    Args:
        model: A `Model`.
        folder: Folder in which `make` has written its run.
        kinds: Pairs of a kind of export, such as `litert`, and a quantisation, `none` or `int8`,
            or `jit` for a compiled SavedModel.
        searches: Increasing beam sizes; 1 is greedy search.
        batch_sizes: Increasing batch sizes.
    """
    beams = [str(size) for size in searches if size > 1]
    sizes = ",".join(str(size) for size in batch_sizes)
    shapes = ["--batch-sizes", sizes, "--lengths", f"{model.source_length},{model.max_length}"]
    beam = ["--beam", beams[0], "--n-best", "1"] if beams else ["--greedy"]
    chosen = []
    for kind, how in kinds:
        options = ["--sentences", str(folder / "sentences.txt")]
        if kind == "onnx":
            quantize = [] if how == "none" else ["--quantize", how, *LENIENT]
            for size in searches:
                search = ["--greedy"] if size == 1 else ["--beam", str(size)]
                target = path_of(folder, kind, how, size)
                chosen.append(
                    ["export", kind, str(folder / "run"), str(target), *options, *search, *quantize]
                )
            continue
        if kind != "ctranslate2":
            options += beam
        if kind == "saved-model" and beams:
            options += ["--extra-length", "none"]  # .tflite files take it with each call
        if how == "jit" or kind == "litert":
            options += shapes
        if how == "jit":
            options += ["--jit"]
        elif how != "none":
            options += ["--quantize", how, *LENIENT]
        target = path_of(folder, kind, how)
        chosen.append(["export", kind, str(folder / "run"), str(target), *options])
    return chosen


# Random weights have no quality to lose; the report has the fraction of equal tokens.
LENIENT = ["--max-score-loss", "1000"]


def path_of(folder, kind, how, beam_size=1):
    """Returns the path of an export; `beam_size` is that of an .onnx file."""
    name = f"{kind}_{how}"
    if kind == "onnx" and beam_size > 1:
        name += f"_beam{beam_size}"
    return pathlib.Path(folder, name + {"litert": ".tflite", "onnx": ".onnx"}.get(kind, ""))


def run_command(arguments):
    """Runs a command of this package.

    Raises:
        BenchmarkError: If it fails; the message contains its last line.
    """
    command = [sys.executable, "-m", "keras_transformer", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise BenchmarkError(f"keras-transformer {' '.join(arguments)}: {lines[-1:]}")
