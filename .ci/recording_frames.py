"""Frames of the README's moving picture: a terminal, captions, and the file of both."""

import itertools

from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, CAPTION, SCALE = 800, 560, 40, 1.5  # in pixels of a terminal; the file has more
COLUMNS, ROWS, LINE, MARGIN, TITLE = 84, 23, 21, 16, 34
GROUND, BAR, INK, FAINT, PROMPT = "#0d1117", "#21262d", "#e6edf3", "#8b949e", "#3fb950"
CAPTIONS = ("#2b59c3", "#ffffff")


def scaled(*values):
    return tuple(round(SCALE * value) for value in values)


def font(size, family="DejaVu Sans Mono", weight="normal"):
    """Returns a font that matplotlib brings along, so that the picture is the same everywhere."""
    wanted = font_manager.FontProperties(family=family, weight=weight)
    return ImageFont.truetype(font_manager.findfont(wanted), round(SCALE * size))


MONO, LARGE = font(15), font(17, "DejaVu Sans", "bold")


def with_caption(picture, caption):
    """Returns a picture of the size without a caption, above a caption."""
    frame = Image.new("RGB", scaled(WIDTH, HEIGHT + CAPTION), CAPTIONS[0])
    frame.paste(picture, (0, 0))
    middle = scaled(WIDTH / 2, HEIGHT + CAPTION / 2)
    ImageDraw.Draw(frame).text(middle, caption, CAPTIONS[1], LARGE, anchor="mm")
    return frame


def terminal(lines, caption, typed=None):
    """Returns a frame of a terminal.

    Args:
        lines: The lines so far; those that begin with `$ ` are commands. The last ones are shown.
        caption: The line below.
        typed: What has been typed of the next command, if any.
    """
    picture = Image.new("RGB", scaled(WIDTH, HEIGHT), GROUND)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, *scaled(WIDTH, TITLE)), BAR)
    for number, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        x, y = 20 + 20 * number, TITLE / 2
        draw.ellipse(scaled(x - 6, y - 6, x + 6, y + 6), colour)
    whole = [*lines, *([] if typed is None else [f"$ {typed}█"])]
    shown = [line[n : n + COLUMNS] for line in whole for n in range(0, max(1, len(line)), COLUMNS)]
    for row, line in enumerate(shown[-ROWS:]):
        x, y = scaled(MARGIN, TITLE + 10 + LINE * row)
        if line.startswith("$ "):
            draw.text((x, y), "$ ", PROMPT, MONO)
            draw.text((x + draw.textlength("$ ", MONO), y), line[2:], INK, MONO)
        else:
            draw.text((x, y), line, FAINT if line.startswith(("update", "  ")) else INK, MONO)
    return with_caption(picture, caption)


def typing(lines, command, caption, milliseconds=600):
    """Yields pairs of frame and duration in which a command is typed, four letters at a time."""
    ends = [*range(0, len(command), 4), len(command)]
    for end in ends:
        yield terminal(lines, caption, command[:end]), milliseconds // len(ends)


def output(lines, printed, caption, milliseconds, seconds):
    """Yields the frames in which a command prints.

    Args:
        lines: The lines before it, to which its own are appended.
        printed: Pairs of seconds and line.
        caption: The line below.
        milliseconds: Duration of all frames.
        seconds: Lines printed in as many seconds appear together.
    """
    groups = [
        [line for _, line in group]
        for _, group in itertools.groupby(printed, lambda pair: pair[0] // seconds)
    ]
    for group in groups:
        lines += group
        yield terminal(lines, caption), milliseconds // len(groups)


def write_webp(frames, path):
    """Writes pairs of frame and milliseconds as a lossless animation.

    Of text, such a WebP file has a quarter of the size of a GIF. Only the first frame is whole.
    """
    pictures, durations = zip(*frames, strict=True)
    first, *others = pictures
    first.save(
        path, save_all=True, append_images=others, duration=list(durations), loop=0,
        lossless=True, quality=90, method=4, kmin=len(pictures), kmax=len(pictures) + 1,
    )  # fmt: skip
