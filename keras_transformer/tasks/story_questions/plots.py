"""Plot of the hops of a memory network."""

from typing import TYPE_CHECKING, Any

from keras_transformer.plots.figure import new_figure, styled, verbatim

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

ROW, COLUMN = 0.24, 0.75  # inches of a sentence and of a hop


@styled
def hops_figure(attention: Any, layers: bool = False) -> "Figure":
    """Draws the attention of each hop (columns) to the sentences of a story (rows).

    Each weight is written into its cell, as in Fig. 2 of Sukhbaatar et al. (2015).

    Args:
        attention: An `Attention`, which `StoryAnswerer.attention` returns under `"hops"`.
        layers: Must be false: all hops are drawn in any case.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If `layers` is true, or the story has no sentences.
    """
    if layers:
        raise ValueError(
            "`layers` must be False for a memory network: all its hops are drawn in any case. "
            "Received: layers=True."
        )
    weights = attention.weights[0, 0].T  # [N, K]
    if not len(weights):
        raise ValueError("The story must have a sentence to draw. Received: none.")
    text = 0.075 * max(map(len, attention.keys))
    count, hops = weights.shape
    figure = new_figure(text + hops * COLUMN + 0.6, count * ROW + 0.8)
    axes = figure.subplots()
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_yticks(range(count), attention.keys, fontsize=8)
    axes.set_xticks(range(hops), attention.queries, fontsize=8)
    verbatim(axes.get_yticklabels())
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    for row in range(count):
        for hop in range(hops):
            color = "white" if weights[row, hop] > 0.6 else "black"
            axes.text(
                hop, row, f"{weights[row, hop]:.2f}", ha="center", va="center", fontsize=7,
                color=color,
            )  # fmt: skip
    return figure
