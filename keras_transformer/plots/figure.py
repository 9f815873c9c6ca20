"""The one door to matplotlib, which is optional."""

from pathlib import Path

from keras_transformer.files import replacing


class MatplotlibMissing(ValueError):
    """matplotlib is not installed; the message says how to install it."""


def new_figure(width, height):
    """Returns an empty matplotlib figure of a size in inches.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
    """
    try:
        import matplotlib.backends.backend_agg  # noqa: F401  (what `save_png` needs)
        from matplotlib.figure import Figure
    except ImportError:
        raise MatplotlibMissing(
            "`matplotlib` must be installed to draw a picture: "
            "pip install 'keras-transformer-kit[plot]'."
        ) from None
    return Figure((width, height), layout="constrained")


def save_png(figure, path):
    """Writes a figure as a PNG file, whole or not at all; its folder is created if missing."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        FigureCanvasAgg(figure).print_png(temporary)
