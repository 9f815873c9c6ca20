"""A hydrograph: what was observed and what was simulated, step by step, with the rain above."""

import itertools

import numpy as np

from keras_transformer.plots.figure import COLORS, FAINT, INK, new_figure, picture


@picture
def hydrograph_figure(
    dates, observed, simulated, *, rain=None, target="discharge", rain_label="rain", title=""
):
    """Draws a hydrograph.

    Args:
        dates: Dates of the steps, `datetime.date`, `datetime.datetime`, NumPy's `datetime64` or
            numbers, `[N]`.
        observed: What was observed, `[N]`; not a number where it is not known.
        simulated: What was simulated, `[N]`, or a dictionary from names to such arrays.
        rain: What fell, `[N]`, drawn from above. `None`: nothing.
        target: What the axis is called, with its unit.
        rain_label: What that of the rain is called.
        title: Title of the picture.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: If the arrays differ in length, or matplotlib is not installed.
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
    """The shortest time between two steps; 1 if there is one step."""
    steps = (after - before for before, after in itertools.pairwise(dates))
    shortest = min(steps, default=1.0)
    return shortest.item() if hasattr(shortest, "item") else shortest
