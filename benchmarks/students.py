"""Words per second of an SSRU student: keras_transformer compared with Bergamot, Firefox's engine.

    python benchmarks/students.py --bergamot-python PYTHON --bergamot-package FOLDER --json f.json

One student with random weights (six encoder layers, two recurrent decoder layers, 32,000 tokens) is
exported by `keras-transformer export litert`, `export onnx` and `export marian`, all with
`--quantize int8`. ONNX Runtime runs its export natively, the others also in headless Chromium:
LiteRT and LiteRT.js, Bergamot's library and its WebAssembly. Inputs and outputs are texts, so
tokenization and search are both timed. With a shortlist, all engines use the same one.

Sentences have 23 words, each of which is a token, with frequencies like those of words in natural
language. Every output must have 32 tokens, which is checked: Bergamot stops at a multiple of the
length of the source, ours at the model's maximum length. That multiple is fixed at 2.0 in
Bergamot's WebAssembly; the page gets a copy with another value. All searches are greedy. Each
engine runs in its own process. The engines run in turn, and each repeat begins with another one.
"""

import contextlib
import dataclasses
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import click
from command import RESULTS, Peer, describe_machine, interleave, names, versions
from decoding import numbers
from decoding_files import run_command
from measurements import BenchmarkError
from student_parts.browser import chromium, missing
from student_parts.files import commands, shipped
from student_parts.report import add_engines, show
from student_parts.task import STUDENTS, sentences
from workers import Worker

NATIVE = "pip install ai-edge-litert"
ONNX = "pip install -e .[onnx]"
PAGE = "`npm install` in examples/browser, Node and Chromium"
PYTHON = "Python 3.10 with `pip install --no-deps bergamot`, and --bergamot-python"
PACKAGE = "`npm install @browsermt/bergamot-translator`, Node, Chromium and --bergamot-package"
ENGINES = {
    "ours": Peer("student_parts.litert", "ai_edge_litert", NATIVE, {}, ("litert",)),
    "ours-browser": Peer(
        "student_parts.browser", "LiteRT.js", PAGE, {"engine": "litert"}, ("litert",)
    ),
    "ours-onnx": Peer("student_parts.onnx", "onnxruntime", ONNX, {}, ("onnx",)),
    "bergamot": Peer("student_parts.bergamot", "bergamot", PYTHON, {}, ("marian",)),
    "bergamot-browser": Peer(
        "student_parts.browser", "Bergamot's WebAssembly", PACKAGE, {"engine": "bergamot"},
        ("marian",),
    ),
}  # fmt: skip
SHORTLISTS = {"without": False, "with": True}
PACKAGES = ("tensorflow", "keras", "ai-edge-litert", "onnxruntime", "sentencepiece")


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", type=click.Choice([*STUDENTS]), default="tiny", show_default=True,
              help="Size of the student.")
@click.option("--repeats", type=click.IntRange(1), default=10, show_default=True,
              help="Number of repeats.")
@click.option("--seconds", type=click.FloatRange(0), default=0.5, show_default=True,
              help="Approximate duration of a repeat of an engine, at least one batch.")
@click.option("--engines", callback=names(ENGINES), default=",".join(ENGINES), show_default=True,
              help="Engines to compare.")
@click.option("--shortlists", callback=names(SHORTLISTS), default=",".join(SHORTLISTS),
              show_default=True, help="Measure without a shortlist, with one, or both.")
@click.option("--batches", callback=numbers, default="1,32", show_default=True,
              help="Numbers of sentences in a batch.")
@click.option("--bergamot-python", envvar="KERAS_TRANSFORMER_BERGAMOT_PYTHON",
              help="Python 3.10 in which the package bergamot is installed.")
@click.option("--bergamot-package", envvar="KERAS_TRANSFORMER_BERGAMOT",
              type=click.Path(path_type=pathlib.Path, file_okay=False),
              help="Folder of the package @browsermt/bergamot-translator.")
@RESULTS
# fmt: on
def main(size, repeats, seconds, engines, shortlists, batches, output, **bergamot):
    """Compare engines that run an SSRU student, on one core."""
    try:
        chosen, skipped = look_for(engines, **bergamot)
        report = {
            "machine": describe_machine(1),
            "settings": {
                "repeats": repeats, "seconds": seconds, "versions": versions(PACKAGES),
            },
            "skipped": skipped, "commands": [], "candidates": {}, "students": [],
        }  # fmt: skip
        cases = [
            {"batch": batch, "shortlist": SHORTLISTS[choice]}
            for batch in batches
            for choice in shortlists
        ]
        if chosen:
            measure(report, STUDENTS[size], cases, chosen, repeats, seconds, bergamot)
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    show(report)


def look_for(engines, bergamot_python, bergamot_package):
    """Returns the engines that are installed, and messages about the others."""
    page = not missing()
    package = bergamot_package and (bergamot_package / "translator.js").is_file()
    there = {
        "ours": importlib.util.find_spec("ai_edge_litert") is not None,
        "ours-onnx": importlib.util.find_spec("onnxruntime") is not None,
        "ours-browser": page,
        "bergamot": bergamot_python and has_bergamot(bergamot_python),
        "bergamot-browser": package and has_browser(),
    }
    skipped = [
        f"{name} is skipped: {ENGINES[name].package} is missing; it needs {ENGINES[name].install}."
        for name in engines
        if not there[name]
    ]
    for line in skipped:
        print(line)
    return [name for name in engines if there[name]], skipped


def has_browser():
    """Returns `True` if Node and Chromium are installed."""
    return bool(shutil.which("node") and chromium())


def has_bergamot(python):
    """Returns `True` if the package is installed in a Python; does not import it."""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('bergamot') is None)"
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def measure(report, student, cases, engines, repeats, seconds, bergamot):
    """Writes the files of a student and measures all cases."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        batches = sorted({case["batch"] for case in cases})
        order = {
            "student": dataclasses.asdict(student), "folder": folder, "batches": batches,
            "cores": 1, "length_factor": student.length_factor,
            "package": str(bergamot["bergamot_package"]),
        }  # fmt: skip
        with Worker("the run", "student_parts.files", order, 1) as worker:
            expected = worker.metadata["tokens"]
            report["candidates"] = worker.metadata["candidates"]
        kinds = dict.fromkeys(kind for name in engines for kind in ENGINES[name].files)
        restricted = sorted({case["shortlist"] for case in cases})
        for command in commands(student, folder, kinds, restricted, batches):
            line = " ".join(command).replace(folder, "FOLDER")
            print(f"keras-transformer {line}", flush=True)
            report["commands"].append(line)
            run_command(command)
        for case in cases:
            rows = expected[str(case["shortlist"])][: case["batch"]]
            pythons = {"bergamot": bergamot["bergamot_python"]}
            compare(report, student, case, rows, engines, order, pythons, (repeats, seconds))


def compare(report, student, case, expected, engines, order, pythons, times):
    """Measures all engines in one case and adds the results to the report."""
    repeats, seconds = times
    title = f"batch {case['batch']}, {'with' if case['shortlist'] else 'without'} shortlist"
    with contextlib.ExitStack() as stack:
        workers, files = {}, {}
        for name in engines:
            print(f"{title}: starting {name}", flush=True)
            engine = ENGINES[name]
            files[name] = shipped(order["folder"], engine.files[0], case["shortlist"])
            whole = {
                **order, **engine.options, **case, "files": [str(file) for file in files[name]],
                "texts": sentences(student, case["batch"]),
            }  # fmt: skip
            python = pythons.get(name, sys.executable)
            worker = Worker(name, engine.module, whole, 1, python)
            workers[name] = stack.enter_context(worker)
        tokens = {name: worker.metadata["tokens"] for name, worker in workers.items()}
        check_lengths(tokens, student)
        calls = {
            name: max(1, round(seconds / worker.run(1)["seconds"]))
            for name, worker in workers.items()
        }
        runs = interleave(workers, calls, repeats, ())
    measured = {
        name: {
            "seconds": [run["seconds"] / calls[name] for run in runs[name]],
            "peak_bytes": peak(runs[name]), "files": files[name],
            "agreement": agreement(workers[name].metadata["tokens"], expected),
        }
        for name in engines
    }  # fmt: skip
    add_engines(report, student, case, measured)


def peak(runs):
    """Returns the peak memory of an engine's process, or of its page, in bytes."""
    return max(run.get("page_bytes", run["peak_bytes"]) or 0 for run in runs) or None


def check_lengths(tokens, student):
    """Raises a `BenchmarkError` unless all outputs have the student's `length` tokens."""
    for name, rows in tokens.items():
        lengths = sorted({len(row) for row in rows})
        if lengths != [student.length]:
            raise BenchmarkError(
                f"{name} generated outputs of {lengths} tokens, not of {student.length}. Fix the "
                "engine before you time it."
            )


def agreement(found, expected):
    """Returns the fraction of tokens that are equal to those of the model in float32."""
    pairs = list(zip(found, expected, strict=True))
    same = [one == other for mine, theirs in pairs for one, other in zip(mine, theirs, strict=True)]
    return sum(same) / len(same)


if __name__ == "__main__":
    main()
