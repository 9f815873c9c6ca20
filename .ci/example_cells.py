"""Cells of an example: those of its page, and those of its notebook."""

import ast
import pathlib
import re
import shlex

import jupytext
import nbformat

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# Tag of the cell that only the page has: commands to run the example as a program. A notebook
# has a cell with the same commands in its place.
PAGE = "page"
PICTURE = re.compile(r"^# Picture: (.+(?:\n# .+)*)", re.MULTILINE)
COLAB = "https://colab.research.google.com/github/"
GITHUB = "https://github.com/"


def names():
    """Returns the names of all examples."""
    return sorted(path.stem for path in EXAMPLES.glob("*.py"))


def address():
    """Returns the repository's address, which is empty until `make repository` sets it."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    return re.search(r'^repository = "(.*)"$', text, re.MULTILINE)[1]


def of_page(name):
    """Returns an example as a notebook without outputs, with the cells of its page."""
    notebook = jupytext.read(EXAMPLES / f"{name}.py")
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags")
        cell.id, cell.metadata = f"cell-{number}", {"tags": tags} if tags else {}
    return notebook


def of_notebook(name, page, repository):
    """Returns the notebook of a page, which installs the package in its first cell of code.

    Args:
        name: Name of the example.
        page: The notebook with the cells of the page, perhaps with outputs.
        repository: The repository's address; empty if it has none.
    """
    notebook = nbformat.from_dict(page)
    for cell in notebook.cells:
        if PAGE in cell.metadata.get("tags", ()):
            source = installation(cell.source, repository)
            new = nbformat.v4.new_code_cell(source, id="install")
            notebook.cells[notebook.cells.index(cell)] = new
    if repository.startswith(GITHUB):
        path = f"{repository.removeprefix(GITHUB)}/blob/main/docs/examples/{name}.ipynb"
        notebook.cells[0].source += f"\n\n[Open in Colab]({COLAB}{path})"
    return notebook


def installation(text, repository):
    """Returns the code of the cell that installs the package and downloads the data.

    Args:
        text: Markdown with a block of shell commands, the last of which runs the example.
        repository: The repository's address; empty if it has none.
    """
    (block,) = re.findall(r"^```sh\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    *commands, last = re.sub(r" *\\\n *", " ", block).split("\n")
    variables = [f"export {word}" for word in shlex.split(last) if "=" in word]
    lines = [_cell_line(command) for command in (*commands, *variables)]
    if repository:
        lines = [
            'if "google.colab" in sys.modules:  # the notebook is there, but not the repository',
            f"    !git clone --quiet --depth 1 {repository} keras_transformer",
            "    %cd -q keras_transformer/docs/examples",
            *lines,
        ]
    modules = [name for name in ("os", "sys") if any(f"{name}." in line for line in lines)]
    comment = "# Installs the package from the checkout that this notebook is in: docs/examples."
    return "\n".join([*(f"import {name}" for name in modules), *[""][: len(modules)],
                      comment, *lines])  # fmt: skip


def _cell_line(command):
    """Returns the line of a notebook for a shell command in the root of the repository."""
    if command.startswith("pip install"):
        rest = command.removeprefix("pip install").replace("-e ", "").strip()
        return f"%pip install --quiet {rest.replace('.[', '../..[', 1)}"
    if command.startswith("export "):
        name, _, value = command.removeprefix("export ").partition("=")
        return f'os.environ["{name}"] = os.path.expandvars("{value.strip(chr(34))}")'
    if command.startswith("python "):
        return f"!{{sys.executable}} ../../{command.removeprefix('python ')}"
    return f"!{command}"


def alternative_texts(source):
    """Returns the descriptions of the pictures that a cell draws: `# Picture: ...`."""
    return [found.replace("\n# ", " ") for found in PICTURE.findall(source)]


def statements(source):
    """Returns what a cell of code does, whatever its comments and magic commands."""
    lines = [line for line in source.split("\n") if not line.startswith(("%", "!"))]
    return ast.dump(ast.parse("\n".join(lines)))
