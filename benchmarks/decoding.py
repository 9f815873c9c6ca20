"""Time to decode a batch: keras_transformer compared with three other libraries.

    python benchmarks/decoding.py --size both --cores 1 --json results.json

All peers decode the same sentences of 24 tokens with the same random weights to outputs of the same
length, half of the model's maximum length: see `decoding_task.py` for the task and
`decoding_peers/` for the peers. Ours and CTranslate2 run the files that `keras-transformer export`
writes; the commands are printed. `ours-ssru` and so on have SSRUs instead of self-attention in the
decoder: they are another model, which generates other tokens. Before anything is timed, a peer that
computes in float32 must generate the same tokens as the first peer; for the others, the report has
the fraction of equal tokens. Each peer runs in its own process. The peers run in turn, and each
repeat begins with another one. With one processor, times are processor times of the process, which
other programs on the machine affect less.

Two limits are measured in the same repeats: matrix products of size 2048, and reading as much
memory as the weights that every step of the decoder needs. A call in float32 can take no less time
than its operations at the speed of the former, or the weights of all its steps at the speed of the
latter.

The files of a run can be kept, for another run of the same searches and numbers of sentences:

    python benchmarks/decoding.py --size tiny --folder FOLDER
"""

import contextlib
import dataclasses
import json
import pathlib
import tempfile

import click
import numpy as np
from command import (
    KEPT_FILES,
    RESULTS,
    Peer,
    describe_machine,
    interleave,
    look_for,
    names,
    seconds_per_call,
    versions,
)
from decoding_files import commands, run_command
from decoding_peers.parallel import ways
from decoding_report import add_limits, add_peers, show, title_of
from decoding_task import MODELS, Case
from measurements import BenchmarkError
from workers import Worker

OURS = "pip install -e ."
ONNX = "pip install onnx onnxruntime"
PEERS = {
    "ours": Peer("decoding_peers.ours", "keras_transformer", OURS, {"jit_compile": False},
                 (("saved-model", "none"),)),
    "ours-xla": Peer("decoding_peers.ours", "keras_transformer", OURS, {"jit_compile": True},
                     (("saved-model", "jit"),)),
    "ours-litert": Peer(
        "decoding_peers.litert", "ai_edge_litert", "pip install ai-edge-litert",
        {"quantize": "none"}, (("litert", "none"),),
    ),
    "ours-litert-int8": Peer(
        "decoding_peers.litert", "ai_edge_litert", "pip install ai-edge-litert",
        {"quantize": "int8"}, (("litert", "int8"),),
    ),
    "ours-onnx": Peer("decoding_peers.onnx", "onnxruntime", ONNX, {"quantize": "none"},
                      (("onnx", "none"),)),
    "ours-onnx-int8": Peer("decoding_peers.onnx", "onnxruntime", ONNX, {"quantize": "int8"},
                           (("onnx", "int8"),)),
    "ours-ssru": Peer("decoding_peers.ours", "keras_transformer", OURS, {"jit_compile": False},
                      (("saved-model", "none"),)),
    "ours-ssru-xla": Peer("decoding_peers.ours", "keras_transformer", OURS, {"jit_compile": True},
                          (("saved-model", "jit"),)),
    "ours-ssru-litert": Peer(
        "decoding_peers.litert", "ai_edge_litert", "pip install ai-edge-litert",
        {"quantize": "none"}, (("litert", "none"),),
    ),
    "ours-ssru-litert-int8": Peer(
        "decoding_peers.litert", "ai_edge_litert", "pip install ai-edge-litert",
        {"quantize": "int8"}, (("litert", "int8"),),
    ),
    "ours-ssru-onnx": Peer("decoding_peers.onnx", "onnxruntime", ONNX, {"quantize": "none"},
                           (("onnx", "none"),)),
    "ctranslate2": Peer(
        "decoding_peers.ctranslate2", "ctranslate2", "pip install ctranslate2",
        {"quantize": "none"}, (("ctranslate2", "none"),),
    ),
    "ctranslate2-int8": Peer(
        "decoding_peers.ctranslate2", "ctranslate2", "pip install ctranslate2",
        {"quantize": "int8"}, (("ctranslate2", "int8"),),
    ),
    "ctranslate2-scores": Peer(  # greedy search computes the score of its output only on request
        "decoding_peers.ctranslate2", "ctranslate2", "pip install ctranslate2",
        {"quantize": "none", "scores": True}, (("ctranslate2", "none"),),
    ),
    "ctranslate2-int8-scores": Peer(
        "decoding_peers.ctranslate2", "ctranslate2", "pip install ctranslate2",
        {"quantize": "int8", "scores": True}, (("ctranslate2", "int8"),),
    ),
    "marian": Peer(
        "decoding_peers.marian", "transformers", "pip install torch transformers",
        {"precision": "float32"},
    ),
    "marian-bfloat16": Peer(
        "decoding_peers.marian", "transformers", "pip install torch transformers",
        {"precision": "bfloat16"},
    ),
    "kerashub": Peer(
        "decoding_peers.kerashub", "keras_hub", "pip install keras-hub", {"jit_compile": False}
    ),
    "kerashub-xla": Peer(
        "decoding_peers.kerashub", "keras_hub", "pip install keras-hub", {"jit_compile": True}
    ),
}  # fmt: skip
SSRU = {name for name in PEERS if name.startswith("ours-ssru")}
INEXACT = {
    *("ours-litert-int8", "ours-ssru-litert-int8", "ours-onnx-int8", "ctranslate2-int8"),
    *("ctranslate2-int8-scores", "marian-bfloat16"),
}
SEARCHES = {"greedy": 1, "beam": 4}
PACKAGES = (
    "tensorflow", "keras", "ai-edge-litert", "onnxruntime", "ctranslate2", "torch", "transformers",
    "keras-hub",
)  # fmt: skip
PRODUCTS, READS = 10, 100  # per repeat, to measure the limits


def numbers(context, parameter, value):
    """Click callback for positive integers separated by commas."""
    try:
        chosen = [int(number) for number in value.split(",")]
    except ValueError:
        chosen = [0]
    if min(chosen) < 1:
        raise click.BadParameter(f"{value!r} is not a list of positive numbers.")
    return list(dict.fromkeys(chosen))


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", type=click.Choice([*MODELS, "both"]), default="tiny", show_default=True,
              help="Size of the model; both: tiny and base.")
@click.option("--cores", type=click.IntRange(1), default=1, show_default=True,
              help="Number of processors that every peer is pinned to, and of its threads.")
@click.option("--repeats", type=click.IntRange(1), default=10, show_default=True,
              help="Number of repeats.")
@click.option("--seconds", type=click.FloatRange(0), default=0.5, show_default=True,
              help="Approximate duration of a repeat of a peer, at least one call.")
@click.option("--peers", callback=names(PEERS), default=",".join(PEERS), show_default=True,
              help="Implementations to compare.")
@click.option("--searches", callback=names(SEARCHES), default=",".join(SEARCHES),
              show_default=True, help="Searches to compare; beam: a beam of 4.")
@click.option("--batches", callback=numbers, default="1,32", show_default=True,
              help="Numbers of sentences in a batch.")
@click.option("--lengths", callback=numbers, default="32", show_default=True,
              help="Lengths of the outputs in tokens, such as 32,64,128,256.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Seed of the weights and the sentences.")
@KEPT_FILES
@RESULTS
# fmt: on
def main(size, cores, repeats, seconds, peers, searches, batches, lengths, seed, folder, output):
    """Compare the decoding times of implementations."""
    try:
        installed, skipped = look_for(peers, PEERS)
        report = {
            "machine": describe_machine(cores),
            "settings": {
                "cores": cores, "repeats": repeats, "seconds": seconds, "seed": seed,
                "versions": versions(PACKAGES),
            },
            "skipped": skipped, "commands": [], "decoding": [], "limits": [],
        }  # fmt: skip
        cases = [Case(SEARCHES[search], batch, 0) for search in searches for batch in batches]
        for name in ("tiny", "base") if size == "both" else (size,):
            for length in lengths:
                model = dataclasses.replace(MODELS[name], length=length, seed=seed)
                with contextlib.ExitStack() as stack:
                    place = folder or stack.enter_context(tempfile.TemporaryDirectory())
                    place = pathlib.Path(place, f"{name}-{length}")
                    measure(report, model, cases, place, installed, cores, repeats, seconds)
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    show(report)


def measure(report, model, cases, folder, peers, cores, repeats, seconds):
    """Writes the files of a model that do not exist yet and measures all cases."""
    for decoder in dict.fromkeys(_decoder(peer) for peer in peers):
        order = _order(model, folder, cores, decoder)
        place = pathlib.Path(order["folder"])
        if not (place / "run").exists():
            place.mkdir(parents=True, exist_ok=True)
            with Worker("the run", "decoding_files", order, cores):
                pass
        names_of = [peer for peer in peers if _decoder(peer) == decoder]
        kinds = list(dict.fromkeys(kind for peer in names_of for kind in PEERS[peer].files))
        for command in commands(model, place, kinds, *_shapes(cases, cores)):
            line = " ".join(command).replace(str(folder), "FOLDER")
            print(f"keras-transformer {line}", flush=True)
            report["commands"].append(line)
            if not pathlib.Path(command[3]).exists():
                run_command(command)
    for case in cases:
        case = dataclasses.replace(case, length=model.length)
        compare(report, model, case, folder, peers, cores, repeats, seconds)


def _decoder(peer):
    return "ssru" if peer in SSRU else "self_attention"


def _order(model, folder, cores, decoder="self_attention"):
    model = dataclasses.replace(model, decoder=decoder)
    folder = folder / "ssru" if decoder == "ssru" else folder
    return {"model": dataclasses.asdict(model), "folder": str(folder), "cores": cores}


def _shapes(cases, cores):
    """Returns the beam sizes of the cases, and the batch sizes, also of batches in parts."""
    sizes = {
        len(rows)
        for case in cases
        for parts, _ in ways(cores, case.batch_size)
        for rows in np.array_split(range(case.batch_size), parts)
    }
    return sorted({case.beam_size for case in cases}), sorted(sizes)


def compare(report, model, case, folder, peers, cores, repeats, seconds):
    """Measures all peers in one case and adds the results to the report."""
    with contextlib.ExitStack() as stack:

        def start(name, module, **more):
            print(f"{title_of(model, case)}: starting {name}", flush=True)
            order = _order(model, folder, cores, _decoder(name))
            return Worker(name, module, {**order, "case": dataclasses.asdict(case), **more}, cores)

        workers = {
            "products": stack.enter_context(start("products", "limit", precision="float32")),
            "memory": stack.enter_context(start("memory", "memory", bytes=model.step_bytes)),
        }
        limits = tuple(workers)
        for name in peers:
            peer = PEERS[name]
            workers[name] = stack.enter_context(start(name, peer.module, **peer.options))
        check_lengths({name: workers[name].metadata["tokens"] for name in peers}, case.length)
        tokens = {name: workers[name].metadata["tokens"] for name in peers}
        agreement = {}
        for group in ([name for name in peers if name not in SSRU], sorted(SSRU & {*peers})):
            if group:
                agreement |= compare_tokens({name: tokens[name] for name in group})
        calls = {"products": PRODUCTS, "memory": READS}
        for name in peers:
            calls[name] = max(1, round(seconds / workers[name].run(1)["seconds"]))
        runs = interleave(workers, calls, repeats, limits)
    times = seconds_per_call(runs, calls, cores)
    metadata = {name: worker.metadata for name, worker in workers.items()}
    add_limits(report, model, case, times, metadata)
    threads = {name: metadata[name].get("threads") for name in peers}
    add_peers(report, model, case, {name: times[name] for name in peers}, agreement, threads)


def check_lengths(tokens, length):
    """Raises a `BenchmarkError` unless all outputs have `length` tokens, the end included."""
    for peer, rows in tokens.items():
        for row in rows:
            if len(row) != length - 1:
                raise BenchmarkError(
                    f"{peer} generated {len(row)} tokens and the end, not {length} in all. Fix the "
                    "peer before you time it, or try another --seed."
                )


def compare_tokens(tokens, inexact=INEXACT):
    """Returns the fraction of tokens of each peer that are equal to those of the first peer.

    Args:
        tokens: Dictionary from a peer to rows of token ids.
        inexact: Peers that do not compute in float32.

    Raises:
        BenchmarkError: If a peer that computes in float32 generated a different token.
    """
    first, *others = tokens
    shares = {first: 1.0}
    for other in others:
        pairs = list(zip(tokens[first], tokens[other], strict=True))
        same = [a == b for mine, theirs in pairs for a, b in zip(mine, theirs, strict=True)]
        shares[other] = sum(same) / len(same)
        if shares[other] < 1 and not inexact & {first, other}:
            raise BenchmarkError(
                f"Only {shares[other]:.1%} of the tokens of {other} are equal to those of {first}. "
                "Fix the peer before you time it, or try another --seed if it is a near tie."
            )
    return shares


if __name__ == "__main__":
    main()
