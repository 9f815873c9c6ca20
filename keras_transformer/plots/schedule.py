"""A picture of learning-rate schedules."""

import numpy as np

from keras_transformer.checks import check_choice, check_count
from keras_transformer.plots.figure import line_style, new_figure, picture, verbatim

SCALES = ("linear", "log")
POINTS = 500  # of a curve


@picture
def schedule_figure(schedules, scale="linear"):
    """Draws the learning rate of each update.

    Args:
        schedules: Dictionary from names to pairs: a Keras `LearningRateSchedule`, and the length of
            its training in updates.
        scale: Of both axes, `"linear"` or `"log"`.

    Returns:
        A matplotlib figure, with a line for each schedule.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If there is no such scale, or nothing to draw.

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
        # Keras counts the updates that are done.
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
    """Numbers of updates, from 1, evenly on the axis."""
    spaced = np.geomspace if scale == "log" else np.linspace
    return np.unique(np.rint(spaced(1, length, min(length, POINTS))).astype(int))
