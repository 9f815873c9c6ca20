"""The two functions that Marian has called gelu, told apart by the version that wrote a file.

Marian 1.12.3 replaced `x * sigmoid(1.702 x)` with the exact GELU (marian-dev, commit d225c24d of
2023-03-01). The browsers' fork, 1.9, still computes the former. Every version of both has swish,
`x * sigmoid(x)`, and the sigmoid form is a swish of weights that are scaled once:

    sigmoid form(x W1 + b1) W2  =  swish(x (1.702 W1) + 1.702 b1) (W2 / 1.702)
"""

import re

import numpy as np

ACTIVATION = "transformer-ffn-activation"
EXACT, SIGMOID = FORMS = ("exact", "sigmoid")
EXACT_SINCE = (1, 12, 3)
FACTOR = 1.702
OURS = "keras-transformer"  # version of files that this package wrote, with the exact form
INNER = re.compile(r"(en|de)coder_l\d+_ffn_[Wb]1")
OUTER = re.compile(r"(en|de)coder_l\d+_ffn_W2")


def form_of(settings, path, form=None):
    """Returns which GELU a file means, and notes.

    Args:
        settings: The settings of the file.
        path: The file, for messages.
        form: `"exact"` or `"sigmoid"`, whatever the file says. `None`: by its `version`.

    Returns:
        `"exact"`, `"sigmoid"`, or `None` for another activation; and a list of strings, which holds
        one if the file names no version.

    Raises:
        ValueError: If `form` is something else, or has no effect.
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
    named = f"has the version {version!r}, which is none of Marian's" if version else "has none"
    return EXACT, [
        f"{path}: gelu is read as the exact GELU, since Marian 1.12.3, but the file tells no "
        f"`version` of Marian (it {named}); if an older Marian trained it, convert it with --gelu "
        "sigmoid"
    ]


def as_swish(settings, weights):
    """Returns settings and weights of a model with the sigmoid form as those of one with swish.

    Args:
        settings: The settings of the file.
        weights: Arrays in float32, by Marian's names.
    """
    scaled = dict(weights)
    for name, array in weights.items():
        if INNER.fullmatch(name):
            scaled[name] = (array * np.float64(FACTOR)).astype(np.float32)
        elif OUTER.fullmatch(name):
            scaled[name] = (array / np.float64(FACTOR)).astype(np.float32)
    return {**settings, ACTIVATION: "swish"}, scaled
