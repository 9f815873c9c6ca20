"""A page on which attention weights of all kinds, layers and heads can be looked at."""

import json
from pathlib import Path

import numpy as np

from keras_transformer.files import write_text
from keras_transformer.plots.attention import TITLES

TEMPLATE = Path(__file__).with_name("attention.html")
PLACE = "{{data}}"  # in the template
SCALE = 1000  # weights are written as integers, as in the template
# What the two columns of words are: who attends, and to what.
SIDES = {
    "cross": ("output", "source"),
    "encoder": ("attending", "attended to"),
    "decoder": ("attending", "attended to"),
}


def attention_page(attentions):
    """Returns a page that shows all attention weights of a text.

    The page is one file, loads nothing, and shows pieces as they are, whatever they contain.

    Args:
        attentions: Dictionary from kinds to `Attention`s, in the order of the choices.

    Returns:
        HTML, a string.

    Raises:
        ValueError: If they are not of a text.
    """
    if other := [kind for kind in attentions if kind not in SIDES]:
        raise ValueError(
            "`attentions` must be of a text, whose pieces a page shows; draw a picture instead. "
            f"Received: kind={other[0]!r}."
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
    return TEMPLATE.read_text("utf-8").replace(PLACE, _inert(text))


def save_page(attentions, path):
    """Writes the `attention_page` whole or not at all; its folder is created if missing."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, attention_page(attentions))


def _inert(text):
    """JSON in which nothing can end a script or begin a comment."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
