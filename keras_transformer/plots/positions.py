"""A picture of positional codes and of how alike the codes of two positions are."""

import keras  # noqa: F401  (with it all layers are registered, before one is imported alone)

from keras_transformer.checks import check_count
from keras_transformer.layers import positions
from keras_transformer.plots.figure import new_figure, picture


@picture
def positions_figure(kind="sinusoidal", length=64, d_model=128, **options):
    """Draws the codes that are added to the embeddings, and the dot products of all pairs.

    Args:
        kind: Name of a kind in `positions.KINDS` whose codes are fixed, or a `Position`.
        length: Number of positions T.
        d_model: Width of the model D, in features.
        **options: Arguments of the kind, such as `layout`.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If there is no such kind, or its embeddings have no fixed codes.

    Reference: Vaswani et al. (2017), section 3.5.
    """
    check_count("length", length)
    check_count("d_model", d_model, least=2)
    if d_model % 2:
        raise ValueError(f"`d_model` must be even. Received: d_model={d_model}.")
    codes = positions.get(kind, **options).table(length, d_model)  # [T, D]
    if codes is None:
        raise ValueError(
            f"`kind` must have fixed codes, as {' and '.join(_fixed())} positions have; those of "
            f"others are learned, or are the work of every self-attention. Received: kind={kind!r}."
        )
    figure = new_figure(7.0, 3.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    image = left.imshow(codes, cmap="PuOr", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    _name(left, f"Codes of {length} positions", "feature", "position")
    figure.colorbar(image, ax=left, label="code", ticks=[-1, 0, 1])
    image = right.imshow(codes @ codes.T, cmap="viridis", interpolation="nearest")
    _name(right, "Dot products of the codes", "position", "position")
    figure.colorbar(image, ax=right, label="dot product")
    return figure


def _fixed():
    """Names of the kinds whose codes are fixed."""
    return [name for name, kind in positions.KINDS.items() if kind().table(1, 2) is not None]


def _name(axes, title, x, y):
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[:].set_visible(False)
