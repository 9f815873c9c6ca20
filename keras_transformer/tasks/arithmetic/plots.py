"""Plots of arithmetic: exact match by the length of numbers, and mental images over the steps."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from keras_transformer.plots.figure import FAINT, line_style, new_figure, styled

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure


@styled
def exact_match_figure(results: dict[str, Any], *, trained: int | None = None) -> "Figure":
    """Draws the percentage of exact values over the number of digits, a line for each model.

    Args:
        results: Dictionary from names of models to the `by_digits` of their evaluations: see
            `metrics_by_digits`.
        trained: Most digits of a number in training, which a vertical line marks. `None`: no line.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If there is nothing to draw.
    """
    if not results or not all(results.values()):
        raise ValueError(
            f"`results` must have an evaluation for each model. Received: results={results!r}."
        )
    figure = new_figure(6, 3.6)
    axis = figure.subplots()
    for number, (name, by_digits) in enumerate(results.items()):
        digits = sorted(map(int, by_digits))
        exact = [by_digits[str(count)]["exact_match"] for count in digits]
        axis.plot(digits, exact, marker="o", label=name, **line_style(number))
    ticks = sorted({int(count) for by_digits in results.values() for count in by_digits})
    axis.set_xscale("log")
    axis.set_xticks(ticks, list(map(str, ticks)))
    axis.minorticks_off()
    axis.set_ylim(-3, 103)
    axis.set_xlabel("digits of each number")
    axis.set_ylabel("exact match in %")
    if trained is not None:
        axis.axvline(trained, color=FAINT, linewidth=0.8, linestyle=":")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


@styled
def mental_image_figure(images: ArrayLike, maps: int = 6) -> "Figure":
    """Draws the first column of a mental image over the steps, a panel for each map.

    Args:
        images: Array `[steps + 1, T, W, D]`, as `CalculatorPipeline.images` returns it.
        maps: Number of maps to draw: those that vary most.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If `images` has another shape.
    """
    images = np.asarray(images)
    if images.ndim != 4:
        raise ValueError(
            "`images` must be the mental images of one expression, [steps + 1, T, W, D]. "
            f"Received: shape={images.shape}."
        )
    column = images[:, :, 0]  # [steps + 1, T, D]
    chosen = np.argsort(-column.std(axis=(0, 1)))[:maps]
    figure = new_figure(1.9 * len(chosen), 2.4)
    panels = figure.subplots(1, len(chosen), squeeze=False, sharey=True)[0]
    for axis, place in zip(panels, chosen, strict=True):
        shown = axis.imshow(column[..., place], cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        axis.set_title(f"map {place}")
        axis.set_xlabel("digit")
        axis.xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_ylabel("step")
    figure.colorbar(shown, ax=panels.tolist(), shrink=0.8)
    return figure
