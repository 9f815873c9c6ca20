"""Releases: a single version, a single place for the address, workflows with valid commands."""

import pathlib
import re
import runpy
import shutil

import pytest
import yaml

import keras_transformer

ROOT = pathlib.Path(__file__).parents[2]
ADDRESS = "https://example.org/owner/name"
VERSION = keras_transformer.__version__
set_repository = runpy.run_path(str(ROOT / ".ci/set_repository.py"))["set_repository"]
problems = runpy.run_path(str(ROOT / ".ci/check_tag.py"))["problems"]
setup = runpy.run_path(str(ROOT / "setup.py"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture
def checkout(tmp_path):
    """A copy of the files that name the version or the address, with the address unset."""
    for name in ("docs", "keras_transformer/__init__.py", "pyproject.toml", "mkdocs.yml",
                 "README.md", "CONTRIBUTING.md", "CITATION.cff", "CHANGELOG.md"):  # fmt: skip
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
    project = tmp_path / "pyproject.toml"
    line = re.search(r'^repository = "(.*)"$', project.read_text("utf-8"), re.MULTILINE)
    if line[1]:  # removes an address that is already set
        for path in filter(pathlib.Path.is_file, tmp_path.rglob("*.*")):
            if line[1] in (text := path.read_text("utf-8", errors="surrogateescape")):
                path.write_text(re.sub(rf".*{re.escape(line[1])}.*\n", "", text), "utf-8")
        project.write_text(f'{project.read_text("utf-8")}\nrepository = ""\n', "utf-8")
    return tmp_path


def texts(folder):
    return {path: path.read_text("utf-8") for path in sorted(folder.rglob("*.md"))}


def test_there_is_one_version():
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert not re.search(r'^version = "', project, re.MULTILINE)
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == VERSION
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest[1] == VERSION


def test_the_citation_has_what_its_format_requires():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license"} <= citation.keys()
    for work in (citation, *citation["references"]):
        assert all("name" in author or "family-names" in author for author in work["authors"])


# The repository's address


def test_all_install_instructions_use_the_address_once_it_is_set(checkout):
    changed = set_repository(checkout, ADDRESS)
    assert {"README.md", "pyproject.toml", "CITATION.cff", "mkdocs.yml"} <= {*changed}
    for path, text in texts(checkout).items():
        before = re.findall(r"^(.*)\npython3 -m venv \.venv$", text, re.MULTILINE)
        assert {*before} <= {f"git clone {ADDRESS} keras_transformer && cd keras_transformer"}, path
    assert f'\nrepository = "{ADDRESS}"\n' in (checkout / "pyproject.toml").read_text("utf-8")
    assert yaml.safe_load((checkout / "CITATION.cff").read_text("utf-8"))[
        "repository-code"
    ] == ADDRESS  # fmt: skip
    assert f"\nrepo_url: {ADDRESS}\n" in (checkout / "mkdocs.yml").read_text("utf-8")


def test_an_address_may_change(checkout):
    set_repository(checkout, "https://example.org/replaced-address")
    again = [*set_repository(checkout, ADDRESS)]
    assert "README.md" in again and set_repository(checkout, ADDRESS) == []
    left = [path for path in checkout.rglob("*.*") if path.is_file() and b"/replaced-address" in
            path.read_bytes()]  # fmt: skip
    assert left == []


@pytest.mark.parametrize(
    "wrong", ["", "example.org/x", f"{ADDRESS}/", f"{ADDRESS}.git", 'https://"']
)
def test_an_address_that_no_browser_opens_is_refused(checkout, wrong):
    before = texts(checkout)
    with pytest.raises(ValueError, match=r"`URL` must be what a browser opens.* Received: "):
        set_repository(checkout, wrong)
    assert texts(checkout) == before


def test_no_document_has_a_placeholder():
    for path, text in texts(ROOT / "docs").items() | {
        (ROOT / name, (ROOT / name).read_text("utf-8")) for name in ("README.md", "CONTRIBUTING.md")
    }:
        assert not re.search(r"URL-OF|git clone (?!https://)", text), path


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        ("[Install](docs/install.md)", f"[Install]({ADDRESS}/blob/v1/docs/install.md)"),
        ("[M](docs/b.md#m-30)", f"[M]({ADDRESS}/blob/v1/docs/b.md#m-30)"),
        ("![Plot](docs/images/a.png)", f"![Plot]({ADDRESS}/raw/v1/docs/images/a.png)"),
        ("[![B](https://b)](LICENSE)", f"[![B](https://b)]({ADDRESS}/blob/v1/LICENSE)"),
        ("[![B](a.png)](LICENSE)", f"[![B]({ADDRESS}/raw/v1/a.png)]({ADDRESS}/blob/v1/LICENSE)"),
        ("[paper](https://arxiv.org) [here](#use)", None),
        ("[mail](mailto:a@b)", None),
        ("```python\nlayers[0](x)\n```\n", None),
    ],
)
def test_links_of_the_readme_are_absolute_on_a_package_index(text, absolute):
    assert setup["with_absolute_links"](text, ADDRESS, "1") == (absolute or text)


def test_the_package_description_has_no_relative_link():
    metadata = setup["metadata"](ADDRESS, VERSION)
    prose = re.sub(r"^```.*?^```$", "", metadata["long_description"], flags=re.M | re.DOTALL)
    targets = re.findall(r"\]\(([^)]*)\)", prose) + re.findall(r'(?:src|href)="([^"]*)"', prose)
    assert len(targets) > 10
    assert [target for target in targets if not re.match(r"https?://|#", target)] == []
    assert all(url.startswith(ADDRESS) for url in metadata["project_urls"].values())
    assert setup["metadata"]("", VERSION)["project_urls"] == {}


# Tags and workflows


def test_a_tag_needs_a_version_a_date_and_an_address(checkout):
    path = checkout / "CHANGELOG.md"
    text = path.read_text("utf-8")
    heading = re.search(r"^## .*$", text, re.MULTILINE)[0]
    path.write_text(text.replace(heading, f"## {VERSION} (unreleased)"), "utf-8")
    tag, date, address = problems(checkout, "v9.9")
    assert tag == f"The tag must be v{VERSION}, for keras_transformer.__version__. Received: v9.9."
    assert date.startswith(f"CHANGELOG.md must begin with `## {VERSION} (YYYY-MM-DD)`. Received: ")
    assert address == "The repository's address is missing: `make repository URL=...`."
    set_repository(checkout, ADDRESS)
    path.write_text(text.replace(heading, f"## {VERSION} (2026-01-31)"), "utf-8")
    assert [*problems(checkout, f"v{VERSION}")] == []
    citation = checkout / "CITATION.cff"
    citation.write_text(citation.read_text("utf-8").replace(VERSION, "9.9"), "utf-8")
    assert [*problems(checkout, f"v{VERSION}")] == [f"CITATION.cff must have `version: {VERSION}`."]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_commands_of_workflows_exist(path):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    for job in jobs.values():
        for step in job["steps"]:
            assert {"run", "uses"} & step.keys()
            for target in re.findall(r"make ([\w-]+)", step.get("run", "")):
                assert target in targets
            for name in re.findall(r"\.ci/\w+(?:\.py)?", step.get("run", "")):
                assert (ROOT / name).is_file()


def test_nothing_is_uploaded_unless_a_maintainer_enables_it():
    (release,) = [path for path in WORKFLOWS if path.name == "release.yml"]
    jobs = yaml.safe_load(release.read_text("utf-8"))["jobs"]
    uploading = [job for job in jobs.values() if "publish" in str(job["steps"])]
    assert [job["if"] for job in uploading] == ["vars.PUBLISH == 'true'"]
    assert all(job["needs"] == "build" for name, job in jobs.items() if name != "build")
