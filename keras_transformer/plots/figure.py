"""The one door to matplotlib, which is optional; how all pictures look and are written."""

import functools
from pathlib import Path

from keras_transformer.files import replacing

FORMATS = (".png", ".svg", ".pdf")
# Okabe and Ito (2008): colours that people with any colour vision can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")  # in black and white
INK, FAINT = "#222222", "#666666"
STYLE = {
    "font.size": 8,  # points, as in the captions of a paper
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
# Letters stay letters in a PDF, and the same figure gives the same bytes.
SAVING = {"pdf.fonttype": 42, "svg.hashsalt": "keras_transformer"}
METADATA = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
# For letters that matplotlib's own font does not have, those of these that are installed.
FALLBACKS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Hiragino Sans", "PingFang SC",
    "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Noto Sans Devanagari", "Noto Sans Thai",
    "Arial Unicode MS",
)  # fmt: skip


class MatplotlibMissing(ValueError):
    """matplotlib is not installed; the message says how to install it."""


def picture(draw):
    """Gives a function that draws a figure the style of all pictures."""

    @functools.wraps(draw)
    def styled(*arguments, **options):
        with _matplotlib().rc_context({**STYLE, "font.family": _fonts()}):
            return draw(*arguments, **options)

    return styled


def new_figure(width, height, layout="constrained"):
    """Returns an empty matplotlib figure of a size in inches.

    Args:
        width, height: The size.
        layout: How matplotlib places what is on it, `"none"` for not at all.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
    """
    _matplotlib()
    from matplotlib.figure import Figure

    return Figure((width, height), layout=layout)


def rounded_box(x, y, width, height, **style):
    """Returns a rectangle with round corners, to be added to axes.

    Args:
        x, y: Its lower left corner.
        width, height: Its size, in the unit of the axes.
        **style: Options of a matplotlib patch.
    """
    from matplotlib.patches import FancyBboxPatch

    shape = f"round,pad=0,rounding_size={min(0.07, height / 4)}"
    return FancyBboxPatch((x, y), width, height, shape, **style)


def save_figure(figure, path):
    """Writes a figure whole or not at all; the folder is created if missing.

    Args:
        figure: A matplotlib figure.
        path: The file to write: PNG, SVG or PDF, by its ending.

    Raises:
        ValueError: If it ends otherwise.
        OSError: If it cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"`path` must end in {' or '.join(FORMATS)}. Received: {path}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, _matplotlib().rc_context({**STYLE, **SAVING}):
        figure.savefig(
            temporary, format=suffix[1:], dpi=200, metadata=METADATA[suffix], bbox_inches="tight"
        )


def line_style(number):
    """Returns the options of a line: 28 numbers have different ones, also in black and white."""
    return {
        "color": COLORS[number % len(COLORS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def verbatim(texts):
    """Lets texts be shown as they are: `$` begins no formula in the name of a file or a piece."""
    for text in texts:
        text.set_parse_math(False)


def _matplotlib():
    try:
        import matplotlib
        import matplotlib.backends.backend_agg  # what PNG needs
        import matplotlib.figure
    except ImportError:
        raise MatplotlibMissing(
            "`matplotlib` must be installed to draw a picture: "
            "pip install 'keras-transformer-kit[plot]'."
        ) from None
    return matplotlib


@functools.cache
def _fonts():
    """Families of fonts, the first that has a letter draws it."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in FALLBACKS if name in installed)]
