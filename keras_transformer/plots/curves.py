"""Plots of learning curves, of one run or of several runs."""

import math
from typing import TYPE_CHECKING, Any

from keras_transformer.plots.figure import line_style, new_figure, styled, verbatim

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

COLUMNS = 3  # panels in a row


@styled
def curve_figure(history: Any, task: Any) -> "Figure":
    """Draws the training and validation curves of a run; a metric without values has no panel.

    Args:
        history: The `History` of the run.
        task: Its `Task`, which names the metrics.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
    """
    (loss, (title, scale)), *others = _validated(task).items()
    panels = {
        (title, scale): {"train/loss": "training", loss: "validation"},
        **{panel: {name: "validation"} for name, panel in others},
        ("learning rate", "linear"): {"train/learning_rate": "training"},
    }
    panels = {
        panel: curves
        for panel, curves in panels.items()
        if any(history.curve(name)[0] for name in curves)
    }
    figure = new_figure(7, 1 + 2 * len(panels))
    if not panels:
        return figure
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    for ax, (panel, curves) in zip(axes, panels.items(), strict=True):
        for number, (name, label) in enumerate(curves.items()):
            _line(ax, history.curve(name), number, marked=label == "validation", label=label)
        _finish(ax, *panel)
        if len(curves) > 1:
            ax.legend()
    axes[-1].set_xlabel("updates")
    return figure


@styled
def curves_figure(runs: dict) -> "Figure":
    """Draws the validation metrics of several runs, with a panel for each metric.

    Args:
        runs: Dictionary from names of runs to pairs of a `History` and a `Task`. A panel shows the
            runs that have its metric.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If a run has not been validated.
    """
    panels = {}  # dictionaries from names of runs to curves, by title and scale
    for run, (history, task) in runs.items():
        measured = {panel: history.curve(name) for name, panel in _validated(task).items()}
        if not any(updates for updates, _ in measured.values()):
            raise ValueError(f"{run} must have been validated during training.")
        for panel, curve in measured.items():
            if curve[0]:
                panels.setdefault(panel, {})[run] = curve
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(max(3.6, 2.4 * columns), 2.1 * rows + 0.2 + 0.17 * len(runs))
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    numbers, lines = {run: number for number, run in enumerate(runs)}, {}
    for ax, (panel, curves) in zip(axes, panels.items(), strict=False):
        for run, curve in curves.items():
            lines[run] = _line(ax, curve, numbers[run], marked=True)
        _finish(ax, *panel)
        ax.set_xlabel("updates")
        ax.locator_params(axis="x", nbins=5)
    for ax in axes[len(panels) :]:
        ax.remove()
    legend = figure.legend([lines[run] for run in runs], list(runs), loc="outside lower center")
    verbatim(legend.get_texts())
    return figure


def _validated(task):
    """Returns title and scale of each validation metric, by its name in a history."""
    drawn = {name: metric for name, metric in task.metrics.items() if metric.drawn}
    (loss, first), *others = drawn.items()
    per_unit = f"{first.title} per {task.unit.removesuffix('s')}"
    return {
        f"validation/{loss}": (per_unit, first.scale),
        **{f"validation/{name}": (metric.title, metric.scale) for name, metric in others},
    }


def _line(axes, curve, number, marked, label=None):
    marker = "o" if marked else None
    return axes.plot(*curve, marker=marker, label=label, **line_style(number))[0]


def _finish(axes, title, scale):
    axes.set_yscale(scale)
    if scale == "log":  # 20 instead of 2 x 10^1; minor ticks are labelled on short axes only
        axes.yaxis.set_major_formatter("{x:g}")
        low, high = axes.get_ylim()
        axes.yaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_title(title, loc="left")
    axes.grid(alpha=0.4)
