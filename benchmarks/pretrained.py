"""Decoding with pretrained models of real sizes: several libraries from the same checkpoint.

    python benchmarks/pretrained.py --shape all --repeats 5 --json results.json

`opus-mt`, `t5-small` and `gpt2` are an OPUS-MT model, T5-small and GPT-2 in Hugging Face's format,
`student` is a model file of Marian with a recurrent decoder (SSRU), as in Firefox. All have random
weights, see `pretrained_files.py`. `keras-transformer convert` turns the checkpoint into a run, and
`keras-transformer export` writes the files; the commands are printed with their time and memory.
Hugging Face's library reads the original checkpoint, CTranslate2 the result of `export
ctranslate2`. No other library here can read the student: `students.py` compares it with Bergamot,
the engine of Firefox. The other libraries may be in another environment, whose Python is PYTHON:

    python benchmarks/pretrained.py --shape t5-small --peers-python PYTHON

All peers decode the same sentences of 24 tokens, the end included, and GPT-2 continues their first
23. An output of `opus-mt` has 32 tokens, the end included, of at most 64; outputs of the others
never end and have their maximum length: 48 tokens, or with GPT-2 33 after a prompt, whose length
`--prompt` changes. Before anything
is timed, a peer that computes in float32 must generate the same tokens as the first peer. Each peer
runs in its own process, pinned to the same processors. The peers run in turn, and each repeat
begins with another one. With one processor, times are processor times of the process. The time to
the first translation is measured in a new process, from its start to its answer to the first batch.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import click
from command import (
    KEPT_FILES,
    PEERS_PYTHON,
    RESULTS,
    Peer,
    describe_machine,
    interleave,
    look_for,
    names,
    seconds_per_call,
    versions,
)
from decoding import PACKAGES, SEARCHES, check_lengths, compare_tokens, numbers
from decoding_files import commands, path_of
from decoding_report import add_peers, title_of
from decoding_task import SOURCE_LENGTH, Case, Model
from measurements import BenchmarkError
from peers_python import versions_in
from pretrained_report import show, size_of
from workers import Worker

LITERT = "pip install ai-edge-litert"
CT2 = "pip install ctranslate2"
ONNX = "pip install onnx onnxruntime"
TORCH = "pip install torch transformers"
C_API = "ours-c"  # not measured by default
PEERS = {
    "ours": Peer("decoding_peers.ours", "keras_transformer", "pip install -e .",
                 {"jit_compile": False}, (("saved-model", "none"),)),
    "ours-xla": Peer("decoding_peers.ours", "keras_transformer", "pip install -e .",
                     {"jit_compile": True}, (("saved-model", "jit"),)),
    C_API: Peer("decoding_peers.c_api", "tensorflow", "pip install -e .", {},
                   (("saved-model", "none"),)),
    "ours-litert": Peer("decoding_peers.litert", "ai_edge_litert", LITERT, {"quantize": "none"},
                        (("litert", "none"),)),
    "ours-litert-int8": Peer("decoding_peers.litert", "ai_edge_litert", LITERT,
                             {"quantize": "int8"}, (("litert", "int8"),)),
    "ours-onnx": Peer("decoding_peers.onnx", "onnxruntime", ONNX, {"quantize": "none"},
                      (("onnx", "none"),)),
    "ours-onnx-int8": Peer("decoding_peers.onnx", "onnxruntime", ONNX, {"quantize": "int8"},
                           (("onnx", "int8"),)),
    "ctranslate2": Peer("decoding_peers.ctranslate2", "ctranslate2", CT2, {"quantize": "none"},
                        (("ctranslate2", "none"),)),
    "ctranslate2-int8": Peer("decoding_peers.ctranslate2", "ctranslate2", CT2,
                             {"quantize": "int8"}, (("ctranslate2", "int8"),)),
    "transformers": Peer("decoding_peers.hugging_face", "transformers", TORCH,
                         {"precision": "float32"}),
    "transformers-bfloat16": Peer("decoding_peers.hugging_face", "transformers", TORCH,
                                  {"precision": "bfloat16"}),
}  # fmt: skip
INEXACT = {
    "ours-litert-int8", "ours-onnx-int8", "ctranslate2-int8", "transformers-bfloat16",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Shape:
    """A kind of checkpoint to measure.

    Args:
        format: Format of the checkpoint, a key of `pretrained_files.WRITERS`.
        model: The `Model`.
        tokens: Number of tokens of every output.
        ends: Whether the outputs end by themselves, with the end as their last token.
        peers: Peers that can run the model.
        prompt: Number of tokens of a prompt, which are part of the output but not of `tokens`.
    """

    format: str
    model: Model
    tokens: int
    ends: bool
    peers: tuple
    prompt: int = 0

    @property
    def checked_length(self):
        """Number of tokens of an output, prompt and end included, whether or not it has an end."""
        return self.prompt + self.tokens + (not self.ends)

    def with_prompt(self, count):
        """Returns the shape with prompts of another length, continued by as many tokens."""
        model = dataclasses.replace(
            self.model,
            size=f"{self.model.size}-{count}",
            source_length=count + 1,
            longest=count + self.tokens,
        )
        return dataclasses.replace(self, model=model, prompt=count)


ALL, OURS = tuple(PEERS), tuple(name for name in PEERS if name.startswith("ours"))
OPUS = Model("opus-mt", vocab_size=58_101, d_model=512, num_layers=6, num_heads=8, d_ff=2048)
STUDENT = Model(
    "student", vocab_size=32_000, d_model=256, num_layers=6, num_heads=8, d_ff=1536, length=24
)
T5 = Model("t5-small", 32_128, d_model=512, num_layers=6, num_heads=8, d_ff=2048, length=24)
GPT2 = Model("gpt2", 50_257, d_model=768, num_layers=12, num_heads=12, d_ff=3072, length=28)
PROMPT = SOURCE_LENGTH - 1
SHAPES = {
    "opus-mt": Shape("opus-mt", OPUS, 32, True, ALL),
    "t5-small": Shape("t5", T5, T5.max_length, False, ALL),
    "gpt2": Shape("gpt2", GPT2, GPT2.max_length - PROMPT, False, ALL, PROMPT),
    "student": Shape("marian", STUDENT, STUDENT.max_length, False, OURS),
    # For the tests.
    "smoke-opus-mt": Shape(
        "opus-mt", Model("smoke-opus-mt", 200, 16, 1, 2, 32, length=7), 7, True, ALL
    ),
    "smoke-student": Shape(
        "marian", Model("smoke-student", 200, 16, 1, 2, 32, length=7), 48, False, OURS
    ),
    "smoke-t5": Shape("t5", Model("smoke-t5", 200, 16, 1, 2, 32, length=7), 48, False, ALL),
    "smoke-gpt2": Shape(
        "gpt2", Model("smoke-gpt2", 300, 16, 2, 2, 32, length=7), 48 - PROMPT, False, ALL, PROMPT
    ),
}


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--shape", type=click.Choice([*SHAPES, "all"]), default="opus-mt", show_default=True,
              help="Checkpoint to measure; all: all but those that are only for tests.")
@click.option("--cores", type=click.IntRange(1), default=1, show_default=True,
              help="Number of processors that every peer is pinned to, and of its threads.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True,
              help="Number of repeats.")
@click.option("--seconds", type=click.FloatRange(0), default=0.5, show_default=True,
              help="Approximate duration of a repeat of a peer, at least one call.")
@click.option("--peers", callback=names(PEERS), show_default=True,
              default=",".join(peer for peer in PEERS if peer != C_API),
              help=f"Implementations to compare; {C_API}: a SavedModel without Python, on Linux.")
@click.option("--searches", callback=names(SEARCHES), default=",".join(SEARCHES),
              show_default=True, help="Searches to compare; beam: a beam of 4.")
@click.option("--batches", callback=numbers, default="1,32", show_default=True,
              help="Numbers of sentences in a batch.")
@click.option("--prompt", type=click.IntRange(1),
              help="Number of tokens of a prompt of a language model. Default: 23.")
@PEERS_PYTHON
@KEPT_FILES
@RESULTS
# fmt: on
def main(
    shape, cores, repeats, seconds, peers, searches, batches, prompt, peers_python, folder, output
):
    """Compare the decoding times of libraries with pretrained models."""
    try:
        pythons, skipped, found = find_peers(peers, peers_python)
        report = {
            "machine": describe_machine(cores),
            "settings": {
                "cores": cores, "repeats": repeats, "seconds": seconds,
                "versions": found,
            },
            "skipped": skipped, "commands": [], "decoding": [],
        }  # fmt: skip
        everything = [name for name in SHAPES if not name.startswith("smoke")]
        for name in everything if shape == "all" else [shape]:
            chosen = SHAPES[name]
            if prompt and not chosen.prompt:
                raise BenchmarkError(f"--prompt: {name} is not a language model.")
            chosen = chosen.with_prompt(prompt) if prompt else chosen
            cases = [
                Case(SEARCHES[search], batch, chosen.tokens, chosen.model.source_length)
                for search in searches
                for batch in batches
            ]
            able = {peer: path for peer, path in pythons.items() if peer in chosen.peers}
            if not able:
                continue
            with contextlib.ExitStack() as stack:
                place = folder or stack.enter_context(tempfile.TemporaryDirectory())
                place = pathlib.Path(place, chosen.model.size)
                make_files(report, chosen, cases, place, able, cores)
                for case in cases:
                    compare(report, chosen, case, place, able, cores, repeats, seconds)
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    show(report)


def find_peers(peers, peers_python):
    """Returns the peers that can run, messages about the others, and versions of packages.

    Args:
        peers: List of names.
        peers_python: Path of the Python of the other libraries. `None`: they are in this one.

    Returns:
        Dictionary from names to the paths of the Pythons that run them, in the order of `peers`;
        list of messages; and a dictionary of versions.

    Raises:
        BenchmarkError: If `peers_python` lacks a package.
    """
    theirs = [peer for peer in peers if peers_python and peer not in OURS]
    here, skipped = look_for([peer for peer in peers if peer not in theirs], PEERS)
    found = versions(PACKAGES)
    if theirs:
        packages = {PEERS[peer].package for peer in theirs}
        packages |= {"torch"} if "transformers" in packages else set()
        found |= versions_in(peers_python, packages, f"{CT2}, {TORCH}")
    pythons = {
        peer: peers_python if peer in theirs else sys.executable
        for peer in peers
        if peer in theirs or peer in here
    }
    return pythons, skipped, found


def make_files(report, shape, cases, folder, peers, cores):
    """Writes the checkpoint and runs the commands whose results do not exist yet."""
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint, run = folder / "checkpoint", folder / "run"
    if not checkpoint.exists():
        order = order_of(shape, folder, cores)
        with Worker("the checkpoint", "pretrained_files", order, cores):
            pass
    kind = "marian" if shape.format == "marian" else "hf"
    lines = [["convert", kind, str(checkpoint), str(run), "--license", "none"]]
    if kind == "marian":
        lines[0][2] = str(checkpoint / "model.npz")
        lines[0] += ["--max-length", str(shape.model.max_length)]
    kinds = list(dict.fromkeys(kind for peer in peers for kind in PEERS[peer].files))
    beams = sorted({case.beam_size for case in cases})
    sizes = sorted({case.batch_size for case in cases})
    for line in commands(shape.model, folder, kinds, beams, sizes):
        limit = ["--max-length", str(shape.model.max_length)]
        lines.append(line if line[1] == "ctranslate2" else line + limit)
    listed = [(line, pathlib.Path(line[3])) for line in lines]
    write_measured(report, shape.model.size, folder, listed)


def write_measured(report, shape, folder, listed):
    """Runs commands that write files, unless a file exists, and adds what they take to the report.

    Args:
        report: The report.
        shape: Name of the shape.
        folder: Folder of the files, which the report does not name.
        listed: Pairs of the arguments of a command and the path that it writes.
    """
    for line, place in listed:
        text = " ".join(line).replace(str(folder), "FOLDER")
        print(f"keras-transformer {text}", flush=True)
        if place.exists():
            continue
        seconds, peak = run_measured(line)
        report["commands"].append(
            {"shape": shape, "command": text, "seconds": seconds, "peak_bytes": peak,
             "bytes": size_of(place)}
        )  # fmt: skip
        print(f"  {seconds:.0f} s, {peak / 1e6:,.0f} MB of memory", flush=True)


def run_measured(arguments):
    """Runs a command of this package; returns its seconds and its peak memory in bytes.

    Raises:
        BenchmarkError: If it fails; the message contains its last line.
    """
    command = [sys.executable, "-m", "keras_transformer", *arguments]
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        lines = errors.read().strip().splitlines()
    if process.returncode:
        raise BenchmarkError(f"keras-transformer {' '.join(arguments)}: {lines[-1:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return time.perf_counter() - begin, usage.ru_maxrss * unit


def compare(report, shape, case, folder, peers, cores, repeats, seconds):
    """Measures all peers in one case and adds the results to the report.

    Args:
        peers: Dictionary from their names to the paths of the Pythons that run them.
    """
    model, title = shape.model, title_of(shape.model, case)
    workers, first = {}, {}
    with contextlib.ExitStack() as stack:
        for name in peers:
            print(f"{title}: starting {name}", flush=True)
            order = {**order_of(shape, folder, cores), "case": dataclasses.asdict(case)}
            begin = time.perf_counter()
            order |= PEERS[name].options
            worker = Worker(name, PEERS[name].module, order, cores, peers[name])
            first[name] = time.perf_counter() - begin
            workers[name] = stack.enter_context(worker)
        tokens = {name: worker.metadata["tokens"] for name, worker in workers.items()}
        check_lengths(tokens, shape.checked_length)
        agreement = compare_tokens(tokens, INEXACT)
        calls = {
            name: max(1, round(seconds / worker.run(1)["seconds"]))
            for name, worker in workers.items()
        }
        runs = interleave(workers, calls, repeats, ())
    times = seconds_per_call(runs, calls, cores)
    add_peers(report, model, case, times, agreement, dict.fromkeys(peers, cores))
    for row in report["decoding"][-len(peers) :]:
        row["peak_bytes"] = max(run["peak_bytes"] for run in runs[row["peer"]])
        row["first_seconds"] = first[row["peer"]]
        kinds = PEERS[row["peer"]].files
        place = path_of(folder, *kinds[0], case.beam_size) if kinds else folder / "checkpoint"
        row["bytes"] = size_of(place)


def order_of(shape, folder, cores):
    """Returns the fields of a worker's order that do not depend on the peer or the case."""
    return {
        "model": dataclasses.asdict(shape.model), "folder": str(folder), "cores": cores,
        "format": shape.format, "prompt": shape.prompt,
    }  # fmt: skip


if __name__ == "__main__":
    main()
