"""Draws the README's figure "What is in the file": `python .ci/contents_figure.py`.

A row is a kind of file, a column a step from text to text. The colour of a cell says who does the
step; grey is the reader's own code. tests/system/test_readme.py compares the rows with the formats
and the options of `keras-transformer export`.
"""

import dataclasses
import html
import pathlib

FIGURE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "images" / "contents.svg"
STEPS = ("tokenizer", "network", "loop of the search", "detokenizer")
# Each kind of cell: its meaning, and its colours of area and text on light and on dark pages.
KINDS = {
    "graph": (
        "a graph in the file",
        "#2b59c3", "#ffffff", "#3f6fe0", "#ffffff",
    ),
    "reader": (
        "vocabulary in the file, read by our programs",
        "#cfdcfa", "#14264f", "#22335f", "#dbe5ff",
    ),
    "runtime": (
        "another program, with weights or vocabulary from the file",
        "#bfe3d7", "#0e3b2d", "#1d4a3c", "#d3f2e7",
    ),
    "yours": (
        "your own code",
        "#e4e6ea", "#4a5160", "#343a46", "#aeb6c4",
    ),
}  # fmt: skip
PAGE = ("#ffffff", "#1d2433", "#667085", "#0d1117", "#e6e9f0", "#98a2b3")  # area, text, notes
LEFT, CELL, ROW, GAP, MARGIN = 250, 176, 44, 5, 16


@dataclasses.dataclass(frozen=True)
class Row:
    """A kind of file.

    Args:
        name, note: What it is, and what runs it.
        cells: For each of `STEPS`, a key of `KINDS` and the text.
        format: The subcommand of `export` that writes it; `None`: another project.
        option: The option of this command that it needs, if any.
    """

    name: str
    note: str
    cells: tuple
    format: str | None = None
    option: str | None = None


def around(ends, network, loop):
    """Returns the cells of a row whose tokenizer and detokenizer are alike."""
    return (ends, network, loop, ends)


GRAPH, YOURS = ("graph", "in the graph"), ("yours", "your own code")
READERS = {
    "litert": ("reader", "Python, JavaScript, Kotlin, Swift"),
    "onnx": ("reader", "Python, JavaScript"),
    "ctranslate2": ("reader", "Python"),
}
CTRANSLATE2, MARIAN = ("runtime", "CTranslate2"), ("runtime", "Marian")
TRANSFORMERS = ("runtime", "Transformers: Python, JavaScript")
OURS = (
    Row("SavedModel", "TensorFlow Serving", 4 * (GRAPH,), "saved-model"),
    Row(".tflite", "LiteRT", around(READERS["litert"], GRAPH, GRAPH), "litert"),
    Row(".tflite, --tokenizer", "and TensorFlow Text; unigram only", 4 * (GRAPH,),
        "litert", "--tokenizer"),
    Row(".onnx", "ONNX Runtime", around(READERS["onnx"], GRAPH, GRAPH), "onnx"),
    Row(".onnx, --tokenizer", "and onnxruntime-extensions", 4 * (GRAPH,), "onnx", "--tokenizer"),
    Row("CTranslate2", "a folder with weights",
        around(READERS["ctranslate2"], CTRANSLATE2, CTRANSLATE2), "ctranslate2"),
    Row("Marian", "a folder with weights", 4 * (MARIAN,), "marian"),
)  # fmt: skip
OTHERS = (
    Row("KerasHub, model.export", "SavedModel, .tflite, .onnx",
        around(YOURS, ("graph", "one call, in the graph"), YOURS)),
    Row("Hugging Face, Optimum", ".onnx files",
        around(TRANSFORMERS, ("graph", "encoder and one step"), TRANSFORMERS)),
    Row("LiteRT's converters", ".tflite",
        around(YOURS, ("graph", "one call or one step"), YOURS)),
)  # fmt: skip


def text(x, y, words, style, anchor="start"):
    return (
        f'<text x="{x}" y="{y}" class="{style}" text-anchor="{anchor}">{html.escape(words)}</text>'
    )


def heading(words, y):
    return text(MARGIN, y, words, "heading")


def row(one, y):
    """Yields the elements of a row whose upper edge is `y`."""
    yield text(MARGIN, y + 19, one.name, "name")
    yield text(MARGIN, y + 36, one.note, "note")
    for step, (kind, words) in enumerate(one.cells):
        x = LEFT + step * (CELL + GAP)
        yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{ROW}" rx="6" class="{kind}"/>'
        lines = words.split(": ") if ": " in words else halves(words)
        for number, line in enumerate(lines):
            height = y + ROW / 2 + 5 + 16 * (number - (len(lines) - 1) / 2)
            yield text(x + CELL / 2, height, line, f"cell on-{kind}", "middle")


def halves(words):
    """Returns a text as one line, or as two if it has a comma and is too wide for a cell."""
    first, comma, second = words.partition(", ")
    while second.count(",") > first.count(","):
        more, _, second = second.partition(", ")
        first = f"{first}, {more}"
    return [words] if len(words) < 24 else [first + comma.strip(), second]


def legend(y):
    for number, (kind, (meaning, *_)) in enumerate(KINDS.items()):
        x, line = MARGIN + 500 * (number % 2), y + 26 * (number // 2)
        yield f'<rect x="{x}" y="{line}" width="18" height="18" rx="4" class="{kind}"/>'
        yield text(x + 26, line + 14, meaning, "note")


def style():
    """Returns the style sheet, which follows the light or dark scheme of the page."""

    def rules(area, ink, faint, columns):
        colours = {kind: [values[column] for column in columns] for kind, values in KINDS.items()}
        parts = [f".page{{fill:{area}}} text{{fill:{ink}}} .note{{fill:{faint}}}"]
        parts += [f".{kind}{{fill:{a}}} .on-{kind}{{fill:{b}}}" for kind, (a, b) in colours.items()]
        return " ".join(parts)

    light, dark = rules(*PAGE[:3], (1, 2)), rules(*PAGE[3:], (3, 4))
    fonts = (
        "text{font:14px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif} "
        ".name,.heading{font-weight:600} .note{font-size:12.5px} .cell{font-size:13px}"
    )
    return f"<style>{fonts} {light} @media (prefers-color-scheme: dark){{{dark}}}</style>"


def draw():
    """Returns the figure as SVG."""
    width, parts, y = LEFT + len(STEPS) * (CELL + GAP) - GAP + MARGIN, [], 30
    for step, words in enumerate(STEPS):
        parts.append(text(LEFT + step * (CELL + GAP) + CELL / 2, y, words, "heading", "middle"))
    parts.append(heading("keras_transformer writes", y))
    for number, one in enumerate((*OURS, *OTHERS)):
        if number == len(OURS):
            y += 34
            parts.append(heading("other projects write", y))
        parts += row(one, y + 12)
        y += ROW + GAP
    parts += legend(y + 28)
    height = y + 28 + 2 * 26 + 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
    )
    page = f'<rect width="{width}" height="{height}" rx="10" class="page"/>'
    return "\n".join([head, style(), page, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    FIGURE.write_text(draw(), "utf-8")
