"""Encoders that answer in one pass: our exports compared with other libraries.

    python benchmarks/encoders.py --shape all --peers-python PYTHON --json results.json

The checkpoints have the shapes of BERT-base, with the head of a classifier of texts, and of MiniLM
with six layers, as a sentence encoder; the weights are random. `keras-transformer convert hf` and
`keras-transformer export` write our files and the folders for CTranslate2. The peer `onnxruntime`
runs an .onnx file of torch's exporter whose operators ONNX Runtime's own optimizer has fused; the
peer `optimum` runs the file of `optimum-cli`. It needs transformers below 4.58 and therefore runs
only if `--peers` names it. transformers (compiled by torch) and sentence-transformers read the
checkpoint itself. The other libraries run in PYTHON, an environment with torch, transformers, and
what the chosen peers need of sentence-transformers, onnx, onnxscript, onnxruntime and ctranslate2.

All peers get the same token ids with the same mask, and return probabilities or vectors. Before
anything is timed, the outputs for a batch with padding are compared: those of float32 must agree to
1e-4. Each peer runs in its own process, pinned to one processor, with one thread. The peers run in
turn, and each repeat begins with another one. Times are processor times of the process, which
other programs on the machine affect less than wall-clock times; on an idle machine they are equal.
`mixed` texts have from 4 to 128 tokens: they are one batch, padded to the longest, or sorted by
length and answered in batches of eight. A library may leave out the padding of a batch: our
SavedModel and CTranslate2 do, and our LiteRT files divide a batch among signatures of several
lengths. Each of these signatures has its own copy of the weights in memory.
"""

import contextlib
import dataclasses
import json
import pathlib
import re
import sys
import tempfile
import time

import click
from command import KEPT_FILES, RESULTS, Peer, describe_machine, interleave, names
from encoder_files import (
    CHECKPOINT,
    GROUP,
    LENGTHS,
    MIXED,
    OPTIMUM,
    TORCH_ONNX,
    WRITERS,
    commands,
    path_of,
)
from encoder_report import add_peers, show
from encoder_task import ENCODERS, Case
from measurements import BenchmarkError
from peers_python import versions_in
from pretrained import write_measured
from pretrained_report import size_of
from workers import Worker

HERE = "pip install -e ."
ONNX = "pip install -e .[onnx]"
THERE = (
    "--peers-python, with `pip install torch transformers sentence-transformers onnx onnxscript "
    "onnxruntime ctranslate2`"
)
WITH_OPTIMUM = (
    THERE.removesuffix("`") + " 'optimum-onnx[onnxruntime]'`, which needs transformers below 4.58"
)
PEERS = {
    "ours": Peer("encoder_peers.ours", "keras_transformer", HERE, {}, ("saved-model", "none")),
    "ours-litert": Peer("encoder_peers.litert", "ai_edge_litert", "pip install ai-edge-litert",
                        {"quantize": "none"}, ("litert", "none")),
    "ours-litert-int8": Peer("encoder_peers.litert", "ai_edge_litert",
                             "pip install ai-edge-litert", {"quantize": "int8"},
                             ("litert", "int8")),
    "ours-onnx": Peer("encoder_peers.onnx", "onnxruntime", ONNX, {"quantize": "none"},
                      ("onnx", "none")),
    "ours-onnx-int8": Peer("encoder_peers.onnx", "onnxruntime", ONNX, {"quantize": "int8"},
                           ("onnx", "int8")),
    "onnxruntime": Peer("encoder_peers.torch_onnx", "onnxruntime", THERE, {"quantize": "none"},
                        (TORCH_ONNX, "none")),
    "onnxruntime-int8": Peer("encoder_peers.torch_onnx", "onnxruntime", THERE,
                             {"quantize": "int8"}, (TORCH_ONNX, "int8")),
    "optimum": Peer("encoder_peers.optimum", "optimum-onnx", WITH_OPTIMUM, {"quantize": "none"},
                    (OPTIMUM, "none")),
    "optimum-int8": Peer("encoder_peers.optimum", "optimum-onnx", WITH_OPTIMUM,
                         {"quantize": "int8"}, (OPTIMUM, "int8")),
    "ctranslate2": Peer("encoder_peers.ctranslate2", "ctranslate2", THERE,
                        {"quantize": "none", "compute_type": "float32"}, ("ctranslate2", "none")),
    "ctranslate2-int8": Peer("encoder_peers.ctranslate2", "ctranslate2", THERE,
                             {"quantize": "int8", "compute_type": "int8_float32"},
                             ("ctranslate2", "int8")),
    "transformers": Peer("encoder_peers.hugging_face", "transformers", THERE, {"compile": False},
                         (CHECKPOINT, "")),
    "transformers-compiled": Peer("encoder_peers.hugging_face", "transformers", THERE,
                                  {"compile": True}, (CHECKPOINT, "")),
    "sentence-transformers": Peer("encoder_peers.sentence_encoder", "sentence_transformers", THERE,
                                  {}, (CHECKPOINT, "")),
}  # fmt: skip
ELSEWHERE = {THERE, WITH_OPTIMUM}  # what to install for the peers of PYTHON
BY_DEFAULT = [name for name, peer in PEERS.items() if peer.install != WITH_OPTIMUM]
ONLY_VECTORS = {"sentence-transformers"}
COMPILED = {"transformers-compiled"}  # again for every shape, which takes too long for mixed texts
SUFFIX = "-mixed"  # of the process that runs a file for mixed texts
TOLERANCE = 1e-4  # of an output in float32


def cases_of(context, parameter, value):
    """Click callback for cases such as `1x16`, separated by commas."""
    found = [re.fullmatch(r"([1-9]\d*)x(\d+)", name.strip()) for name in value.split(",")]
    if not all(match and int(match[2]) in LENGTHS for match in found):
        raise click.BadParameter(f"{value!r} is not a list such as 1x16,32x128.")
    return list(dict.fromkeys(Case(*map(int, match.groups())) for match in found))


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--shape", type=click.Choice([*ENCODERS, "all"]), default="minilm-l6",
              show_default=True, help="Encoder to measure; all: bert-base and minilm-l6.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True,
              help="Number of repeats.")
@click.option("--seconds", type=click.FloatRange(0), default=0.5, show_default=True,
              help="Approximate duration of a repeat of a peer, at least one call.")
@click.option("--peers", callback=names(PEERS), default=",".join(BY_DEFAULT), show_default=True,
              help="Implementations to compare.")
@click.option("--cases", "fixed", callback=cases_of, show_default=True,
              default="1x16,1x128,1x512,32x16,32x128,32x512",
              help="Numbers of texts in a batch, and their lengths of 16, 128 or 512 tokens.")
@click.option("--mixed", type=click.IntRange(0), default=32, show_default=True,
              help="Number of texts of different lengths, a multiple of 8. 0: none.")
@click.option("--peers-python", envvar="KERAS_TRANSFORMER_PEERS_PYTHON",
              help="Python in which the other libraries are installed.")
@KEPT_FILES
@RESULTS
# fmt: on
def main(shape, repeats, seconds, peers, fixed, mixed, peers_python, folder, output):
    """Compare the times of encoders in several libraries, on one core."""
    if mixed % GROUP:
        raise click.BadParameter(f"must be a multiple of {GROUP}.", param_hint="--mixed")
    if peers_python is None:
        raise click.UsageError("--peers-python is missing: it writes the checkpoint. " + THERE)
    report = {
        "machine": describe_machine(1), "settings": {"repeats": repeats, "seconds": seconds},
        "commands": [], "encoders": [],
    }  # fmt: skip
    try:
        theirs = {PEERS[peer].package for peer in peers if PEERS[peer].install in ELSEWHERE}
        packages = theirs | {"torch", "transformers"}  # which write the checkpoint
        report["settings"]["versions"] = versions_in(peers_python, packages, THERE)
        for name in ("bert-base", "minilm-l6") if shape == "all" else (shape,):
            encoder = ENCODERS[name]
            chosen = [p for p in peers if encoder.head == "vector" or p not in ONLY_VECTORS]
            cases = [*fixed, *(Case(mixed, 0, group) for group in (0, GROUP) if mixed)]
            with contextlib.ExitStack() as stack:
                place = folder or stack.enter_context(tempfile.TemporaryDirectory())
                place = pathlib.Path(place, name)
                make_files(report, encoder, place, chosen, fixed, mixed, peers_python)
                compare(report, encoder, cases, place, chosen, repeats, seconds, peers_python)
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    show(report)


def python_of(peer, peers_python):
    """Returns the path of the Python that runs a peer."""
    return peers_python if PEERS[peer].install in ELSEWHERE else sys.executable


def make_files(report, encoder, folder, peers, cases, mixed, python):
    """Writes the checkpoint, the files of the other libraries, and ours, unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [PEERS[peer].files for peer in peers]
    for kind in dict.fromkeys([CHECKPOINT, *(kind for kind, _ in kinds)]):
        place = folder / CHECKPOINT if kind == CHECKPOINT else path_of(folder, kind, "int8")
        if kind in WRITERS and not place.exists():
            order = {"encoder": dataclasses.asdict(encoder), "folder": str(folder), "kind": kind}
            with Worker(f"writing {kind}", "encoder_files", order, 1, python):
                pass
    ours = [files for files in kinds if files[0] not in WRITERS]
    ours += [(MIXED, how) for kind, how in ours if kind == "litert" and mixed]
    write_measured(report, encoder.name, folder, commands(folder, ours, cases))


def compare(report, encoder, cases, folder, peers, repeats, seconds, python):
    """Measures all peers in all cases and adds the results to the report."""
    with contextlib.ExitStack() as stack:
        workers = {}
        for name in [key for peer in peers for key in keys_of(peer, cases)]:
            peer, mixed = name.removesuffix(SUFFIX), name.endswith(SUFFIX)
            kind, how = PEERS[peer].files
            kind = MIXED if mixed else kind
            print(f"{encoder.name}: starting {name}", flush=True)
            order = {
                "encoder": dataclasses.asdict(encoder), "folder": str(folder), "cores": 1,
                "cases": [dataclasses.asdict(case) for case in cases if able(name, case)],
                "files": kind, **PEERS[peer].options,
            }  # fmt: skip
            begin = time.perf_counter()
            worker = Worker(name, PEERS[peer].module, order, 1, python_of(peer, python))
            workers[name] = stack.enter_context(worker)
            worker.metadata["first_seconds"] = time.perf_counter() - begin
            place = folder / CHECKPOINT if kind == CHECKPOINT else path_of(folder, kind, how)
            worker.metadata["bytes"] = size_of(place)
        for case in cases:
            print(f"{encoder.name}, {case.title}", flush=True)
            here = {name: worker for name, worker in workers.items() if able(name, case)}
            outputs, steps = {}, {}
            for name, worker in here.items():
                number = [other for other in cases if able(name, other)].index(case)
                outputs[name] = worker.run((number, 0))["outputs"]
                once = worker.run((number, 1))["processor_seconds"]
                steps[name] = number, max(1, round(seconds / once))
            errors = check_outputs(outputs)
            runs = interleave(here, steps, repeats, ())
            add_peers(report, encoder, case, here, runs, steps, errors)


def keys_of(peer, cases):
    """Returns the names of the processes of a peer: two if its files have fixed shapes."""
    lengths = {bool(case.length) for case in cases}
    if PEERS[peer].files[0] != "litert":
        return [peer]
    return [peer] * (True in lengths) + [peer + SUFFIX] * (False in lengths)


def able(name, case):
    """Returns `True` if a process can run a case."""
    if PEERS[name.removesuffix(SUFFIX)].files[0] == "litert":  # files of fixed shapes
        return name.endswith(SUFFIX) != bool(case.length)
    return bool(case.length) or name not in COMPILED


def check_outputs(outputs):
    """Returns the largest difference of each peer's outputs from those of the first peer.

    Raises:
        BenchmarkError: If a peer that computes in float32 differs by more than `TOLERANCE`.
    """
    first, *others = outputs
    errors = {first: 0.0}
    for other in others:
        rows = zip(outputs[first], outputs[other], strict=True)
        errors[other] = max(
            abs(a - b) for mine, theirs in rows for a, b in zip(mine, theirs, strict=True)
        )
        if not errors[other] <= TOLERANCE and "int8" not in first + other:
            raise BenchmarkError(
                f"The outputs of {other} differ by {errors[other]:.2g} from those of {first}. Fix "
                "the peer before you time it."
            )
    return errors


if __name__ == "__main__":
    main()
