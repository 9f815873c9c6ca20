"""The report of `speech.py`: results computed from the times, and a printed table."""

import markdown_table
import rich.console
import rich.table
from command import seconds_per_call
from encoder_report import fastest_rival
from measurements import spread


def add_peers(report, speech, cores, workers, runs, agreement):
    """Adds the results of the peers, with ratios to the fastest other one of the same precision."""
    times = seconds_per_call(runs, dict.fromkeys(workers, 1), cores)
    for name, worker in workers.items():
        best = fastest_rival(name, times)
        pairs = zip(times[name], times[best], strict=True) if best else ()
        ratios = [mine / theirs for mine, theirs in pairs]
        report["speech"].append(
            {
                "shape": speech.name, "cores": cores, "peer": name, "seconds": spread(times[name]),
                "wall_seconds": spread([run["seconds"] for run in runs[name]]),
                "processor_seconds": spread([run["processor_seconds"] for run in runs[name]]),
                "rival": best, "ratio": spread(ratios) if ratios else None,
                "agreement": agreement[name], "bytes": worker.metadata["bytes"],
                "first_seconds": worker.metadata["first_seconds"],
                "peak_bytes": max(run["peak_bytes"] for run in runs[name]),
            }
        )  # fmt: skip


def show(report):
    """Prints the report."""
    console = rich.console.Console()
    console.width = max(console.width, 140)  # in a file, the default would be 80 columns
    table = rich.table.Table("shape", "cores", "peer")
    for title in ("ms", "quartiles", "to the best", "same", "MB of file", "first, s", "MB"):
        table.add_column(title, justify="right")
    for row in report["speech"]:
        seconds, ratio = row["seconds"], row["ratio"]
        table.add_row(
            row["shape"], str(row["cores"]), row["peer"], f"{1e3 * seconds['median']:,.0f}",
            f"{1e3 * seconds['lower']:,.0f} to {1e3 * seconds['upper']:,.0f}",
            f"{ratio['median']:.2f}" if ratio else "", f"{row['agreement']:.0%}",
            f"{row['bytes'] / 1e6:,.1f}", f"{row['first_seconds']:.1f}",
            f"{row['peak_bytes'] / 1e6:,.0f}",
        )  # fmt: skip
    console.print(table)
    print("ms: processor time with one core, otherwise wall-clock time; to the best: time relative")
    print("to the fastest peer that is not ours and has the same precision; same: fraction of")
    print("tokens equal to those of the first peer; first: from the start of a process to its")
    print("first transcript; MB: peak memory.")
    for shape in dict.fromkeys(row["shape"] for row in report["speech"]):
        rows = [row for row in report["speech"] if row["shape"] == shape]
        print(f"\n{shape}:\n\n{markdown_table.table(rows, _column)}")


def _column(row):
    return f"{row['cores']} core" + "s" * (row["cores"] > 1)
