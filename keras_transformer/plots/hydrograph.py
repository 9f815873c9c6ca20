"""A hydrograph: what was observed and what was simulated, day by day, with the rain above."""

import numpy as np

from keras_transformer.plots.figure import new_figure, picture


@picture
def hydrograph_figure(dates, observed, simulated, *, rain=None, target="discharge", title=""):
    """Draws a hydrograph.

    Args:
        dates: Dates of the days, `datetime.date` or numbers, `[N]`.
        observed: What was observed, `[N]`; not a number where it is not known.
        simulated: What was simulated, `[N]`, or a dictionary from names to such arrays.
        rain: What fell, `[N]`, drawn from above. `None`: nothing.
        target: What the axis is called, with its unit.
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
    figure = new_figure(11, 4.5)
    axis = figure.subplots()
    axis.plot(dates, observed, color="black", linewidth=1.0, label="observed")
    for name, values in lines.items():
        axis.plot(dates, values, linewidth=1.0, alpha=0.8, label=name)
    axis.set_ylabel(target)
    axis.set_ylim(bottom=min(0.0, *axis.get_ylim()))
    axis.set_title(title)
    axis.legend(loc="center left")
    if rain is not None:
        above = axis.twinx()
        above.bar(dates, rain, width=1.0, color="tab:blue", alpha=0.4)
        above.set_ylim(3 * max(1.0, float(np.max(rain))), 0)
        above.set_ylabel("rain")
    return figure
