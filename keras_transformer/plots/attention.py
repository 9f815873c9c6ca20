"""Plots of attention weights: one matrix, or one for each layer and head."""

from typing import TYPE_CHECKING, Any

import numpy as np

from keras_transformer.checks import check_choice
from keras_transformer.plots.figure import new_figure, styled, verbatim

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

TITLES = {
    "cross": "Attention of the decoder to the source",
    "encoder": "Self-attention of the encoder",
    "decoder": "Self-attention of the decoder",
}
CELL = 0.2  # inches of a token in a single matrix
WORD = 0.25  # inches of a word in a matrix of words
GRID_WIDTH = 14.0  # inches of a row of matrices, one for each head
SMALLEST_CELL = 0.075  # inches of a token in such a row, at least


def choose(attentions, kind: str | None = None) -> Any:
    """Returns the `Attention` of a kind.

    Args:
        attentions: Dictionary from kinds to `Attention`s.
        kind: Key of the dictionary. `None`: the first one.

    Raises:
        ValueError: If the dictionary has no such key, or is empty.
    """
    check_any(attentions)
    if kind is None:
        return next(iter(attentions.values()))
    check_choice("kind", kind, attentions)
    return attentions[kind]


def check_any(attentions) -> None:
    """Raises `ValueError` if a dictionary of `Attention`s is empty, as that of ByteNet is."""
    if not attentions:
        raise ValueError("The model has no attention to draw: no layer attends.")


@styled
def attention_figure(attention: Any, layers: bool = False) -> "Figure":
    """Draws attention weights: queries are rows, keys are columns, and large weights are dark.

    Args:
        attention: An `Attention`.
        layers: Whether to draw a matrix for each head (columns) of each layer (rows). `False`:
            their mean.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If `layers` is true and `attention` has only one matrix.
    """
    if layers and not attention.complete:
        raise ValueError(
            "`layers` must be False for the attention of an export, which has one matrix and not "
            "one for each layer and head. Received: layers=True."
        )
    panels = attention.weights if layers else attention.mean()[None, None]  # [rows, columns, T, S]
    rows, columns = panels.shape[:2]
    keys, queries = len(attention.keys), len(attention.queries)
    cell = min(CELL, max(SMALLEST_CELL, GRID_WIDTH / (columns * keys))) if layers else CELL
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
    _label_tokens(axes, attention, font)
    if layers:
        _label_heads(axes)
    bar = figure.colorbar(image, ax=axes, fraction=0.03, aspect=25, pad=0.02, shrink=0.8)
    bar.outline.set_visible(False)
    bar.set_label("attention weight")
    return figure


@styled
def alignment_figure(attention: Any) -> "Figure":
    """Draws attention between words in shades of grey, from black for 0 to white for 1.

    Words that attend, such as those of a translation, are rows; weights are the mean over all
    layers and heads.

    Args:
        attention: An `Attention`, whose tokens mark the beginning of words.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If the tokens do not mark the beginning of words.

    Reference: Bahdanau et al. (2015), Fig. 3.
    """
    words = attention.by_words()
    width, height = (WORD * len(side) for side in (words.keys, words.queries))
    left, top = (0.08 * max(map(len, side)) for side in (words.queries, words.keys))
    figure = new_figure(width + left + 0.2, height + top + 0.2)
    axes = figure.subplots()
    axes.imshow(words.mean(), cmap="gray", vmin=0, vmax=1, aspect="equal")
    _frame(axes)
    _label_tokens(np.array([[axes]]), words, 8.0)
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


def _label_tokens(axes, attention, font):
    """Writes the tokens above the first row and to the left of the first column."""
    for ax in axes[0]:
        ax.set_xticks(range(len(attention.keys)), attention.keys, rotation=90, fontsize=font)
        ax.tick_params(axis="x", labeltop=True)
        verbatim(ax.get_xticklabels())
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(attention.queries)), attention.queries, fontsize=font)
        verbatim(ax.get_yticklabels())


def _label_heads(axes):
    for number, ax in enumerate(axes[0], start=1):
        ax.set_title(f"head {number}", fontsize=8, pad=4)
    for number, ax in enumerate(axes[:, -1], start=1):
        ax.yaxis.set_label_position("right")
        ax.set_ylabel(f"layer {number}", fontsize=8)
