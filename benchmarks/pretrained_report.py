"""Tables of the results of `pretrained.py`."""

import markdown_table
import rich.console
import rich.table


def size_of(path):
    """Returns the size of a file, or of all files in a folder, in bytes."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def show(report):
    """Prints the report."""
    console = rich.console.Console()
    console.width = max(console.width, 160)  # in a file, the default would be 80 columns
    _show_commands(report, console)
    table = rich.table.Table("shape", "search", "batch", "peer")
    titles = ("ms", "quartiles", "tokens/s", "to the best", "same", "MB of file", "first, s", "MB")
    for title in titles:
        table.add_column(title, justify="right")
    for row in report["decoding"]:
        seconds, ratio = row["seconds"], row["ratio"]
        table.add_row(
            row["size"], row["search"], str(row["batch"]), row["peer"],
            f"{1e3 * seconds['median']:,.1f}",
            f"{1e3 * seconds['lower']:,.1f} to {1e3 * seconds['upper']:,.1f}",
            f"{1 / row['seconds_per_token']:,.0f}",
            f"{ratio['median']:.2f}" if ratio else "", f"{row['agreement']:.0%}",
            f"{row['bytes'] / 1e6:,.1f}", f"{row['first_seconds']:.1f}",
            f"{row['peak_bytes'] / 1e6:,.0f}",
        )  # fmt: skip
    console.print(table)
    print(
        "to the best: time relative to the fastest peer that is not ours; same: fraction of tokens"
    )
    print("equal to those of the first peer; first: from the start of a process to its first")
    print("answer; MB: peak memory.")
    for shape in dict.fromkeys(row["size"] for row in report["decoding"]):
        rows = [row for row in report["decoding"] if row["size"] == shape]
        print(f"\n{shape}:\n\n{markdown_table.table(rows, _column)}")


def _column(row):
    return f"{row['search']}, {row['batch']}"


def _show_commands(report, console):
    if not report["commands"]:
        return
    table = rich.table.Table("shape", "command")
    for title in ("s", "MB of memory", "MB written"):
        table.add_column(title, justify="right")
    for row in report["commands"]:
        table.add_row(
            row["shape"], " ".join(row["command"].split()[:2]) + _how(row["command"]),
            f"{row['seconds']:.0f}", f"{row['peak_bytes'] / 1e6:,.0f}",
            f"{row['bytes'] / 1e6:,.1f}",
        )  # fmt: skip
    console.print(table)


def _how(command):
    """Returns the options that distinguish commands of one kind."""
    return " --jit" if "--jit" in command else " --quantize int8" * ("int8" in command)
