"""Plot of the masks of attention: padding, causal, and both."""

from typing import TYPE_CHECKING

import keras  # noqa: F401  (registers all layers before one of them is imported alone)
import numpy as np

from keras_transformer.checks import check_count
from keras_transformer.layers.masks import causal_mask, join_masks, padding_mask
from keras_transformer.plots.figure import new_figure, styled

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

PAD, TOKEN = 0, 1


@styled
def masks_figure(length: int = 8, real: int = 5) -> "Figure":
    """Draws the keys (columns) that each query (row) may attend to.

    Args:
        length: Length of a padded sentence, in tokens.
        real: Number of its tokens that are not padding.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If `real` is greater than `length`.

    Reference: Vaswani et al. (2017), section 3.2.3.
    """
    check_count("length", length)
    check_count("real", real)
    if real > length:
        raise ValueError(
            f"`real` must be at most `length`. Received: real={real}, length={length}."
        )
    tokens = np.where(np.arange(length) < real, TOKEN, PAD)[None]  # [B=1, S]
    padding, causal = padding_mask(tokens, PAD), causal_mask(length)  # [1, 1, S], [1, T, T]
    masks = {
        "Padding": padding,
        "Causal": causal,
        "Padding and causal": join_masks(padding, causal),
    }
    figure = new_figure(6.6, 2.75)
    axes = figure.subplots(1, len(masks), sharey=True)
    for ax, (title, mask) in zip(axes, masks.items(), strict=True):
        image = _draw(ax, np.broadcast_to(np.asarray(mask)[0], (length, length)), real)
        ax.set_title(title)
    axes[0].set_ylabel("query")
    _add_legend(figure, image)
    return figure


def _draw(axes, attention_mask, real):
    length = len(attention_mask)
    image = axes.imshow(attention_mask, cmap="Blues", vmin=-0.08, vmax=1.4)  # light and medium blue
    names = [str(place + 1) if place < real else "pad" for place in range(length)]
    axes.set_xticks(range(length), names, rotation=90 if real < length else 0)
    axes.set_yticks(range(length), names)
    for ticks in (axes.set_xticks, axes.set_yticks):  # lines between the cells
        ticks(np.arange(1, length) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="both", length=0)
    axes.set_xlabel("key")
    axes.spines[:].set_visible(False)
    return image


def _add_legend(figure, image):
    axes = figure.axes[0]
    handles = [
        axes.plot([], [], "s", color=image.cmap(image.norm(value)), markersize=8)[0]
        for value in (True, False)
    ]
    figure.legend(handles, ["may attend", "may not"], loc="outside lower center", ncols=2)
