"""Texts for the benchmark of `search`: descriptions of Debian packages from `apt`'s translations.

    apt-get -o Acquire::Languages=en update
    python benchmarks/search_texts.py texts.txt queries.txt

`texts.txt` has 33,144 different English descriptions, a line each; `queries.txt` has the titles of
the packages, in the same order.
"""

import pathlib
import subprocess
import sys

LISTS = pathlib.Path("/var/lib/apt/lists")


def descriptions(folder, language):
    """Returns titles and descriptions by name of the package."""
    pattern = f"*debian_dists_*_main_i18n_Translation-{language}*"
    (path,) = (p for p in folder.glob(pattern) if "updates" not in p.name)
    content = subprocess.run(
        ["/usr/lib/apt/apt-helper", "cat-file", path], check=True, capture_output=True
    ).stdout.decode()
    found = {}
    for entry in content.split("\n\n"):
        name = title = None
        lines = []
        for line in entry.split("\n"):
            if line.startswith("Package: "):
                name = line.removeprefix("Package: ")
            elif line.startswith(f"Description-{language}: "):
                title = line.partition(": ")[2]
            elif line.startswith(" ") and line != " .":
                lines.append(line.strip())
        if name and title and lines:
            found.setdefault(name, (title, " ".join(lines)))
    return found


def main(texts, queries, lists=LISTS, count=33_144):
    """Writes both files."""
    found = descriptions(pathlib.Path(lists), "en")
    rows = [found[name] for name in sorted(found)]
    unique = [*{text: (title, text) for title, text in reversed(rows)}.values()][:count]
    for path, column in ((queries, 0), (texts, 1)):
        lines = "".join(f"{row[column]}\n" for row in unique)
        pathlib.Path(path).write_text(lines, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
