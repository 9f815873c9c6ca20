"""Draws the README's chart of decoding times from `results.json`.

python benchmarks/chart.py
"""

import json
import pathlib

import matplotlib
from matplotlib.figure import Figure

FOLDER = pathlib.Path(__file__).resolve().parent
RESULTS = FOLDER / "results.json"
CHART = FOLDER.parent / "docs" / "images" / "speed.svg"
OURS, PEERS = "#3366aa", "#bbbbbb"


def draw(decoding):
    """Returns a figure with one panel for each column; shorter bars are faster."""
    names = [row[0].replace("`", "") for row in decoding["rows"]]
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    panels = figure.subplots(1, len(decoding["columns"]), sharey=True)
    for number, (panel, column) in enumerate(zip(panels, decoding["columns"], strict=True), 1):
        times = [row[number] for row in decoding["rows"]]
        colours = [OURS if name.startswith(("LiteRT", "SavedModel")) else PEERS for name in names]
        bars = panel.barh(names, times, color=colours)
        panel.bar_label(bars, [f"{time:,}" for time in times], padding=3, fontsize=9)
        panel.set_title(f"{column}, ms", fontsize=10)
        panel.set_xlim(0, 1.18 * max(times))
        panel.spines[["top", "right", "bottom"]].set_visible(False)
        panel.tick_params(length=0, labelbottom=False, labelsize=9)
    panels[0].invert_yaxis()  # the first row at the top; the panels share this axis
    return figure


def main():
    decoding = json.loads(RESULTS.read_text(encoding="utf-8"))["decoding"]
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "chart"}):
        draw(decoding).savefig(CHART, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
