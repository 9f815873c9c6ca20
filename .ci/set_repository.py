"""Writes the repository's address into pyproject.toml and wherever a reader needs it.

    make repository URL=https://example.org/owner/name

The documents read well without the address. With it, their installations begin with `git clone`,
and the site and the citation have a link.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ADDRESS = re.compile(r'^repository = "(.*)"$', re.MULTILINE)
# The beginning of the commands that install the package from a checkout, `make demo` among them.
INSTALLATION = re.compile(r"^```sh\n(?=python3 -m venv \.venv\n|make demo\b)", re.MULTILINE)


def set_repository(root, address):
    """Returns the names of the files that have changed.

    Args:
        root: Folder of a checkout.
        address: What a browser opens, without a slash at the end.
    """
    if not re.fullmatch(r"https://[^\s\"]+[^\s\"/.]", address) or address.endswith(".git"):
        raise ValueError(
            "`URL` must be what a browser opens, such as https://host/owner/name. "
            f"Received: {address!r}."
        )
    before = ADDRESS.search((root / "pyproject.toml").read_text("utf-8"))[1]
    pages = [root / "README.md", *sorted(root.glob("docs/**/*.md"))]
    if before:
        edits = {path: lambda text: text.replace(before, address) for path in pages}
        edits |= {root / name: edits[pages[0]] for name in ("CITATION.cff", "mkdocs.yml")}
    else:
        clone = f"```sh\ngit clone {address} keras_transformer && cd keras_transformer\n"
        edits = {path: lambda text: INSTALLATION.sub(clone, text) for path in pages}
        edits[root / "CITATION.cff"] = lambda text: f"{text}repository-code: {address}\n"
        edits[root / "mkdocs.yml"] = lambda text: text.replace(
            "docs_dir:", f"repo_url: {address}\ndocs_dir:", 1
        )
    edits[root / "pyproject.toml"] = lambda text: ADDRESS.sub(f'repository = "{address}"', text)
    changed = []
    for path, edit in edits.items():
        text = path.read_text("utf-8")
        if (new := edit(text)) != text:
            path.write_text(new, "utf-8")
            changed.append(str(path.relative_to(root)))
    return changed


if __name__ == "__main__":
    try:
        print(*set_repository(ROOT, sys.argv[1]), sep="\n")  # noqa: T201
    except ValueError as error:
        sys.exit(f"Error: {error}")
