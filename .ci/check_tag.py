"""Checks that a tag may be released: python .ci/check_tag.py v0.1.0."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def problems(root, tag):
    """Returns what stands against a release, a sentence each.

    Args:
        root: Folder of a checkout.
        tag: Name of the tag, such as `"v0.1.0"`.
    """

    def find(name, pattern):
        match = re.search(pattern, (root / name).read_text("utf-8"), re.MULTILINE)
        return match and match[1]

    version = find("keras_transformer/__init__.py", r'^__version__ = "(.*)"$')
    latest = find("CHANGELOG.md", r"^## (.*)$")
    if tag != f"v{version}":
        yield f"The tag must be v{version}, for keras_transformer.__version__. Received: {tag}."
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", latest):
        yield f"CHANGELOG.md must begin with `## {version} (YYYY-MM-DD)`. Received: `## {latest}`."
    if find("CITATION.cff", r"^version: (.*)$") != version:
        yield f"CITATION.cff must have `version: {version}`."
    if not find("pyproject.toml", r'^repository = "(.+)"$'):
        yield "The repository's address is missing: `make repository URL=...`."


if __name__ == "__main__":
    sys.exit("\n".join(problems(ROOT, sys.argv[1])) or 0)
