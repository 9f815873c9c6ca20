"""Hydrograph: observed and simulated series over time, with rain at the top."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from keras_transformer.plots.figure import COLORS, FAINT, INK, new_figure, styled

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure


@styled
def hydrograph_figure(
    dates: Any,
    observed: ArrayLike,
    simulated: Any,
    *,
    rain: ArrayLike | None = None,
    target: str = "discharge",
    rain_label: str = "rain",
    title: str = "",
) -> "Figure":
    """Draws a hydrograph.

    Args:
        dates: Dates of the steps, `[N]`: `datetime.date`, `datetime.datetime`, NumPy's
            `datetime64`, or numbers.
        observed: Observed values, `[N]`; NaN where a value is missing.
        simulated: Simulated values, `[N]`, or a dictionary from names to such arrays.
        rain: Rain in each step, `[N]`, drawn as bars from the top. `None`: none.
        target: Label of the axis of the values, with their unit.
        rain_label: Label of the axis of the rain.
        title: Title of the figure.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If the arrays differ in length.
    """
    lines = simulated if isinstance(simulated, dict) else {"simulated": simulated}
    arrays = {"observed": observed, **lines, **({} if rain is None else {"rain": rain})}
    for name, values in arrays.items():
        if np.shape(values) != (len(dates),):
            raise ValueError(
                f"`{name}` must have a number for each of {len(dates)} dates. "
                f"Received: shape={np.shape(values)}."
            )
    figure = new_figure(9, 4)
    if rain is None:
        axis = top = figure.subplots()
    else:
        top, axis = figure.subplots(2, sharex=True, height_ratios=(1, 4))
        top.bar(dates, rain, width=_shortest(dates), color=FAINT)
        top.set_ylim(max(1.0, float(np.max(rain))), 0)
        top.set_ylabel(rain_label)
        top.tick_params(bottom=False)
        top.spines["bottom"].set_visible(False)
    axis.plot(dates, observed, color=INK, linewidth=1.0, label="observed")
    for number, (name, values) in enumerate(lines.items()):
        color = COLORS[(number + 1) % len(COLORS)]
        axis.plot(dates, values, color=color, linewidth=1.0, alpha=0.85, label=name)
    axis.set_ylabel(target)
    axis.set_ylim(bottom=min(0.0, *axis.get_ylim()))
    axis.margins(x=0.01)
    top.set_title(title)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _shortest(dates):
    """Returns the shortest time between two steps, or 1 if there is only one step."""
    steps = (after - before for before, after in itertools.pairwise(dates))
    shortest = min(steps, default=1.0)
    return shortest.item() if isinstance(shortest, np.generic) else shortest
