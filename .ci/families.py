"""Tables of the families of checkpoints in the pages on pretrained models, made from the families.

    python .ci/families.py

A new family is one file in `keras_transformer/pretrained/families`: its rows follow from its class.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from keras_transformer.pretrained.family import Family, families  # noqa: E402

OVERVIEW = "pretrained.md"
HEADS = "pretrained_encoders.md"  # its families have the same heads
GENERATORS = "pretrained_language_models.md"  # their exports refuse causal encoders
# Pages in the order of the table, with what their families are for.
PAGES = {
    "pretrained_translation.md": "translation and summarisation",
    "marian.md": "translation",
    HEADS: "text encoders",
    GENERATORS: "language models",
    "pretrained_speech.md": "speech",
    "pretrained_images.md": "images",
}
# Pages of the tasks that are not called like the task.
TASKS = {
    "embedding": "embeddings",
    "language_modelling": "language_models",
    "scoring": "reranking",
    "sparse_embedding": "sparse_embeddings",
    "speech_recognition": "speech",
    "image_embedding": "image_embeddings",
}
WORDS = {
    "image_embedding": "vectors of images",
    "multi_label_classification": "several labels",
    "scoring": "reranking",
    "summarization": "summarisation",
}
EXPORTS = {"ctranslate2": "CTranslate2", "marian": "Marian"}
START, END = "<!-- table: python .ci/families.py -->\n", "<!-- end of the table -->\n"


def page_of(task: str) -> str:
    """Returns the name of the page of a task."""
    return f"{TASKS.get(task, task)}.md"


def linked(task: str) -> str:
    """Returns the link to the page of a task."""
    return f"[{WORDS.get(task, task.replace('_', ' '))}]({page_of(task)})"


def anchors(page: str) -> list[str]:
    """Returns the anchors of the sections of a page, in order."""
    headings = re.findall(r"^## (.*)$", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in headings]


def ordered() -> list[type[Family]]:
    """Returns the families in the order of the pages and of their sections."""
    places = {page: (number, ["", *anchors(page)]) for number, page in enumerate(PAGES)}

    def place(family):
        number, sections = places[family.listing.page]
        return number, sections.index(next(iter(family.listing.names)))

    return sorted(families(), key=place)


def named(family: type[Family], page: str) -> str:
    """Returns the names of a family as links to its sections, for a table on a page."""
    links = []
    for anchor, names in family.listing.names.items():
        place = "" if family.listing.page == page else family.listing.page
        links.append(f"[{', '.join(names)}]({place}{f'#{anchor}' if anchor else ''})")
    return ", ".join(links)


def model_type(family: type[Family]) -> str:
    """Returns the value of `model_type`, or the command that reads the family's own files."""
    return f"`{family.model_type}`" if family.model_type else "`convert marian`"


def tasks_of(family: type[Family]) -> list[str]:
    """Returns the names of the tasks of a family, each once."""
    return [*dict.fromkeys(task for tasks in family.kinds().values() for task in tasks)]


def further_exports(family: type[Family]) -> str:
    """Returns the names of the formats beside those of all families, with their limits."""
    names = [EXPORTS[name] for name in family.listing.exports]
    if family.listing.page == GENERATORS and "embedding" in tasks_of(family):
        names = [f"{name} (language modelling only)" for name in names]
    return ", ".join(names) or "-"


def overview() -> list[str]:
    """Returns the table of all families."""
    lines = [
        "| family | `model_type` | the run is for | also exports to | tried with |",
        "|---|---|---|---|---|",
    ]
    for family in ordered():
        listing = family.listing
        many = listing.page == HEADS
        tasks = f"[one of {len(tasks_of(family))} tasks]({HEADS}#heads-and-tasks)"
        cells = [
            named(family, OVERVIEW),
            model_type(family),
            tasks if many else ", ".join(map(linked, tasks_of(family))),
            further_exports(family),
            ", ".join(listing.tried) or "random weights",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def heads() -> list[str]:
    """Returns the table of the heads of text encoders, with BERT's classes as the example."""
    (family,) = [family for family in families() if family.name == "bert"]
    lines = ["| class, for example BERT's | the run is for |", "|---|---|"]
    for name, tasks in family.kinds().items():
        lines.append(f"| `{name}` | {', '.join(map(linked, tasks))} |")
    return lines


def vocabularies(page: str) -> list[str]:
    """Returns the table of the families of a page, with the files of their vocabularies.

    Args:
        page: One of `PAGES`.
    """
    theirs = [family for family in ordered() if family.listing.page == page]
    has_files = any(family.listing.files for family in theirs)
    last = "files of the vocabulary" if has_files else "the run is for"
    lines = [f"| family | `model_type` | class in `transformers` | {last} |", "|---|---|---|---|"]
    for family in theirs:
        names = [f"`{name}`" for name in family.kinds()]
        if page == HEADS:
            names = [f"`{family.classes}...`"]  # ty: ignore[unresolved-attribute]
        files = family.listing.files if has_files else ", ".join(map(linked, tasks_of(family)))
        lines.append(
            f"| {named(family, page)} | {model_type(family)} | {', '.join(names)} | {files} |"
        )
    return lines


def tables(page: str) -> list[list[str]]:
    """Returns the tables of a page in their order.

    Args:
        page: `OVERVIEW`, or one of `PAGES` other than that of Marian.
    """
    if page == OVERVIEW:
        return [overview()]
    return [vocabularies(page), heads()] if page == HEADS else [vocabularies(page)]


def pages() -> list[str]:
    """Returns the names of the pages with tables."""
    return [OVERVIEW, *(page for page in PAGES if page != "marian.md")]


def written(page: str) -> str:
    """Returns the text of a page with its tables, which replace those that it has."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    parts = re.split(f"({re.escape(START)}.*?{re.escape(END)})", text, flags=re.DOTALL)
    new = tables(page)
    if len(parts) != 2 * len(new) + 1:
        raise SystemExit(f"docs/{page} must have {len(new)} tables between {START!r} and {END!r}.")
    for number, lines in enumerate(new):
        parts[2 * number + 1] = START + "".join(f"{line}\n" for line in lines) + END
    return "".join(parts)


def main() -> None:
    """Writes the tables."""
    for page in pages():
        (ROOT / "docs" / page).write_text(written(page), "utf-8")
        print(page)  # noqa: T201


if __name__ == "__main__":
    main()
