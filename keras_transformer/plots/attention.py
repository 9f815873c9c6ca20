"""Pictures of attention weights: one matrix, or one for every layer and head."""

import numpy as np

from keras_transformer.checks import check_choice
from keras_transformer.plots.figure import new_figure, picture, verbatim

TITLES = {
    "cross": "Attention of the decoder to the source",
    "encoder": "Self-attention of the encoder",
    "decoder": "Self-attention of the decoder",
}
CELL = 0.2  # inches of a piece where there is one matrix
GRID_WIDTH, SMALLEST = 14.0, 0.075  # inches of all matrices side by side, and of a piece in them


def choose(attentions, kind=None):
    """Returns the `Attention` of a kind.

    Args:
        attentions: Dictionary from kinds to `Attention`s, the first of which is the default.
        kind: One of them, or `None`.

    Raises:
        ValueError: If there is none of that kind.
    """
    if kind is None:
        return next(iter(attentions.values()))
    check_choice("kind", kind, attentions)
    return attentions[kind]


@picture
def attention_figure(attention, layers=False):
    """Draws attention weights: rows attend to columns, the darker the more.

    Args:
        attention: An `Attention`.
        layers: Whether to draw every head (columns) of every layer (rows) by itself instead of the
            mean of all.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If single layers are to be drawn of one matrix.
    """
    if layers and not attention.complete:
        raise ValueError(
            "`layers` must be False for the attention of an export, which holds one matrix and no "
            "single layers and heads. Received: layers=True."
        )
    panels = attention.weights if layers else attention.mean()[None, None]  # [rows, columns, T, S]
    rows, columns = panels.shape[:2]
    keys, queries = len(attention.keys), len(attention.queries)
    cell = min(CELL, max(SMALLEST, GRID_WIDTH / (columns * keys))) if layers else CELL
    font = min(8.0, 72 * cell * 0.7)  # points
    left, top = (0.01 * font * max(map(len, side)) for side in (attention.queries, attention.keys))
    figure = new_figure(
        columns * (0.1 + keys * cell) + left + 1.0, rows * (0.1 + queries * cell) + top + 0.6
    )
    figure.suptitle(_title(attention, layers), fontsize=9)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for row, column in np.ndindex(rows, columns):
        image = axes[row, column].imshow(
            panels[row, column], cmap="Blues", vmin=0, vmax=panels.max(), aspect="equal"
        )
        _frame(axes[row, column])
    _name_pieces(axes, attention, font)
    if layers:
        _name_layers(axes)
    bar = figure.colorbar(image, ax=axes, fraction=0.03, aspect=25, pad=0.02, shrink=0.8)
    bar.outline.set_visible(False)
    bar.set_label("attention weight")
    return figure


def _title(attention, layers):
    title = TITLES[attention.kind]
    if layers or not attention.complete:
        return title
    layers, heads = attention.weights.shape[:2]
    return f"{title},\nmean of {layers} layers × {heads} heads"


def _frame(axes):
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("#BBBBBB")
    axes.tick_params(length=0, pad=2, bottom=False, labelbottom=False)


def _name_pieces(axes, attention, font):
    """The pieces stand once: above the first row and to the left of the first column."""
    for ax in axes[0]:
        ax.set_xticks(range(len(attention.keys)), attention.keys, rotation=90, fontsize=font)
        ax.tick_params(axis="x", labeltop=True)
        verbatim(ax.get_xticklabels())
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(attention.queries)), attention.queries, fontsize=font)
        verbatim(ax.get_yticklabels())


def _name_layers(axes):
    for number, ax in enumerate(axes[0], start=1):
        ax.set_title(f"head {number}", fontsize=8, pad=4)
    for number, ax in enumerate(axes[:, -1], start=1):
        ax.yaxis.set_label_position("right")
        ax.set_ylabel(f"layer {number}", fontsize=8)
