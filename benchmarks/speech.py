"""Speech recognition: our exports of a checkpoint of Whisper compared with other libraries.

    python benchmarks/speech.py --shape all --peers-python PYTHON --json results.json

The checkpoints have the shapes of Whisper tiny and base and random weights. `keras-transformer
convert hf` and `keras-transformer export` write our files; CTranslate2's converter writes the
folder for faster-whisper, and `speech_files.py` the file for whisper.cpp; transformers reads the
checkpoint, with and without compilation by torch. The other libraries run in PYTHON, an environment
with torch, transformers, faster-whisper and pywhispercpp. The published wheel of pywhispercpp is
compiled for AVX2; build it for the processor instead:

    pip install --no-binary pywhispercpp pywhispercpp

and if its library is not found, name its folder in LD_LIBRARY_PATH.

Every peer gets the samples of the same recording, noise of 30 seconds, computes its own features
from them in every call, and emits 64 tokens of text by greedy search: outputs never end. Before
anything is timed, the number of tokens is checked, and the tokens of peers that compute in float32
must be equal. whisper.cpp computes with weights, keys and values in float16. Each peer runs in its
own process, pinned to the same processors. The peers run in turn, and each repeat begins with
another one. With one processor, times are processor times of the process, which other programs
affect less; they are equal on an idle machine. With several, they are wall-clock times.
"""

import contextlib
import dataclasses
import json
import pathlib
import sys
import tempfile
import time

import click
from command import KEPT_FILES, RESULTS, Peer, describe_machine, interleave, names, versions
from decoding import PACKAGES, compare_tokens, numbers
from measurements import BenchmarkError
from peers_python import versions_in
from pretrained import write_measured
from pretrained_report import size_of
from speech_files import CHECKPOINT, commands, path_of
from speech_report import add_peers, show
from speech_task import SHAPES
from workers import Worker

HERE = "pip install -e ."
ONNX = "pip install -e .[onnx]"
THERE = "--peers-python, with `pip install torch transformers faster-whisper pywhispercpp`"
PEERS = {
    "ours": Peer("speech_peers.ours", "keras_transformer", HERE, {}, ("saved-model", "none")),
    "ours-litert": Peer("speech_peers.litert", "ai_edge_litert", HERE, {"quantize": "none"},
                        ("litert", "none")),
    "ours-litert-int8": Peer("speech_peers.litert", "ai_edge_litert", HERE, {"quantize": "int8"},
                             ("litert", "int8")),
    "ours-onnx": Peer("speech_peers.onnx", "onnxruntime", ONNX, {"quantize": "none"},
                      ("onnx", "none")),
    "ours-onnx-int8": Peer("speech_peers.onnx", "onnxruntime", ONNX, {"quantize": "int8"},
                           ("onnx", "int8")),
    "faster-whisper": Peer("speech_peers.ctranslate2", "faster-whisper", THERE,
                           {"quantize": "none", "compute_type": "float32"},
                           ("ctranslate2", "none")),
    "faster-whisper-int8": Peer("speech_peers.ctranslate2", "faster-whisper", THERE,
                                {"quantize": "int8", "compute_type": "int8_float32"},
                                ("ctranslate2", "int8")),
    "whisper-cpp-float16": Peer("speech_peers.whisper_cpp", "pywhispercpp", THERE,
                                {"quantize": "float16"}, ("whisper-cpp", "float16")),
    "whisper-cpp-int8": Peer("speech_peers.whisper_cpp", "pywhispercpp", THERE,
                             {"quantize": "int8"}, ("whisper-cpp", "int8")),
    "transformers": Peer("speech_peers.hugging_face", "transformers", THERE, {"compile": False},
                         (CHECKPOINT, "")),
    "transformers-compiled": Peer("speech_peers.hugging_face", "transformers", THERE,
                                  {"compile": True}, (CHECKPOINT, "")),
}  # fmt: skip
INEXACT = {
    "ours-litert-int8", "ours-onnx-int8", "faster-whisper-int8", "whisper-cpp-float16",
    "whisper-cpp-int8",
}  # fmt: skip


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--shape", type=click.Choice([*SHAPES, "all"]), default="whisper-tiny",
              show_default=True, help="Shape to measure; all: whisper-tiny and whisper-base.")
@click.option("--cores", callback=numbers, default="1,2", show_default=True,
              help="Numbers of processors that every peer is pinned to, and of its threads.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True,
              help="Number of repeats, each of one transcription.")
@click.option("--peers", callback=names(PEERS), default=",".join(PEERS), show_default=True,
              help="Implementations to compare.")
@click.option("--peers-python", envvar="KERAS_TRANSFORMER_PEERS_PYTHON",
              help="Python in which the other libraries are installed.")
@KEPT_FILES
@RESULTS
# fmt: on
def main(shape, cores, repeats, peers, peers_python, folder, output):
    """Compare the times of transcribing 30 seconds of sound."""
    theirs = [peer for peer in peers if PEERS[peer].install == THERE]
    if theirs and peers_python is None:
        raise click.UsageError("--peers-python is missing: " + THERE)
    report = {
        "machine": describe_machine(max(cores)), "settings": {"repeats": repeats},
        "commands": [], "speech": [],
    }  # fmt: skip
    try:
        packages = {PEERS[peer].package for peer in theirs}
        packages |= {"ctranslate2"} if "faster-whisper" in packages else set()
        packages |= {"torch"} if "transformers" in packages else set()
        found = versions_in(peers_python, packages, THERE) if theirs else {}
        report["settings"]["versions"] = {**versions(PACKAGES), **found}
        for name in ("whisper-tiny", "whisper-base") if shape == "all" else (shape,):
            with contextlib.ExitStack() as stack:
                place = folder or stack.enter_context(tempfile.TemporaryDirectory())
                place = pathlib.Path(place, name)
                make_files(report, SHAPES[name], place, peers, peers_python)
                for count in cores:
                    compare(report, SHAPES[name], place, peers, peers_python, count, repeats)
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    show(report)


def make_files(report, speech, folder, peers, python):
    """Writes the checkpoint, the files of the other libraries, and ours, unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = list(dict.fromkeys([(CHECKPOINT, ""), *(PEERS[peer].files for peer in peers)]))
    ours = [(kind, how) for kind, how in kinds if kind in ("saved-model", "litert", "onnx")]
    for kind, how in kinds:
        if (kind, how) in ours or path_of(folder, kind, how).exists():
            continue
        name = f"{kind}_{how}" if how else kind
        order = {"speech": dataclasses.asdict(speech), "folder": str(folder), "kind": name}
        with Worker(
            f"writing {name}", "speech_files", order, 1, python if how else sys.executable
        ):
            pass
    write_measured(report, speech.name, folder, commands(speech, folder, ours) if ours else ())


def compare(report, speech, folder, peers, python, cores, repeats):
    """Measures all peers and adds the results to the report."""
    workers, tokens = {}, {}
    with contextlib.ExitStack() as stack:
        for name in peers:
            print(f"{speech.name}, cores {cores}: starting {name}", flush=True)
            peer = PEERS[name]
            order = {
                "speech": dataclasses.asdict(speech), "folder": str(folder), "cores": cores,
                **peer.options,
            }  # fmt: skip
            own = python if peer.install == THERE else sys.executable
            begin = time.perf_counter()
            worker = stack.enter_context(Worker(name, peer.module, order, cores, own))
            worker.metadata["first_seconds"] = time.perf_counter() - begin
            worker.metadata["bytes"] = size_of(path_of(folder, *peer.files))
            workers[name], tokens[name] = worker, worker.metadata["tokens"]
        check_outputs(tokens, speech.tokens)
        agreement = compare_tokens(tokens, INEXACT)
        runs = interleave(workers, dict.fromkeys(peers, 1), repeats, ())
        add_peers(report, speech, cores, workers, runs, agreement)


def check_outputs(tokens, length):
    """Raises a `BenchmarkError` unless each peer has one output of `length` tokens, not all equal.

    Args:
        tokens: Dictionary from a peer to its outputs, lists of token ids.
        length: Number of tokens.
    """
    for peer, outputs in tokens.items():
        counts = [len(row) for row in outputs]
        if counts != [length]:
            raise BenchmarkError(
                f"{peer} emitted outputs of {counts} tokens instead of [{length}]. Fix the peer "
                "before you time it."
            )
        if len({*outputs[0]}) < 2:
            raise BenchmarkError(
                f"{peer} emitted the same token {length} times, which would hide errors. Change "
                "the random weights."
            )


if __name__ == "__main__":
    main()
