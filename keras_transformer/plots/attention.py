"""A picture of what the decoder looked at: cross-attention between two sentences."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import greedy_decode
from keras_transformer.plots.figure import new_figure, save_png

CELL = 0.28  # inches per token


def cross_attention(translator, sentence):
    """Translates a sentence and returns what each piece of the translation attended to.

    Args:
        translator: A `Translator`.
        sentence: A string.

    Returns:
        The pieces of the source, `S` strings; those of the translation, `T` strings, the end of the
        sentence included; and the weights as an array [layers, H, T, S] whose rows sum to 1: row t
        is what the decoder attended to when it chose piece t.
    """
    source, _, _ = translator.encode(tf.constant([sentence]))  # [1, S]
    output, _ = greedy_decode(translator.model, source, translator.max_length)  # [1, L]
    config = translator.model.config
    target = [int(token) for token in output[0].numpy() if token != config.pad_id]  # [T]
    inputs = tf.constant([[config.bos_id, *target[:-1]]])  # the decoder's, one position later
    weights = translator.model.attention_weights({"source": source, "target": inputs})
    layers = config.decoder_layers
    stack = [weights[f"decoder/block_{layer}/cross_attention"][0] for layer in range(layers)]
    sides = zip(translator.tokenizers, (source[0].numpy(), target), strict=True)
    pieces = [tokenizer.pieces(ids) for tokenizer, ids in sides]
    return *pieces, np.stack([tf.cast(heads, tf.float32).numpy() for heads in stack])


def draw_attention(translator, sentence, path, layers=False):
    """Writes the cross-attention of a sentence and its translation as a PNG file.

    Args:
        translator: A `Translator`.
        sentence: A string.
        path: The file to write; its folder is created if missing.
        layers: Whether to draw every head (columns) of every layer (rows) by itself instead of the
            average of all.

    Raises:
        ValueError: If the sentence is empty, or matplotlib is not installed.
    """
    if not sentence.strip():
        raise ValueError(f"`sentence` must not be empty. Received: {sentence!r}.")
    source, target, weights = cross_attention(translator, sentence)
    panels = weights if layers else weights.mean(axis=(0, 1))[None, None]  # [rows, columns, T, S]
    rows, columns = panels.shape[:2]
    width, height = CELL * len(source) + 1.5, CELL * len(target) + 1.5
    figure = new_figure(columns * width, rows * height)
    axes = figure.subplots(rows, columns, squeeze=False)
    for row, column in np.ndindex(rows, columns):
        title = f"layer {row + 1}, head {column + 1}" if layers else ""
        _draw(axes[row, column], panels[row, column], source, target, title)
    save_png(figure, path)


def _draw(axes, weights, source, target, title):
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(source)), source, rotation=90)
    axes.set_yticks(range(len(target)), target)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.set_title(title)
