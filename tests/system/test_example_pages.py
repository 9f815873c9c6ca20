"""Pages and notebooks of the examples: the code of the program, with the output of a run."""

import pathlib
import re
import subprocess
import sys

import jupytext
import nbformat
import pytest
from documents import EXAMPLE_PAGES, ROOT, blocks, read

FILES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
FOLDER = ROOT / "docs" / "examples"
COMMAND = ROOT / ".ci" / "example_pages.py"
NUMBER = re.compile(r"\d+\.\d+")


def cells(name, kind=None):
    """The cells of an example, of one kind or of all: pairs of kind and text."""
    notebook = jupytext.read(ROOT / "examples" / f"{name}.py")
    return [(x.cell_type, x.source) for x in notebook.cells if kind in (None, x.cell_type)]


def outputs(page):
    """Returns what the cells of a page printed: its indented blocks outside of code."""
    text = re.sub(
        r"^```.*?^```$", "", pathlib.Path(page).read_text("utf-8"), flags=re.DOTALL | re.M
    )
    return re.findall(r"^    (.*)$", text, re.MULTILINE)


def test_every_example_has_a_page_and_a_notebook():
    assert [pathlib.Path(page).stem for page in EXAMPLE_PAGES] == FILES
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == FILES


@pytest.mark.parametrize("name", FILES)
def test_a_notebook_has_the_cells_of_its_example(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == cells(name)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def plain(text):
    """Returns a cell without the lines that only a notebook understands."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("%")).rstrip("\n")


@pytest.mark.parametrize("name", FILES)
def test_a_page_has_the_code_and_the_text_of_its_example(name):
    page = f"docs/examples/{name}.md"
    code = [block.code.rstrip("\n") for block in blocks(page, "python")]
    expected = [(kind, plain(text)) for kind, text in cells(name)]
    assert code == [text for kind, text in expected if kind == "code"]
    rest = read(page)
    for _, text in expected:
        before, middle, rest = rest.partition(text)
        assert middle, f"{page} does not have after the cell before it: {text}"


@pytest.mark.parametrize("name", FILES)
def test_a_page_has_output_and_plots(name):
    page = FOLDER / f"{name}.md"
    assert len(outputs(page)) > 5
    plots = re.findall(r"!\[png\]\((.+\.png)\)", page.read_text("utf-8"))
    assert plots and sorted(str(x.relative_to(FOLDER)) for x in FOLDER.glob(f"{name}_files/*")) == (
        sorted(plots)
    )


def test_the_pages_are_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*.*")) < 1_500_000


@pytest.mark.parametrize("name", FILES)
def test_the_results_that_a_text_states_are_those_of_the_run(name):
    """In the tables and in the conclusion: numbers with a decimal point, perhaps rounded."""
    page = FOLDER / f"{name}.md"
    printed = {float(x) for line in outputs(page) for x in NUMBER.findall(line)}
    conclusion = page.read_text("utf-8").partition("## Conclusion\n")[2].partition("\n## ")[0]
    rows = [
        line.split("|")[3]
        for table in ("docs/examples.md", "examples/README.md")
        for line in read(table).split("\n")
        if re.match(rf"\| \[`(?:examples/)?{name}\.py`\]", line)
    ]
    assert len(rows) == 2 and rows[0] == rows[1]
    for number in NUMBER.findall(conclusion + rows[0]):
        digits = len(number.partition(".")[2])
        assert any(abs(float(number) - x) < 0.501 * 10**-digits for x in printed), number


@pytest.mark.slow
@pytest.mark.long
def test_the_command_executes_an_example_and_writes_its_page(tmp_path, monkeypatch):
    monkeypatch.setenv("EPOCHS", "1")
    name = "token_classification"
    subprocess.run([sys.executable, COMMAND, name, "--folder", tmp_path], check=True)
    page = (tmp_path / f"{name}.md").read_text("utf-8")
    assert "5000 texts to train with, 1000 held out" in "\n".join(outputs(tmp_path / f"{name}.md"))
    assert [text in page for _, text in cells(name)] == [True] * len(cells(name))
    for plot in re.findall(r"!\[png\]\((.+\.png)\)", page):
        assert (tmp_path / plot).read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{name}.ipynb").read_text() == (FOLDER / f"{name}.ipynb").read_text()


def test_the_command_names_the_examples_that_there_are():
    done = subprocess.run([sys.executable, COMMAND, "image"], capture_output=True, text=True)
    assert done.returncode == 2 and "no such example: image. There are fine_tuning" in done.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_page_is_plain_text_without_folders_of_the_machine(name):
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    assert not [
        mark for mark in ("\x1b", "<pre", "site-packages", "/home/", "/tmp/") if mark in text
    ]
