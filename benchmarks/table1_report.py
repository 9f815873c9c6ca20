"""Tables in Markdown and a plot of the results of `table1.py`."""

import math

from table1_formulas import FORMULAS

from keras_transformer.plots.figure import line_style, new_figure, styled

MODES = {"graph": "`tf.function`", "xla": "XLA"}
PHASES = {"forward": "forward", "training": "forward and backward"}
REFERENCE = "self_attention"


def tables(report):
    """Returns all tables of a report in Markdown, each after a line that names it."""
    lengths = report["settings"]["lengths"]
    parts = [
        ("Sequential operations of a forward pass", _counts(report, _operations, "operations")),
        ("Sequential operations, forward and backward", _counts(report, _both_ways, "operations")),
        ("Layers until the last position depends on the first one", _counts(report, _layers, None)),
        ("Length of the longest path", _counts(report, _path, "path")),
        ("Positions that the last one depends on in one layer", _counts(report, _reach, None)),
        ("&nbsp; with at least a thousandth of the largest gradient",
         _counts(report, _significant, None)),
        ("Millions of multiplications of a forward pass",
         _counts(report, _multiplications, "complexity")),
        ("&nbsp; relative to the number by formula", _counts(report, _of_formula, None)),
    ]  # fmt: skip
    for phase, title in PHASES.items():
        for mode in dict.fromkeys(row["mode"] for row in report["times"]):
            own = [row for row in report["times"] if row["mode"] == mode]
            place = f"{title}, {MODES[mode]}"
            parts.append((f"Milliseconds, {place}", _grid(own, lengths, _milliseconds(phase))))
            if phase == "training":
                parts.append((f"MB, {place}", _grid(own, lengths, _megabytes)))
    crossings = [f"- {line}" for line in crossover_lines(report)]
    texts = [f"{title}:\n\n{table}" for title, table in parts]
    return "\n\n".join([*texts, "\n".join(crossings)])


def _counts(report, cell, column):
    """Returns a table of counts, with the formulas of a column of Table 1 unless it is `None`."""
    lengths = report["settings"]["lengths"]
    lines = []
    for name, rows in report["counts"].items():
        formula = FORMULAS.get(name)
        own = [f"O({getattr(formula, column)})" if formula else ""] if column else []
        lines.append([f"`{name}`", *own, *map(cell, rows)])
    titles = ["mixer", *(["Table 1"] if column else []), *(f"{n:,}" for n in lengths)]
    return _markdown(titles, lines)


def _grid(rows, lengths, cell):
    cells = {(row["mixer"], row["positions"]): cell(row) for row in rows}
    mixers = dict.fromkeys(row["mixer"] for row in rows)
    lines = [[f"`{name}`", *(cells.get((name, n), "") for n in lengths)] for name in mixers]
    return _markdown(["mixer", *(f"{n:,}" for n in lengths)], lines)


def _markdown(titles, lines):
    table = [titles, ["---"] * len(titles), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in table)


def _operations(row):
    return f"{row['forward']['operations']:,}"


def _both_ways(row):
    return f"{row['training']['operations']:,}"


def _layers(row):
    return "" if row["layers"] is None else f"{row['layers']:,}"


def _path(row):
    return "" if row["path"] is None else f"{row['path']:,}"


def _reach(row):
    """Returns the reach, with a sign where the gradient underflows before it reaches the end."""
    return f"{row['last']['reach']:,}{'*' if row['last']['vanishes'] else ''}"


def _significant(row):
    return f"{row['last']['significant']:,}"


def _multiplications(row):
    return f"{row['forward']['multiplications'] / 1e6:,.1f}"


def _of_formula(row):
    return f"{row['forward']['multiplications'] / row['formula']:,.2f}" if row["formula"] else ""


def _milliseconds(phase):
    def cell(row):
        if "seconds" not in row:
            return "fails"
        value = 1e3 * row["seconds"][phase]["median"]
        return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"

    return cell


def _megabytes(row):
    return "" if row.get("memory") is None else f"{row['memory'] / 1e6:,.0f}"


def crossovers(report, mode, phase):
    """Returns where self-attention begins to take longer than each other mixer, by name.

    Between two measured lengths, times are taken to be powers of the length. `None`: nowhere in
    the measured range; the first length: everywhere.
    """
    times = _times(report, mode, phase)
    reference = times.pop(REFERENCE, {})
    return {name: _crossing(reference, own) for name, own in times.items()} if reference else {}


def _crossing(reference, own):
    before = None
    for length in sorted({*reference} & {*own}):
        difference = math.log(reference[length] / own[length])
        if difference > 0:
            if before is None:
                return length
            share = before[1] / (before[1] - difference)
            return round(before[0] * (length / before[0]) ** share)
        before = length, difference
    return None


def crossover_lines(report):
    """Returns a sentence for each mixer and mode about where self-attention becomes slower."""
    lines = []
    for mode in dict.fromkeys(row["mode"] for row in report["times"]):
        times = _times(report, mode, "training")
        for name, length in crossovers(report, mode, "training").items():
            common = {*times[REFERENCE]} & {*times[name]}  # fewer, where XLA fails
            first, last = min(common), max(common)
            where = (
                f"up to {last:,} positions self-attention is faster" if length is None
                else f"from {first:,} positions self-attention is slower" if length == first
                else f"self-attention is slower from about {length:,} positions"
            )  # fmt: skip
            lines.append(f"`{name}`, {MODES[mode]}, forward and backward: {where}")
    return lines


def _times(report, mode, phase):
    """Returns the median seconds of each mixer by length."""
    times = {}
    for row in report["times"]:
        if row["mode"] == mode and "seconds" in row:
            own = times.setdefault(row["mixer"], {})
            own[row["positions"]] = row["seconds"][phase]["median"]
    return times


@styled
def draw(report):
    """Returns a figure: milliseconds of forward and backward pass over the number of positions."""
    modes = list(dict.fromkeys(row["mode"] for row in report["times"]))
    width, lengths = report["settings"]["width"], report["settings"]["lengths"]
    figure = new_figure(3.4 * len(modes) + 1.2, 3.2)
    panels = figure.subplots(1, len(modes), sharey=True, squeeze=False)[0]
    names = {name: number for number, name in enumerate(report["counts"])}
    for panel, mode in zip(panels, modes, strict=True):
        for name, own in _times(report, mode, "training").items():
            style = line_style(names[name])
            milliseconds = [1e3 * seconds for seconds in own.values()]
            panel.plot([*own], milliseconds, marker="o", label=name, **style)
        panel.axvline(width, color="#999999", linewidth=0.8)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks(lengths, [f"{n:,}" for n in lengths])
        panel.set_xlabel(f"positions n; the vertical line is n = d = {width}")
        panel.set_title(MODES[mode].strip("`"))
        panel.grid(alpha=0.4)
    panels[0].set_ylabel("milliseconds of a layer, forward and backward")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure
