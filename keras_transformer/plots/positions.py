"""Plot of position encodings and of their dot products."""

from typing import TYPE_CHECKING, Any

from keras_transformer.checks import check_count
from keras_transformer.plots.figure import new_figure, styled
from keras_transformer.positions import Binary, Position, Sinusoidal

if TYPE_CHECKING:
    from keras_transformer.plots.figure import Figure

DRAWN = (Binary.kind, Sinusoidal.kind)  # kinds with a fixed table


@styled
def positions_figure(
    kind: "Position | str" = "sinusoidal", length: int = 64, d_model: int = 128, **options: Any
) -> "Figure":
    """Draws the position encoding that is added to embeddings, and the dot products of its rows.

    Args:
        kind: A `Position` with a fixed table, or its name.
        length: Number of positions T.
        d_model: Width of the model D, in features.
        **options: Arguments of the position's class, such as `layout`.

    Returns:
        A matplotlib figure.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
        ValueError: If there is no such kind, or it has no fixed table.

    Reference: Vaswani et al. (2017), section 3.5.
    """
    check_count("length", length)
    check_count("d_model", d_model, least=2)
    if d_model % 2:
        raise ValueError(f"`d_model` must be even. Received: d_model={d_model}.")
    position = Position.make({"kind": kind, **options} if options else kind, "kind")
    table = position.table(length, d_model)  # [T, D]
    if table is None:
        raise ValueError(
            f"`kind` must be a fixed position encoding, {' or '.join(DRAWN)}; other kinds are "
            f"learned or act inside self-attention. Received: kind={kind!r}."
        )
    figure = new_figure(7.0, 3.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    image = left.imshow(table, cmap="PuOr", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    _label(left, f"Encoding of {length} positions", "feature", "position")
    figure.colorbar(image, ax=left, label="value", ticks=[-1, 0, 1])
    image = right.imshow(table @ table.T, cmap="viridis", interpolation="nearest")
    _label(right, "Dot products of positions", "position", "position")
    figure.colorbar(image, ax=right, label="dot product")
    return figure


def _label(axes, title, x, y):
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[:].set_visible(False)
