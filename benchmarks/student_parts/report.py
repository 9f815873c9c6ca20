"""The report of `students.py`: results computed from the times, and the printed table."""

import pathlib

import rich.console
import rich.table
from measurements import spread

from student_parts.task import SOURCE_LENGTH

RIVALS = {"ours": "bergamot", "ours-onnx": "bergamot", "ours-browser": "bergamot-browser"}


def add_engines(report, student, case, measured):
    """Adds the results of the engines in one case.

    Args:
        report: The report.
        student: The `Student`.
        case: Dictionary of `batch` and `shortlist`.
        measured: Dictionary from an engine to a dictionary of its `seconds`, a list with one number
            per repeat, its `peak_bytes`, its `files` and the `agreement` of its tokens with those
            in float32.
    """
    words = case["batch"] * (SOURCE_LENGTH - 1)
    for name, results in measured.items():
        rival = measured.get(RIVALS.get(name))
        pairs = zip(results["seconds"], rival["seconds"], strict=True) if rival else ()
        ratios = [theirs / mine for mine, theirs in pairs]
        report["students"].append(
            {
                "size": student.size, **case, "engine": name,
                "words_per_second": spread([words / time for time in results["seconds"]]),
                "seconds": spread(results["seconds"]),
                "rival": RIVALS.get(name) if rival else None,
                "ratio": spread(ratios) if ratios else None,
                "file_bytes": sum(pathlib.Path(file).stat().st_size for file in results["files"]),
                "peak_bytes": results["peak_bytes"], "agreement": results["agreement"],
            }
        )  # fmt: skip


def show(report):
    """Prints the report as a table."""
    console = rich.console.Console()
    console.width = max(console.width, 120)  # in a file, the default would be 80 columns
    table = rich.table.Table("batch", "shortlist", "engine")
    for title in ("words/s", "quartiles", "ms", "times", "MB file", "MB memory", "tokens"):
        table.add_column(title, justify="right")
    for row in report["students"]:
        words, ratio, peak = row["words_per_second"], row["ratio"], row["peak_bytes"]
        table.add_row(
            str(row["batch"]), "yes" if row["shortlist"] else "no", row["engine"],
            f"{words['median']:,.0f}", f"{words['lower']:,.0f} to {words['upper']:,.0f}",
            f"{1e3 * row['seconds']['median']:,.1f}", f"{ratio['median']:.2f}" if ratio else "",
            f"{row['file_bytes'] / 1e6:.1f}", f"{peak / 1e6:,.0f}" if peak else "",
            f"{row['agreement']:.0%}",
        )  # fmt: skip
    console.print(table)
    print(
        "words/s: words of the sources; times: speed relative to Bergamot in the same environment; "
        "tokens: fraction equal to those of the model in float32."
    )
    for batch, count in report["candidates"].items():
        print(f"candidates of the shortlist, batch {batch}: {count:,}")
