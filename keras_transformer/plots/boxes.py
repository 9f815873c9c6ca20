"""Boxes and arrows of a diagram, drawn from the bottom up on axes in inches."""

from keras_transformer.plots.figure import FAINT, INK, rounded_box, verbatim

WIDTH = 2.25  # of a box
GAP = 0.17  # between boxes, with room for an arrow
TITLE, LINE = 0.17, 0.125  # heights of the title of a box and of each line below it
PADDING = 0.05
MARGIN = 0.3  # between a box and the frame around it
PLUS = 0.09  # radius of a circle with a plus sign
ARROW = {"arrowstyle": "-|>", "linewidth": 0.8, "color": INK, "shrinkA": 0, "shrinkB": 0}


class Tower:
    """Column of boxes, joined by arrows that point up.

    Args:
        axes: Matplotlib axes whose unit is the inch.
        x: Horizontal centre of the boxes.
        side: Side of the boxes for remarks and for arrows around boxes: -1 left, 1 right.

    Attributes:
        y: Current height of the column.
    """

    def __init__(self, axes, x, side):
        self.axes, self.x, self.side = axes, x, side
        self.y = 0.0
        self._is_empty = True  # nothing below that an arrow could come from

    def box(self, title, lines=(), color="white") -> float:
        """Adds a box with a title and lines of text; returns the height of its centre."""
        bottom = self._enter()
        height = 2 * PADDING + TITLE + LINE * len(lines)
        shape = rounded_box(
            self.x - WIDTH / 2, bottom, WIDTH, height, facecolor=color, edgecolor=INK, linewidth=0.7
        )
        self.axes.add_patch(shape)
        top = bottom + height - PADDING
        self._text(self.x, top - TITLE / 2, title, weight="bold")
        for number, line in enumerate(lines):
            self._text(self.x, top - TITLE - LINE * (number + 0.5), line, fontsize=6.5)
        self.y = bottom + height
        return bottom + height / 2

    def label(self, text) -> None:
        """Adds a line of text without a box."""
        bottom = self._enter()
        self._text(self.x, bottom + TITLE / 2, text, fontsize=7.5)
        self.y = bottom + TITLE

    def plus(self, remark) -> None:
        """Adds a circle with a plus sign, and a remark beside it."""
        middle = self._enter() + PLUS
        self.axes.plot([self.x], [middle], "o", markersize=2 * 72 * PLUS, markerfacecolor="white",
                       markeredgecolor=INK, markeredgewidth=0.7)  # fmt: skip
        self._text(self.x, middle, "+", fontsize=10)
        self.remark(middle, remark, PLUS + 0.08)
        self.y = middle + PLUS

    def fork(self) -> float:
        """Adds the start of an arrow around the next boxes; returns its height, for `around`."""
        self.axes.plot([self.x] * 2, [self.y, self.y + GAP], color=INK, linewidth=0.8)
        self.y += GAP
        return self.y

    def around(self, begin, end) -> None:
        """Draws an arrow from a fork around the boxes to the side of a box.

        Args:
            begin: Height of the fork.
            end: Height of the centre of the box.
        """
        far, near = (self.x + self.side * (WIDTH / 2 + extra) for extra in (MARGIN / 2, 0))
        self.axes.plot([self.x, far, far], [begin, begin, end], color=INK, linewidth=0.8)
        self.axes.annotate("", (near, end), (far, end), arrowprops=ARROW)

    def lead(self, other, height) -> None:
        """Draws an arrow from the top of another column to the box whose centre is at `height`."""
        high, between = other.y + GAP / 2, (other.x + self.x) / 2
        near = self.x - WIDTH / 2
        xs, ys = [other.x, other.x, between, between], [other.y, high, high, height]
        self.axes.plot(xs, ys, color=INK, linewidth=0.8)
        self.axes.annotate("", (near, height), (between, height), arrowprops=ARROW)

    def frame(self, bottom, remarks) -> None:
        """Draws a frame from the height `bottom` to the current one, with remarks beside it.

        Args:
            bottom: Height of the frame's lower edge.
            remarks: List of pairs of a text and its font size, in points.
        """
        self.y += GAP / 2
        left = self.x - WIDTH / 2 - MARGIN
        shape = rounded_box(
            left, bottom, WIDTH + 2 * MARGIN, self.y - bottom,
            facecolor="#F5F5F5", edgecolor="#999999", linewidth=0.8, zorder=0,
        )  # fmt: skip
        self.axes.add_patch(shape)
        self.axes.plot([self.x] * 2, [self.y - GAP / 2, self.y], color=INK, linewidth=0.8)
        middle = (bottom + self.y) / 2
        for number, (remark, size) in enumerate(remarks):
            self.remark(middle - 0.22 * number, remark, WIDTH / 2 + MARGIN + 0.08, fontsize=size)

    def remark(self, y, text, distance, **options) -> None:
        """Writes a text at a horizontal distance from the centre."""
        align = "left" if self.side > 0 else "right"
        self._text(self.x + self.side * distance, y, text, ha=align, **{"fontsize": 7, **options})

    def _enter(self):
        """Draws the arrow into the next element; returns the height at which it begins."""
        begin = self.y
        if self._is_empty:
            self._is_empty = False
            return begin
        self.axes.annotate("", (self.x, begin + GAP), (self.x, begin), arrowprops=ARROW)
        return begin + GAP

    def _text(self, x, y, text, ha="center", **options):
        color = FAINT if options.get("fontsize", 8) < 7 else INK
        drawn = self.axes.text(x, y, text, ha=ha, va="center", color=color, **options)
        verbatim([drawn])
