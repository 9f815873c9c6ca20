"""Pages and notebooks of the examples: `make example-pages`.

Every `examples/NAME.py` is a notebook in jupytext's percent format. This program executes it and
writes `docs/examples/NAME.md`, with what it printed and its plots, and `docs/examples/NAME.ipynb`,
without outputs. Names on the command line choose examples; without names, all are built.
"""

import argparse
import os
import pathlib
import re
import tempfile

import jupytext
import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from nbconvert.writers import FilesWriter

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES, PAGES = ROOT / "examples", ROOT / "docs" / "examples"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# Messages of C++ libraries, such as TensorFlow's about the processor, stay on the terminal.
KERNEL_OPTIONS = ["--IPKernelApp.capture_fd_output=False"]


def names():
    """Returns the names of all examples."""
    return sorted(path.stem for path in EXAMPLES.glob("*.py"))


def notebook_of(name):
    """Returns an example as a notebook without outputs; the same file gives the same notebook."""
    notebook = jupytext.read(EXAMPLES / f"{name}.py")
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
    return notebook


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
            resources={"metadata": {"path": folder}},
        ).execute()
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        for output in outputs:
            if output.get("name") == "stderr" and "Warning" in output.text:
                raise RuntimeError(f"{cell.source}\nwarned:\n{output.text}")
        if outputs:
            cell.outputs = [output for output in outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                if output.get("name") == "stdout":
                    output.text = printed(output.text)
    return notebook


def printed(text):
    """Returns what a cell printed as plain text.

    The control sequences of a terminal are left out, and TensorFlow's log, which names temporary
    folders.
    """
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return re.sub(r"^INFO:tensorflow:.*\n", "", text, flags=re.M)


def plain(notebook):
    """Returns a copy without lines that only a notebook understands, such as `%matplotlib`."""
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = re.sub(r"^%.*\n?", "", cell.source, flags=re.M).rstrip("\n")
    return notebook


def write(name, notebook, folder=PAGES):
    """Writes the page of an executed notebook, its plots, and the notebook without outputs.

    Args:
        name: Name of the example: the file in `examples/` without `.py`.
        notebook: The executed notebook.
        folder: Folder of the pages and notebooks.
    """
    plots = pathlib.Path(folder, f"{name}_files")
    for plot in plots.glob("*.png"):
        plot.unlink()
    resources = {"unique_key": name, "output_files_dir": plots.name}
    page, resources = MarkdownExporter().from_notebook_node(plain(notebook), resources)
    FilesWriter(build_directory=str(folder)).write(page, resources, name)
    nbformat.write(notebook_of(name), pathlib.Path(folder, f"{name}.ipynb"))


def main():
    """Builds the examples that the command line names, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="such as images; without names, all examples")
    parser.add_argument("--folder", default=PAGES, help="where to write; default: docs/examples")
    options = parser.parse_args()
    if unknown := sorted({*options.names} - {*names()}):
        parser.error(f"no such example: {', '.join(unknown)}. There are {', '.join(names())}.")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # as the command line of the package
    for name in options.names or names():
        write(name, executed(notebook_of(name)), options.folder)


if __name__ == "__main__":
    main()
