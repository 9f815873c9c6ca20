"""Memory of processes that decode with pretrained models of real sizes, and of their exports.

    python benchmarks/decoding_memory.py --peers-python PYTHON --json results.json

Checkpoints, exports, sentences and libraries are those of `pretrained.py`. Each value is the peak
memory of a process that loads an export and decodes one batch several times, pinned to one
processor. The values of several processes differ, because the C library keeps more or less of the
memory that has been freed. A second table has what is left without the memory that the process had
after its imports: the part of the model.

The .tflite files of `pretrained.py` have a signature for each search, batch size and two source
lengths. Every signature takes memory, whether or not it is called. Each case is therefore measured
again with a file that has only its own signature, as an app would use it. The length of that
signature is the maximum length of the model, to which sources are padded; `--lengths 24,64` gives
the file a shorter one as well.
"""

import contextlib
import dataclasses
import json
import pathlib
import statistics
import tempfile

import click
import pretrained
from command import KEPT_FILES, PEERS_PYTHON, RESULTS, describe_machine, names
from decoding import SEARCHES, numbers
from decoding_files import LENIENT, path_of
from decoding_task import Case
from markdown_table import TITLES
from measurements import BenchmarkError
from pretrained import PEERS, SHAPES
from pretrained_report import size_of
from workers import Worker

DEFAULT = "ours,ours-litert,ours-litert-int8,ctranslate2,ctranslate2-int8"
LITERT = "ours-litert"  # begins the names of the peers whose files have signatures
THEIRS = "ctranslate2"  # begins the names of the peers to compare with
SPREAD = 0.02  # relative difference from which on a table shows the smallest and largest value


def _lengths(context, parameter, value):
    return None if value is None else numbers(context, parameter, value)


# fmt: off
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--shape", type=click.Choice(list(SHAPES)), default="opus-mt", show_default=True,
              help="Checkpoint to measure.")
@click.option("--peers", callback=names(PEERS), default=DEFAULT, show_default=True,
              help="Implementations to compare.")
@click.option("--searches", callback=names(SEARCHES), default=",".join(SEARCHES),
              show_default=True, help="Searches to compare; beam: a beam of 4.")
@click.option("--batches", callback=numbers, default="1,32", show_default=True,
              help="Numbers of sentences in a batch.")
@click.option("--lengths", callback=_lengths, metavar="N,N,...",
              help="Source lengths of the files for one case. Default: the model's maximum.")
@click.option("--calls", type=click.IntRange(1), default=4, show_default=True,
              help="Number of times that a process decodes the batch.")
@click.option("--processes", type=click.IntRange(1), default=3, show_default=True,
              help="Number of processes for each value.")
@PEERS_PYTHON
@KEPT_FILES
@RESULTS
# fmt: on
def main(
    shape, peers, searches, batches, lengths, calls, processes, peers_python, folder, output
):
    """Compare the memory that libraries need to decode with pretrained models."""
    chosen = SHAPES[shape]
    lengths = lengths or [chosen.model.max_length]
    cases = [
        Case(SEARCHES[search], batch, chosen.tokens, chosen.model.source_length)
        for search in searches
        for batch in batches
    ]
    try:
        pythons, skipped, found = pretrained.find_peers(peers, peers_python)
        pythons = {peer: path for peer, path in pythons.items() if peer in chosen.peers}
        report = {
            "machine": describe_machine(1),
            "settings": {"calls": calls, "processes": processes, "versions": found},
            "skipped": skipped, "commands": [], "memory": [],
        }  # fmt: skip
        with contextlib.ExitStack() as stack:
            place = folder or stack.enter_context(tempfile.TemporaryDirectory())
            place = pathlib.Path(place, chosen.model.size)
            pretrained.make_files(report, chosen, cases, place, pythons, 1)
            for case in cases:
                for peer, python in pythons.items():
                    places = {"all": place}
                    if peer.startswith(LITERT):
                        alone = write_alone(report, chosen, case, place, peer, lengths)
                        places[len(lengths)] = alone
                    for signatures, own in places.items():
                        row = measure(chosen, case, own, peer, python, calls, processes)
                        report["memory"].append({**row, "signatures": signatures})
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    if output:
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if report["commands"]:
        print(f"\n{table_of_exports(report['commands'])}")
    print(f"\n{table(report['memory'])}\n")
    print("MB of memory; in parentheses, relative to CTranslate2 in the same precision.")
    print(f"\n{table(of_models(report['memory']))}\n")
    print("The same without the memory of each process after its imports.")


def write_alone(report, shape, case, folder, peer, lengths):
    """Writes a .tflite file with the signatures of one case, unless it exists.

    Returns:
        The folder of the file, whose name there is that of the file with all signatures.
    """
    ((kind, quantize),) = PEERS[peer].files
    name = "_".join(map(str, (case.search, case.batch_size, *lengths)))
    place = folder / name.replace(" ", "_")
    place.mkdir(exist_ok=True)
    path, longest = path_of(place, kind, quantize), str(shape.model.max_length)
    beam = ["--beam", str(case.beam_size), "--n-best", "1", "--beam-only"]
    line = [
        *("export", kind, str(folder / "run"), str(path)),
        *("--sentences", str(folder / "sentences.txt")),
        *(beam if case.beam_size > 1 else ["--greedy"]),
        *("--batch-sizes", str(case.batch_size), "--lengths", ",".join(map(str, lengths))),
        *("--max-length", longest),
    ]
    if quantize != "none":
        line += ["--quantize", quantize, *LENIENT]
    pretrained.write_measured(report, shape.model.size, folder, [(line, path)])
    return place


def measure(shape, case, folder, peer, python, calls, processes):
    """Returns a row of the report: the peak memory of several processes that decode a batch.

    Args:
        shape: The `Shape`.
        case: The `Case`.
        folder: Folder of the files of the peer.
        peer, python: Name of the peer, and path of the Python that runs it.
        calls, processes: Number of calls in a process, and number of processes.
    """
    order = {**pretrained.order_of(shape, folder, 1), "case": dataclasses.asdict(case)}
    order |= PEERS[peer].options
    kinds, values, starts = PEERS[peer].files, [], []
    for _ in range(processes):
        with Worker(peer, PEERS[peer].module, order, 1, python) as worker:
            values.append(worker.run(calls - 1)["peak_bytes"])  # the first call was in `make`
            starts.append(worker.metadata["start_bytes"])
    file = path_of(folder, *kinds[0]) if kinds else folder / "checkpoint"
    return {
        "shape": shape.model.size, "peer": peer, "search": case.search, "batch": case.batch_size,
        "bytes": size_of(file), "peak_bytes": values, "start_bytes": starts,
    }  # fmt: skip


def of_models(rows):
    """Returns rows of the report with the memory that processes had not yet used at the start."""
    return [
        {**row, "peak_bytes": [
            peak - start for peak, start in zip(row["peak_bytes"], row["start_bytes"], strict=True)
        ]}
        for row in rows
    ]  # fmt: skip


def table(rows):
    """Returns a table in Markdown of the memory of peers, with a column for each case."""
    columns = list(dict.fromkeys(map(_case, rows)))
    cells = {(_title(row), _case(row)): row for row in rows}
    theirs = {(row["peer"], _case(row)): row for row in rows}
    lines = [["", *columns, "MB of file"], ["---"] * (len(columns) + 2)]
    for title in dict.fromkeys(map(_title, rows)):
        own = [cells.get((title, column)) for column in columns]
        sizes = [row["bytes"] for row in own if row]
        texts = [row and _cell(row, theirs.get((_compared(row), _case(row)))) for row in own]
        lines.append([title, *(text or "" for text in texts), _range(sizes, 1)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def table_of_exports(rows):
    """Returns a table in Markdown of the commands that wrote files."""
    lines = [["command", "s", "MB of memory", "MB of file"], ["---"] * 4]
    for row in rows:
        peak, size = f"{row['peak_bytes'] / 1e6:,.0f}", f"{row['bytes'] / 1e6:.1f}"
        lines.append([f"`{row['command']}`", f"{row['seconds']:.0f}", peak, size])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _case(row):
    return f"{row['search']}, {row['batch']}"


def _title(row):
    count = row["signatures"]
    alone = {"all": "", 1: ", one signature"}.get(count, f", {count} signatures")
    return TITLES[row["peer"]] + alone


def _compared(row):
    """Returns the name of the peer to compare with, `None` for that peer itself."""
    name = THEIRS + ("-int8" if row["peer"].endswith("int8") else "")
    return None if row["peer"] == name else name


def _cell(row, other):
    text = _range(row["peak_bytes"], 0)
    if other is None:
        return text
    mine, theirs = (statistics.median(each["peak_bytes"]) for each in (row, other))
    return f"{text} ({mine / theirs:.2f})"


def _range(values, digits):
    """Returns the median of values in MB, or the smallest and the largest if they differ much."""
    low, high = min(values) / 1e6, max(values) / 1e6
    if high > (1 + SPREAD) * low:
        return f"{low:,.{digits}f} to {high:,.{digits}f}"
    return f"{statistics.median(values) / 1e6:,.{digits}f}"


if __name__ == "__main__":
    main()
