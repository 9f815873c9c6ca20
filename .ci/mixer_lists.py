"""Lists of the mixers in the stub of the layers and in two pages, made from the mixers themselves.

    python .ci/mixer_lists.py

A new mixer is one file in `keras_transformer/mixers`: these lists follow from its class.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from keras_transformer.mixers import Mixer  # noqa: E402


def public_kinds() -> dict[str, type[Mixer]]:
    """Returns the classes of the mixers of this library that are listed, by kind."""
    kinds = Mixer.kinds()
    return {name: kinds[name] for name in Mixer.described_kinds()}


def stub_lines() -> list[str]:
    """Returns the lines of the mixers in the stub of `keras_transformer.layers`."""
    places = {kind.__name__: kind.__module__.rpartition(".")[2] for kind in public_kinds().values()}
    return [f"from ..mixers.{places[name]} import {name} as {name}" for name in sorted(places)]


def reference_lines() -> list[str]:
    """Returns the lines of the mixers in the reference of the layers."""
    return [f"::: {kind.__module__}.{kind.__name__}" for kind in public_kinds().values()]


def table_lines() -> list[str]:
    """Returns the rows of the table of mixers in the page on layers."""
    kinds = public_kinds().items()
    return [f'| `"{name}"` | `{kind.__name__}` | {kind.about} |' for name, kind in kinds]


# The files, the place where the list begins, the form of its lines, and their replacement.
LISTS = {
    "keras_transformer/layers/__init__.pyi": (
        "(?<=# Written by `make stubs`.\n)",
        r"from \.\.mixers\.\w+ import \w+ as \w+\n",
        stub_lines,
    ),
    "docs/api/layers.md": (
        r"(?=::: keras_transformer\.mixers\.self_attention\.SelfAttention\n)",
        r"::: keras_transformer\.mixers\.[\w.]+\n",
        reference_lines,
    ),
    "docs/layers.md": (
        r'(?=\| `"self_attention"` \| )',
        r'\| `"\w+"` \| `\w+` \| .*\n',
        table_lines,
    ),
}


def written(name: str) -> str:
    """Returns the text of a file with its list of mixers, which replaces the list that it has.

    Args:
        name: One of `LISTS`.
    """
    place, pattern, lines = LISTS[name]
    text = (ROOT / name).read_text("utf-8")
    found = re.search(f"{place}({pattern})+", text)
    if found is None:
        raise SystemExit(f"{name} has no list of mixers.")
    return text[: found.start()] + "".join(f"{line}\n" for line in lines()) + text[found.end() :]


def main() -> None:
    """Writes the lists."""
    for name in LISTS:
        (ROOT / name).write_text(written(name), "utf-8")
        print(name)  # noqa: T201


if __name__ == "__main__":
    main()
