"""The report of `encoders.py`: results computed from the times, and a printed table."""

import statistics

import markdown_table
import rich.console
import rich.table
from measurements import spread


def add_peers(report, encoder, case, workers, runs, steps, errors):
    """Adds the results of the peers, with ratios to the fastest other one of the same precision."""
    calls = {name: count for name, (_, count) in steps.items()}
    times = {
        name: [run["processor_seconds"] / calls[name] for run in runs[name]] for name in workers
    }
    for name, worker in workers.items():
        best = fastest_rival(name, times)
        pairs = zip(times[name], times[best], strict=True) if best else ()
        ratios = [mine / theirs for mine, theirs in pairs]
        report["encoders"].append(
            {
                "shape": encoder.name, "case": case.title, "batch": case.batch,
                "length": case.length, "group": case.group, "peer": name,
                "seconds": spread(times[name]),
                "wall_seconds": spread([run["seconds"] / calls[name] for run in runs[name]]),
                "rival": best, "ratio": spread(ratios) if ratios else None,
                "error": errors[name], "bytes": worker.metadata["bytes"],
                "first_seconds": worker.metadata["first_seconds"],
                "peak_bytes": max(run["peak_bytes"] for run in runs[name]),
            }
        )  # fmt: skip


def fastest_rival(name, times):
    """Returns the fastest peer that is not ours and has the precision of `name`, or `None`."""
    rivals = [
        other
        for other in times
        if not other.startswith("ours") and ("int8" in other) == ("int8" in name)
    ]
    return min(rivals, key=lambda other: statistics.median(times[other]), default=None)


def show(report):
    """Prints the report."""
    console = rich.console.Console()
    console.width = max(console.width, 140)  # in a file, the default would be 80 columns
    table = rich.table.Table("shape", "texts x tokens", "peer")
    for title in ("ms", "quartiles", "to the best", "error", "MB of file", "first, s", "MB"):
        table.add_column(title, justify="right")
    for row in report["encoders"]:
        seconds, ratio = row["seconds"], row["ratio"]
        table.add_row(
            row["shape"], row["case"], row["peer"], f"{1e3 * seconds['median']:,.2f}",
            f"{1e3 * seconds['lower']:,.2f} to {1e3 * seconds['upper']:,.2f}",
            f"{ratio['median']:.2f}" if ratio else "", f"{row['error']:.1e}",
            f"{row['bytes'] / 1e6:,.1f}", f"{row['first_seconds']:.1f}",
            f"{row['peak_bytes'] / 1e6:,.0f}",
        )  # fmt: skip
    console.print(table)
    print("ms: processor time; to the best: time relative to the fastest peer that is not ours and")
    print("has the same precision; error: largest difference from the outputs of the first peer;")
    print("first: from the start of a process to its first answer; MB: peak memory.")
    for shape in dict.fromkeys(row["shape"] for row in report["encoders"]):
        rows = [row for row in report["encoders"] if row["shape"] == shape]
        print(f"\n{shape}:\n\n{markdown_table.table(rows, lambda row: row['case'])}")
