"""Pages and notebooks of the examples: `make example-pages`.

Every `examples/NAME.py` is a notebook in jupytext's percent format. This program executes it and
writes `docs/examples/NAME.md` and `docs/examples/NAME.ipynb`, both with what it printed and its
plots. Names on the command line choose examples; without names, all are built. `--recorded` writes
them from the outputs in the notebooks: for changes of texts and comments.
"""

import argparse
import os
import pathlib
import re
import tempfile

import nbformat
from example_cells import (
    ROOT,
    address,
    alternative_texts,
    names,
    of_notebook,
    of_page,
    statements,
)
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from nbconvert.writers import FilesWriter

PAGES = ROOT / "docs" / "examples"
# Messages of C++ libraries, such as TensorFlow's about the processor, stay on the terminal.
KERNEL_OPTIONS = ["--IPKernelApp.capture_fd_output=False"]
# Left out of what a cell prints: control sequences of a terminal; TensorFlow's log, which names
# temporary folders; and times, which depend on what else the machine does while pages are built
# (docs/examples.md has processor times).
LEFT_OUT = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]"
    r"|^INFO:tensorflow:.*\n"
    r"| - \d+m?s(?= - )| - \d+[mu]?s/step"  # Keras's `fit`
    r"| *[\d,]+ tokens/s *[\d:]+ left$|(?<=Trained) in [\d:]+(?=\. )| \d:\d\d:\d\d$",  # `train`
    re.MULTILINE,
)


def executed(notebook):
    """Returns a copy of a notebook with what its cells print and draw, without stderr.

    Raises:
        CellExecutionError: If a cell raises an exception.
        RuntimeError: If a cell warns.
    """
    notebook = nbformat.from_dict(notebook)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            timeout=None,
            extra_arguments=KERNEL_OPTIONS,
            coalesce_streams=True,
            record_timing=False,
            resources={"metadata": {"path": folder}},
        ).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr" and "Warning" in output.text:
                raise RuntimeError(f"{cell.source}\nwarned:\n{output.text}")
    notebook.metadata = {**notebook.metadata, "language_info": {"name": "python"}}
    return notebook


def recorded(notebook, name):
    """Returns a copy of a notebook with the outputs of the example's notebook in docs/examples.

    Raises:
        ValueError: If the code has changed since.
    """
    notebook = nbformat.from_dict(notebook)
    before = nbformat.read(PAGES / f"{name}.ipynb", as_version=4).cells
    before = [cell for cell in before if cell.cell_type == "code" and cell.id != "install"]
    now = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [statements(cell.source) for cell in before] != [statements(cell.source) for cell in now]:
        raise ValueError(
            f"The code of examples/{name}.py has changed since its outputs were recorded. "
            f'Run `make example-pages NAMES="{name}"`.'
        )
    for old, new in zip(before, now, strict=True):
        new.outputs, new.execution_count = old.outputs, old.execution_count
    return notebook


def tidied(notebook):
    """Returns a copy of a notebook with outputs that are the same on every machine.

    Raises:
        ValueError: If a picture has no description, or there is one without a picture.
    """
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.outputs:
            if output.get("name") == "stdout":
                output.text = LEFT_OUT.sub("", output.text)
        pictures = [x for x in cell.outputs if "image/png" in x.get("data", {})]
        texts = alternative_texts(cell.source)
        if len(pictures) != len(texts):
            raise ValueError(
                "Each picture that a cell draws needs a comment `# Picture: ...`, which describes "
                f"it. {len(pictures)} pictures and {len(texts)} comments:\n{cell.source}"
            )
        for picture, text in zip(pictures, texts, strict=True):
            picture.metadata = {"image/png": {"alt": text}}
    return notebook


def plain(notebook):
    """Returns a copy without lines that only a notebook understands, such as `%matplotlib`."""
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = re.sub(r"^%.*\n?", "", cell.source, flags=re.M).rstrip("\n")
    return notebook


def write(name, notebook, folder=PAGES):
    """Writes the page of an executed notebook, its plots, and the notebook for readers.

    Args:
        name: Name of the example: the file in `examples/` without `.py`.
        notebook: The executed notebook, with the cells of the page.
        folder: Folder of the pages and notebooks.
    """
    notebook = tidied(notebook)
    plots = pathlib.Path(folder, f"{name}_files")
    resources = {"unique_key": name, "output_files_dir": plots.name}
    page, resources = MarkdownExporter().from_notebook_node(plain(notebook), resources)
    texts = (text for cell in notebook.cells for text in alternative_texts(cell.source))
    page = re.sub(r"!\[png\](?=\()", lambda _: f"![{next(texts)}]", page)
    for plot in plots.glob("*.png"):
        plot.unlink()
    FilesWriter(build_directory=str(folder)).write(page, resources, name)
    path = pathlib.Path(folder, f"{name}.ipynb")
    nbformat.write(of_notebook(name, notebook, address()), path)


def main():
    """Builds the examples that the command line names, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="such as images; without names, all examples")
    parser.add_argument("--folder", default=PAGES, help="where to write; default: docs/examples")
    parser.add_argument("--recorded", action="store_true", help="use the outputs in the notebooks")
    options = parser.parse_args()
    if unknown := sorted({*options.names} - {*names()}):
        parser.error(f"no such example: {', '.join(unknown)}. There are {', '.join(names())}.")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # as the command line of the package
    os.environ.pop("MPLBACKEND", None)  # a notebook draws into its cells
    for name in options.names or names():
        page = of_page(name)
        page = recorded(page, name) if options.recorded else executed(page)
        write(name, page, options.folder)


if __name__ == "__main__":
    main()
