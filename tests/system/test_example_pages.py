"""Pages and notebooks of the examples: the code of the program, with the output of a run."""

import base64
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
PICTURE = re.compile(r"!\[([^]]*)\]\((.+\.png)\)")
# Times of `fit` and `train`, which depend on what else the machine does.
TIME = re.compile(r"\d ?[mu]?s/step|- \d+m?s -|tokens/s|\d:\d\d|\b\d+ (?:seconds|minutes)\b")


def cells(name):
    """The cells of an example: pairs of kind and text."""
    return [(cell.cell_type, cell.source) for cell in sources(name)]


def sources(name):
    """The cells of an example, in jupytext's form."""
    return jupytext.read(ROOT / "examples" / f"{name}.py").cells


def notebook_cells(name, folder=FOLDER):
    """The cells of a notebook."""
    return nbformat.read(folder / f"{name}.ipynb", as_version=4).cells


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
    """The commands that run the example are replaced by a cell that installs the package."""
    expected = [
        ("code", None) if cell.metadata.get("tags") == ["page"] else (cell.cell_type, cell.source)
        for cell in sources(name)
    ]
    assert [kind for kind, text in expected if text is None] == ["code"]
    received = [
        (cell.cell_type, re.sub(r"\n\n\[Open in Colab\]\(.+\)$", "", cell.source))
        for cell in notebook_cells(name)
    ]
    install = [text for kind, text in received if kind == "code"][0]
    assert "%pip install" in install and '"../..[' in install
    received[1] = ("code", None)
    assert received == expected
    assert "This page" not in str(received) and "page of this example" not in str(received)


@pytest.mark.parametrize("name", FILES)
def test_a_notebook_shows_the_outputs_of_the_page(name):
    printed, pictures = [], []
    for cell in notebook_cells(name):
        for output in cell.get("outputs", ()):
            printed += output.get("text", "").splitlines()
            if picture := output.get("data", {}).get("image/png"):
                pictures.append((output.metadata["image/png"]["alt"], base64.b64decode(picture)))
    texts = "\n".join(cell.source for cell in sources(name) if cell.cell_type == "markdown")
    indented = [line for line in outputs(page_of(name)) if f"    {line}\n" not in texts]
    assert [line for line in printed if line] == [line for line in indented if line]
    shown = PICTURE.findall(page_of(name).read_text("utf-8"))
    assert [(alt, (FOLDER / path).read_bytes()) for alt, path in shown] == pictures


def page_of(name):
    """The path of an example's page."""
    return FOLDER / f"{name}.md"


@pytest.mark.parametrize("name", FILES)
def test_a_notebook_installs_what_its_page_installs(name):
    (code,) = (block.code for block in blocks(f"docs/examples/{name}.md", "sh"))
    install = notebook_cells(name)[1].source
    (extras,) = re.findall(r'pip install -e "\.(\[.+?\])"', code)
    assert f'%pip install --quiet "../..{extras}"' in install
    assert re.findall(r"--only (\w+)", install) == re.findall(r"--only (\w+)", code)
    variables = set(re.findall(r"\b([A-Z][A-Z_]+)=", code))
    assert set(re.findall(r'os\.environ\["(\w+)"\]', install)) == variables


def test_with_an_address_a_notebook_opens_in_colab(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    from example_cells import of_notebook, of_page

    page = of_page("sentiment")
    without = of_notebook("sentiment", page, "")
    assert not any("colab" in cell.source for cell in without.cells)
    title, install, *rest = of_notebook("sentiment", page, "https://github.com/a/b").cells
    link = "https://colab.research.google.com/github/a/b/blob/main/docs/examples/sentiment.ipynb"
    assert f"[Open in Colab]({link})" in title.source
    assert "    !git clone --quiet --depth 1 https://github.com/a/b" in install.source
    assert rest == without.cells[2:]


@pytest.mark.parametrize("name", FILES)
def test_a_page_states_its_dates_and_what_it_runs_on(name):
    text = page_of(name).read_text("utf-8")
    found = re.search(
        r"^Created (20\d\d-\d\d-\d\d), last modified (20\d\d-\d\d-\d\d)\. Accelerator: none\.$",
        text,
        re.MULTILINE,
    )
    assert found and found[1] <= found[2]


@pytest.mark.parametrize("name", FILES)
def test_a_page_shows_no_times_that_depend_on_the_load_of_the_machine(name):
    assert [line for line in outputs(page_of(name)) if TIME.search(line)] == []


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
    assert len(outputs(page_of(name))) > 5
    plots = [path for _, path in PICTURE.findall(page_of(name).read_text("utf-8"))]
    assert plots and sorted(str(x.relative_to(FOLDER)) for x in FOLDER.glob(f"{name}_files/*")) == (
        sorted(plots)
    )


@pytest.mark.parametrize("name", FILES)
def test_the_alternative_text_of_a_plot_describes_it(name):
    code = [cell.source for cell in sources(name) if cell.cell_type == "code"]
    comments = [
        re.sub(r"\n# ", " ", comment)
        for comment in re.findall(r"^# Picture: (.+(?:\n# .+)*)", "\n".join(code), re.MULTILINE)
    ]
    texts = [text for text, _ in PICTURE.findall(page_of(name).read_text("utf-8"))]
    assert texts == comments
    assert all(40 < len(text) < 200 and text.endswith(".") for text in texts)


def test_the_pages_are_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*.*")) < 2_000_000


@pytest.mark.parametrize("name", FILES)
def test_the_results_that_a_text_states_are_those_of_the_run(name):
    """In the tables and in the conclusion: numbers with a decimal point, perhaps rounded."""
    page = page_of(name)
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
    for _, plot in PICTURE.findall(page):
        assert (tmp_path / plot).read_bytes().startswith(b"\x89PNG")
    new, old = notebook_cells(name, tmp_path), notebook_cells(name)
    assert [cell.source for cell in new] == [cell.source for cell in old]
    assert not TIME.search("\n".join(outputs(tmp_path / f"{name}.md")))
    assert any(cell.get("outputs") for cell in new)


def test_recorded_outputs_make_the_same_pages(tmp_path):
    """Nobody has edited a page or a notebook by hand, or an example without building its page."""
    subprocess.run([sys.executable, COMMAND, "--recorded", "--folder", tmp_path], check=True)
    new = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.*"))
    assert new == sorted(path.relative_to(FOLDER) for path in FOLDER.rglob("*.*"))
    assert [p for p in new if (tmp_path / p).read_bytes() != (FOLDER / p).read_bytes()] == []


def test_outputs_of_other_code_are_refused(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    from example_cells import of_page
    from example_pages import recorded

    page = of_page("sentiment")
    next(cell for cell in page.cells if cell.cell_type == "code").source += "\nEPOCHS = 0"
    with pytest.raises(ValueError, match=r"sentiment.py has changed .*make example-pages"):
        recorded(page, "sentiment")


def test_a_picture_without_a_description_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    from example_pages import tidied

    drawn = nbformat.v4.new_output("display_data", data={"image/png": "iVBORw0KGgo="})
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("plot()", outputs=[drawn])])
    with pytest.raises(ValueError, match=r"1 pictures and 0 comments:\nplot\(\)"):
        tidied(page)


def test_the_command_names_the_examples_that_there_are():
    done = subprocess.run([sys.executable, COMMAND, "image"], capture_output=True, text=True)
    assert done.returncode == 2 and "no such example: image. There are fine_tuning" in done.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_page_is_plain_text_without_folders_of_the_machine(name):
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    assert not [
        mark for mark in ("\x1b", "<pre", "site-packages", "/home/", "/tmp/") if mark in text
    ]
