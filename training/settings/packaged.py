"""Configurations that come with the package, with a description of each."""

import re
from pathlib import Path

CONFIGS = Path(__file__).parents[1] / "configs"
LENGTH = 50  # characters of a description, so that most fit a line of `train --help`


def packaged() -> dict[str, str]:
    """Returns the names of the configurations, in order, with what the comment at the top says."""
    return {path.stem: _description(path) for path in sorted(CONFIGS.glob("*.toml"))}


def _description(path):
    """Returns the beginning of the comment at the top of a file: a clause, or several short ones.

    Citations in parentheses and backticks are left out.
    """
    lines = []
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    text = re.sub(r" \([^)]*\)", "", " ".join(lines)).replace("`", "")
    sentence = re.split(r"\.(?= [A-Z])|\.$|:(?= )", text)[0]
    shown, *more = sentence.split(", ")
    for clause in more:
        if len(shown) + len(clause) + 2 > LENGTH:
            break
        shown += f", {clause}"
    return shown
