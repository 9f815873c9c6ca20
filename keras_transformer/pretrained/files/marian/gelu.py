"""The two functions that Marian has called gelu, distinguished by the version of Marian.

Marian 1.12.3 replaced `x * sigmoid(1.702 x)` with the exact GELU (marian-dev, commit d225c24d of
2023-03-01). The browsers' fork, 1.9, still computes the former. Every version of both supports
swish, `x * sigmoid(x)`, and the sigmoid form equals swish with scaled weights:

    sigmoid form(x W1 + b1) W2  =  swish(x (1.702 W1) + 1.702 b1) (W2 / 1.702)
"""

import re
from typing import Any

import numpy as np

ACTIVATION = "transformer-ffn-activation"
EXACT, SIGMOID = FORMS = ("exact", "sigmoid")
EXACT_SINCE = (1, 12, 3)
FACTOR = 1.702
OURS = "keras-transformer"  # version in files that this package wrote, which use the exact form
INNER = re.compile(r"(en|de)coder_l\d+_ffn_[Wb]1")
OUTER = re.compile(r"(en|de)coder_l\d+_ffn_W2")


def form_of(settings, path, form=None) -> tuple[str | None, list[str]]:
    """Returns the form of GELU that a file uses, and notes.

    Args:
        settings: The settings of the file.
        path: The file, for messages.
        form: `"exact"` or `"sigmoid"`, regardless of the file. `None`: depends on its `version`.

    Returns:
        `"exact"`, `"sigmoid"`, or `None` for another activation; and a list of notes, which
        contains one if the file does not name a version of Marian.

    Raises:
        ValueError: If `form` is not valid, or has no effect.
    """
    if form is not None and form not in FORMS:
        raise ValueError(f"`gelu` must be {' or '.join(FORMS)}. Received: gelu={form!r}.")
    activation = settings.get(ACTIVATION)
    if activation != "gelu":
        if form is not None:
            raise ValueError(
                f"`gelu` has no effect on {path}: its `{ACTIVATION}` is {activation or 'relu'}."
            )
        return None, []
    if form is not None:
        return form, []
    version = str(settings.get("version") or "")
    numbers = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version.strip())
    if numbers:
        return (EXACT if tuple(map(int, numbers.groups())) >= EXACT_SINCE else SIGMOID), []
    if version.strip() == OURS:
        return EXACT, []
    named = f"names {version!r}" if version else "names none"
    return EXACT, [
        f"{path}: gelu is read as the exact GELU of Marian 1.12.3 and later, but the file names no "
        f"`version` of Marian (it {named}); if an older Marian trained the model, convert it with "
        "--gelu sigmoid"
    ]


def as_swish(settings, weights) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Converts settings and weights of a model with the sigmoid form to an equal model with swish.

    Args:
        settings: The settings of the file.
        weights: Dictionary from Marian's names to float32 arrays.
    """
    scaled = dict(weights)
    for name, array in weights.items():
        if INNER.fullmatch(name):
            scaled[name] = (array * np.float64(FACTOR)).astype(np.float32)
        elif OUTER.fullmatch(name):
            scaled[name] = (array / np.float64(FACTOR)).astype(np.float32)
    return {**settings, ACTIVATION: "swish"}, scaled
