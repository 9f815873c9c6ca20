"""HTML page to explore the attention weights of all kinds, layers and heads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.files import write_text
from keras_transformer.plots.attention import TITLES, check_any

TEMPLATE = Path(__file__).with_name("attention.html")
PLACEHOLDER = "{{data}}"  # in the template
SCALE = 1000  # weights are written as integers; the template divides by the same number
# Titles of the two columns of tokens: queries and keys.
SIDES = {
    "cross": ("output", "source"),
    "encoder": ("attending", "attended to"),
    "decoder": ("attending", "attended to"),
}


def attention_page(attentions: Mapping[str, Any]) -> str:
    """Returns a page that shows all attention weights of a text.

    The page is one file that loads nothing else. Tokens are shown as text, even if they look like
    HTML.

    Args:
        attentions: Dictionary from kinds to `Attention`s, in the order of the page's menu.

    Returns:
        HTML, a string.

    Raises:
        ValueError: If there is no attention, or one that is not between tokens.
    """
    check_any(attentions)
    if other := [kind for kind in attentions if kind not in SIDES]:
        raise ValueError(
            "`attentions` must be attention between tokens, which the page lists; draw a figure "
            f"instead. Received: kind={other[0]!r}."
        )
    data = [
        {
            "title": TITLES[kind],
            "sides": SIDES[kind],
            "queries": attention.queries,
            "keys": attention.keys,
            "weights": np.rint(attention.weights * SCALE).astype(int).tolist(),
        }
        for kind, attention in attentions.items()
    ]
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return TEMPLATE.read_text("utf-8").replace(PLACEHOLDER, _escaped(text))


def save_page(attentions: Mapping[str, Any], path: str | Path) -> None:
    """Writes an `attention_page` to a file, whole or not at all.

    Args:
        attentions: See `attention_page`.
        path: Path of the file. Its folder is created if it does not exist.

    Raises:
        ValueError: See `attention_page`.
        OSError: If the file cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, attention_page(attentions))


def _escaped(text):
    """Returns JSON that cannot end a script element or begin a comment."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
