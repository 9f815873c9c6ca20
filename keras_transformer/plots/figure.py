"""Style and files of all plots; the only module that imports matplotlib, which is optional."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_transformer.files import replacing
from keras_transformer.installation import install_hint

if typing.TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

Arguments = typing.ParamSpec("Arguments")

FORMATS = (".png", ".svg", ".pdf")
# Okabe and Ito (2008): colours that people with any colour vision can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")  # tell lines apart in black and white
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
# Text in a PDF stays text, and the same figure always gives the same bytes.
SAVING = {"pdf.fonttype": 42, "svg.hashsalt": "keras_transformer"}
METADATA = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
# Fonts for characters that matplotlib's own font lacks; those that are installed are used.
FALLBACKS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Hiragino Sans", "PingFang SC",
    "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Noto Sans Devanagari", "Noto Sans Thai",
    "Arial Unicode MS",
)  # fmt: skip


class MatplotlibMissing(ValueError):
    """Error of a plot without matplotlib; the message says how to install it."""


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Decorates a function that draws a figure, so that it uses the style of all plots."""

    @functools.wraps(draw)
    def draw_styled(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure:
        with _matplotlib().rc_context({**STYLE, "font.family": _fonts()}):
            return draw(*args, **kwargs)

    return draw_styled


def new_figure(width: float, height: float, layout="constrained") -> Figure:
    """Returns an empty matplotlib figure.

    Args:
        width, height: Size in inches.
        layout: Name of a layout engine of matplotlib, or `"none"`.

    Raises:
        MatplotlibMissing: If matplotlib is not installed.
    """
    _matplotlib()
    from matplotlib.figure import Figure

    return Figure((width, height), layout=layout)


def rounded_box(x: float, y: float, width: float, height: float, **style) -> FancyBboxPatch:
    """Returns a rectangle with rounded corners, a matplotlib patch.

    Args:
        x, y: Its lower left corner.
        width, height: Its size, in the unit of the axes.
        **style: Options of the patch.
    """
    from matplotlib.patches import FancyBboxPatch

    shape = f"round,pad=0,rounding_size={min(0.07, height / 4)}"
    return FancyBboxPatch((x, y), width, height, shape, **style)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Writes a figure to a file, whole or not at all.

    Args:
        figure: A matplotlib figure.
        path: Path of the file, which ends in `.png`, `.svg` or `.pdf`. Its folder is created if it
            does not exist.

    Raises:
        ValueError: If `path` has another ending.
        OSError: If the file cannot be written.
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


def line_style(number: int) -> dict[str, Any]:
    """Returns colour and dashes of line `number`; the first 28 lines all differ."""
    return {
        "color": COLORS[number % len(COLORS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def verbatim(texts) -> None:
    """Makes matplotlib draw texts literally, so that `$` in a token or file name is no formula."""
    for text in texts:
        text.set_parse_math(False)


def _matplotlib():
    try:
        import matplotlib
        import matplotlib.backends.backend_agg  # for PNG
        import matplotlib.figure
    except ImportError:
        raise MatplotlibMissing(
            "Plots need the package matplotlib. Install it with: " + install_hint("plot")
        ) from None
    return matplotlib


@functools.cache
def _fonts():
    """Returns names of fonts; a character is drawn in the first one that has it."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in FALLBACKS if name in installed)]
