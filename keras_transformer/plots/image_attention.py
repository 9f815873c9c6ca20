"""A picture of what an image classifier looked at: the attention of the class token."""

import numpy as np
import tensorflow as tf

from keras_transformer.plots.figure import new_figure, picture

CELL = 2.4  # inches for an image


def class_attention(recognizer, image):
    """Returns what the class token attended to, for every head of every layer.

    Args:
        recognizer: An `ImageRecognizer` whose model has a class token.
        image: A path, the bytes of a file, or an array `[H, W, C]` of uint8.

    Returns:
        The pixels `[H, W, C]`, uint8; the label; and the weights `[layers, heads, R, Q]` of the
        patches in R rows and Q columns. What is missing to 1 went to the class token itself.

    Raises:
        ValueError: If the model has no class token.
    """
    model = recognizer.model
    if not model.config.has_class_token:
        raise ValueError(
            '`recognizer` must have a model with a class token, `pooling = "class"`. Received: '
            f"pooling={model.config.pooling!r}."
        )
    pixels = recognizer.read(image)
    weights = model.attention_weights(tf.constant(pixels[None], tf.float32))
    layers = [
        tf.cast(weights[f"block_{number}/self_attention"], tf.float32).numpy()[0, :, 0, 1:]
        for number in range(model.config.num_layers)
    ]  # [H, R * Q] each
    stack = np.stack(layers)
    return pixels, recognizer([pixels])[0], stack.reshape(*stack.shape[:2], *model.config.grid)


@picture
def image_attention_figure(recognizer, image, layers=False):
    """Draws an image, and what the class token attended to in it.

    Args:
        recognizer: See `class_attention`.
        image: See `class_attention`.
        layers: Whether to draw every head (columns) of every layer (rows) by itself instead of the
            mean of all heads of the last layer.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: If the model has no class token, the image cannot be read, or matplotlib is not
            installed.
    """
    pixels, label, weights = class_attention(recognizer, image)
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
