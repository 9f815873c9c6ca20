"""Plot of the attention of an image classifier's class token."""

from typing import TYPE_CHECKING, Any

from keras_transformer.plots.figure import new_figure, styled

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

CELL = 2.4  # inches of an image


@styled
def image_attention_figure(attention: Any, layers: bool = False) -> "Figure":
    """Draws an image, and over it the attention of the class token to its patches.

    Args:
        attention: An `ImageAttention`, which `ImageClassificationPipeline.attention` returns under
            `"class"`.
        layers: Whether to draw the weights of each head (columns) of each layer (rows). `False`:
            the mean over the heads of the last layer.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
    """
    pixels, label, weights = attention.pixels, attention.label, attention.weights
    panels = weights if layers else weights[-1:].mean(axis=1, keepdims=True)  # [rows, cols, R, Q]
    rows, columns = panels.shape[:2]
    figure = new_figure((columns + 1) * CELL, rows * CELL + 0.3)
    axes = figure.subplots(rows, columns + 1, squeeze=False)
    for row in range(rows):
        _show(axes[row, 0], pixels, label if row == 0 else "")
        for column in range(columns):
            title = f"layer {row + 1}, head {column + 1}" if layers else "attention"
            axis = axes[row, column + 1]
            _show(axis, pixels, title)
            axis.imshow(
                panels[row, column],
                cmap="inferno",
                alpha=0.6,
                extent=(-0.5, pixels.shape[1] - 0.5, pixels.shape[0] - 0.5, -0.5),
            )
    return figure


def _show(axis, pixels, title):
    grey = pixels.shape[-1] == 1
    axis.imshow(pixels[..., 0] if grey else pixels, cmap="gray" if grey else None)
    axis.set_title(title)
    axis.axis("off")
