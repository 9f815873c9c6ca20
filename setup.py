"""The list of packages, and the metadata that need the repository's address.

All other metadata are in pyproject.toml.
"""

import pathlib
import re

import setuptools

ROOT = pathlib.Path(__file__).parent
# `](target)` of a link, `![text](target)` or `<img src="target"` of a picture, in the repository.
LINK = re.compile(r"(!\[[^]]*)?\]\((?![a-z]+:|#)([^)]*)\)")
PICTURE = re.compile(r'(<img src=")(?![a-z]+:)([^"]*)')
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def packages():
    """The packages with those of `training/` and `export/`, as installed."""
    own = setuptools.find_packages(ROOT, include=["keras_transformer", "keras_transformer.*"])
    inside = ("keras_transformer.training", "keras_transformer.export")  # seen through the links
    own = [name for name in own if not name.startswith(inside)]
    others = [
        f"keras_transformer.{name}"
        for name in setuptools.find_packages(ROOT, include=["training*", "export*"])
    ]
    return sorted([*own, *others, "keras_transformer.training.configs"])  # the last has data only


def read(name, pattern):
    return re.search(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)[1]


def with_absolute_links(text, repository, version):
    """The text with links to the files of this version, which an index does not have."""

    def link(found):
        picture, target = found.groups()
        kind = "raw" if picture else "blob"
        return f"{picture or ''}]({repository}/{kind}/v{version}/{target})"

    def absolute(prose):
        return PICTURE.sub(rf"\1{repository}/raw/v{version}/\2", LINK.sub(link, prose))

    return "".join(
        block if CODE.fullmatch(block) else absolute(block) for block in CODE.split(text)
    )


def metadata(repository, version):
    """`long_description` and `project_urls`; without an address there is nothing to link to."""
    readme = (ROOT / "README.md").read_text("utf-8")
    if not repository:
        return {"long_description": readme, "project_urls": {}}
    return {
        "long_description": with_absolute_links(readme, repository, version),
        "project_urls": {
            "Repository": repository,
            "Documentation": f"{repository}/blob/v{version}/docs/index.md",
            "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        },
    }


if __name__ == "__main__":  # as setuptools runs it
    setuptools.setup(
        packages=packages(),
        long_description_content_type="text/markdown",
        **metadata(
            repository=read("pyproject.toml", r'^repository = "(.*)"$'),
            version=read("keras_transformer/__init__.py", r'^__version__ = "(.*)"$'),
        ),
    )
