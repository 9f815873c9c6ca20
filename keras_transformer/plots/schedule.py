"""Plot of learning-rate schedules."""

from typing import TYPE_CHECKING

import numpy as np

from keras_transformer.checks import check_choice, check_count
from keras_transformer.plots.figure import line_style, new_figure, styled, verbatim

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

SCALES = ("linear", "log")
POINTS = 500  # of a curve


@styled
def schedule_figure(schedules: dict, scale: str = "linear") -> "Figure":
    """Draws the learning rate at each update.

    Args:
        schedules: Dictionary from names to pairs of a Keras `LearningRateSchedule` and the length
            of training, in updates.
        scale: Scale of both axes, `"linear"` or `"log"`.

    Returns:
        A matplotlib figure with a line for each schedule.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If `scale` is something else, or `schedules` is empty.

    Reference: Vaswani et al. (2017), section 5.3, Eq. 3.
    """
    check_choice("scale", scale, SCALES)
    if not schedules:
        raise ValueError("`schedules` must have at least one schedule. Received: none.")
    figure = new_figure(4.6, 2.8)
    axes = figure.subplots()
    for number, (schedule, length) in enumerate(schedules.values()):
        check_count("updates", length)
        updates = _updates(length, scale)
        # Keras passes the number of updates already applied.
        rates = [float(schedule(int(update) - 1)) for update in updates]
        axes.plot(updates, rates, **line_style(number))
    axes.set_xscale(scale)
    axes.set_yscale(scale)
    if scale == "linear":
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.ticklabel_format(style="sci", axis="y", scilimits=(-2, 3), useMathText=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("update")
    axes.set_ylabel("learning rate")
    axes.grid(alpha=0.4)
    legend = figure.legend(axes.get_lines(), list(schedules), loc="outside right upper")
    verbatim(legend.get_texts())
    return figure


def _updates(length, scale):
    """Returns numbers of updates, from 1, that are evenly spaced on the axis."""
    spaced = np.geomspace if scale == "log" else np.linspace
    return np.unique(np.rint(spaced(1, length, min(length, POINTS))).astype(int))
