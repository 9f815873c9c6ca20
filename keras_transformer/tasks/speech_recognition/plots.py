"""Plot of a recording's spectrogram, and below it the attention of each word over time."""

from typing import TYPE_CHECKING, Any

import numpy as np

from keras_transformer.plots.figure import new_figure, styled, verbatim

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

ROW = 0.19  # inches of a word
SOUND_HEIGHT = 1.3  # inches of a spectrogram
WIDTH = 7.0  # inches of a single panel
PANEL = 2.6  # inches of one of several panels
HERTZ = (250, 500, 1000, 2000, 4000, 8000)  # of the marks beside a spectrogram


@styled
def speech_attention_figure(attention: Any, layers: bool = False) -> "Figure":
    """Draws a spectrogram, and the attention of the words of its transcript over time.

    Words are rows, and large weights are dark. The axis of time is shared.

    Args:
        attention: A `SpeechAttention`, which `SpeechRecognizer.attention` returns under `"sound"`.
        layers: Whether to draw the weights of each head (columns) of each layer (rows). `False`:
            their mean.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
    """
    panels = attention.weights if layers else attention.mean()[None, None]  # [rows, columns, W, S]
    rows, columns, words, _ = panels.shape
    height = max(0.6, ROW * words)
    figure = new_figure(
        (columns * PANEL if layers else WIDTH) + 1.5, SOUND_HEIGHT + rows * (height + 0.2) + 0.7
    )
    axes = figure.subplots(
        rows + 1, columns, squeeze=False, sharex=True, sharey="row",
        height_ratios=[SOUND_HEIGHT, *[height] * rows],
    )  # fmt: skip
    for column in range(columns):
        _draw_sound(axes[0, column], attention)
        if layers:
            axes[0, column].set_title(f"head {column + 1}", fontsize=8)
        axes[-1, column].set_xlabel("time in seconds")
    for row, column in np.ndindex(rows, columns):
        image = _draw_words(axes[row + 1, column], attention, panels[row, column], panels.max())
    for row in range(rows if layers else 0):
        axes[row + 1, -1].yaxis.set_label_position("right")
        axes[row + 1, -1].set_ylabel(f"layer {row + 1}", fontsize=8)
    axes[0, 0].set_ylabel("frequency in Hz")
    bar = figure.colorbar(image, ax=axes[1:], fraction=0.03, aspect=25, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("attention weight")
    figure.suptitle(_title(attention, layers), fontsize=9)
    return figure


def _title(attention, layers):
    title = "Attention of the words of a transcript to the recording"
    if layers:
        return title
    layers, heads = attention.weights.shape[:2]
    return f"{title}, mean of {layers} layers × {heads} heads"


def _draw_sound(axis, attention):
    """Draws frames as an image, whose rows are the mel filters; marks are frequencies."""
    count = len(attention.frames)
    axis.imshow(
        attention.frames.T, cmap="magma", origin="lower", aspect="auto", interpolation="nearest",
        extent=(0, count * attention.frame_seconds, -0.5, len(attention.frequencies) - 0.5),
    )  # fmt: skip
    inside = [
        hertz for hertz in HERTZ if attention.frequencies[0] <= hertz <= attention.frequencies[-1]
    ]
    places = np.interp(inside, attention.frequencies, np.arange(len(attention.frequencies)))
    axis.set_yticks(places, [f"{hertz:,}" for hertz in inside])


def _draw_words(axis, attention, weights, most):
    words, positions = weights.shape
    image = axis.imshow(
        weights, cmap="Blues", vmin=0, vmax=most, aspect="auto", interpolation="nearest",
        extent=(0, positions * attention.position_seconds, words - 0.5, -0.5),
    )  # fmt: skip
    axis.set_xlim(0, len(attention.frames) * attention.frame_seconds)
    axis.set_yticks(range(words), attention.words, fontsize=7)
    axis.tick_params(axis="y", length=0)
    verbatim(axis.get_yticklabels())
    return image
