"""The report of `decoding.py`: results computed from the times, and printed tables."""

import rich.console
import rich.table
from measurements import spread


def add_limits(report, model, case, times, metadata):
    """Adds the speed limits of the machine, and the shortest possible time of a call."""
    flops = spread([metadata["products"]["flops"] / seconds for seconds in times["products"]])
    memory = spread([metadata["memory"]["bytes"] / seconds for seconds in times["memory"]])
    report["limits"].append(
        {
            **columns(model, case), "flops_per_second": flops, "bytes_per_second": memory,
            "flops": case.flops(model), "bytes": case.length * model.step_bytes,
            "seconds": max(
                case.flops(model) / flops["median"],
                case.length * model.step_bytes / memory["median"],
            ),
        }
    )  # fmt: skip


def add_peers(report, model, case, times, agreement, threads):
    """Adds the results of the peers, with ratios to the fastest other library in each repeat."""
    seconds = {name: spread(measured) for name, measured in times.items()}
    others = [name for name in times if not name.startswith("ours")]
    best = min(others, key=lambda name: seconds[name]["median"], default=None)
    for name in times:
        pairs = zip(times[name], times[best], strict=True) if best else ()
        ratios = [mine / theirs for mine, theirs in pairs]
        report["decoding"].append(
            {
                **columns(model, case), "peer": name, "seconds": seconds[name],
                "seconds_per_token": seconds[name]["median"] / (case.batch_size * case.length),
                "best_peer": best, "ratio": spread(ratios) if ratios else None,
                "agreement": agreement[name], "threads": threads[name],
            }
        )  # fmt: skip


def columns(model, case):
    """Returns the columns of the report that identify a case."""
    return {
        "size": model.size, "search": case.search, "batch": case.batch_size, "length": case.length,
    }  # fmt: skip


def title_of(model, case):
    """Returns a description of a case in one line."""
    return ", ".join(f"{name} {value}" for name, value in columns(model, case).items())


def show(report):
    """Prints the report as tables."""
    console = rich.console.Console()
    console.width = max(console.width, 120)  # in a file, the default would be 80 columns
    table = rich.table.Table("size", "search", "batch", "length", "peer")
    for title in ("ms", "quartiles", "ms/token", "to the best", "tokens"):
        table.add_column(title, justify="right")
    for row in report["decoding"]:
        seconds, ratio = row["seconds"], row["ratio"]
        table.add_row(
            row["size"], row["search"], str(row["batch"]), str(row["length"]), row["peer"],
            f"{1e3 * seconds['median']:,.2f}",
            f"{1e3 * seconds['lower']:,.2f} to {1e3 * seconds['upper']:,.2f}",
            f"{1e3 * row['seconds_per_token']:.3f}",
            f"{ratio['median']:.2f}" if ratio else "", f"{row['agreement']:.0%}",
        )  # fmt: skip
    console.print(table)
    print("to the best: time relative to the fastest peer that is not ours;")
    print("tokens: fraction of tokens equal to those of the first peer.")
    for limit in report["limits"]:
        print(
            f"limit, {limit['size']}, {limit['search']}, batch {limit['batch']}, length "
            f"{limit['length']}: {1e3 * limit['seconds']:,.2f} ms "
            f"({limit['flops'] / 1e9:,.2f} GFLOP at "
            f"{limit['flops_per_second']['median'] / 1e9:,.0f} GFLOP/s; "
            f"{limit['bytes'] / 1e9:,.2f} GB at "
            f"{limit['bytes_per_second']['median'] / 1e9:,.0f} GB/s)"
        )
