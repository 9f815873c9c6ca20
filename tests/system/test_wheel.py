"""The contents of the source distribution, and of the wheel that `pip install` installs."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest
from build import ProjectBuilder
from build.env import DefaultIsolatedEnv
from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from keras_transformer import __version__

ROOT = pathlib.Path(__file__).parents[2]
# They show the two folders where they are imported from.
LINKS = ("keras_transformer/training", "keras_transformer/export")


@pytest.fixture(scope="module")
def tracked():
    """The names of the files tracked by git, without the links."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("a git checkout is needed to know which files belong to the package")
    return [name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def distributions(tracked, tmp_path_factory):
    """Names of the files in the source distribution of a used checkout, and its wheel."""
    folder = tmp_path_factory.mktemp("distributions")
    # A copy: setuptools leaves `build/` and `*.egg-info` in the folder that it builds from.
    source = folder / "source"
    for name in tracked:
        write(source / name, (ROOT / name).read_bytes())
    for name in LINKS:
        (source / name).symlink_to(os.readlink(ROOT / name))
    for name in ignored_files():
        write(source / name, b"")
    with DefaultIsolatedEnv() as environment:
        builder = ProjectBuilder.from_isolated_env(environment, source)
        environment.install(builder.build_system_requires)
        sdist = builder.build("sdist", folder)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
            names = [item.name.partition("/")[2] for item in archive if item.isfile()]
        unpacked = sdist.removesuffix(".tar.gz")
        wheel = ProjectBuilder.from_isolated_env(environment, unpacked).build("wheel", folder)
    return names, pathlib.Path(sdist), pathlib.Path(wheel)


@pytest.fixture(scope="module")
def wheel(distributions):
    return distributions[2]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def ignored_files():
    """Returns names of files that work leaves behind: one per line of .gitignore and folder."""
    for line in (ROOT / ".gitignore").read_text().split():
        name = line.replace("*", "x") + ("left.py" if line.endswith("/") else "")
        for folder in (".", "docs", "examples", "examples/browser", "tests/export", "export"):
            yield f"{folder}/{name}"


@pytest.mark.slow
def test_the_source_distribution_contains_the_files_of_the_repository(distributions, tracked):
    """Includes documents, tests and examples, and nothing that git ignores."""
    names = {*distributions[0]}
    made = {name for name in names if name.startswith("keras_transformer_kit.egg-info/")}
    assert names - made - {"PKG-INFO", "setup.cfg"} == {*tracked} - {".gitignore"}
    assert {"CHANGELOG.md", "docs/serving.md", "tests/conftest.py"} < names


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKS)
def test_a_checkout_that_is_not_installed_has_every_module(tracked, name):
    assert os.readlink(ROOT / name) == f"../{pathlib.Path(name).name}"
    module = name.replace("/", ".")
    command = [sys.executable, "-S", "-c", f"import {module} as m; print(m.__file__)"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(ROOT / name / "__init__.py")


@pytest.mark.slow
def test_the_wheel_contains_only_the_package(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"keras_transformer", f"keras_transformer_kit-{__version__}.dist-info"}
    modules = {name for name in names if name.endswith(".py")}
    for folder, prefix in (("keras_transformer", ""), ("training", "keras_transformer/"),
                           ("export", "keras_transformer/")):  # fmt: skip
        for path in (ROOT / folder).rglob("*.py"):
            assert prefix + str(path.relative_to(ROOT)) in modules
    assert "keras_transformer/training/configs/demo.toml" in names
    assert "keras_transformer/plots/attention.html" in names
    typed = ("py.typed", "__init__.pyi", "export/__init__.pyi", "pipelines/__init__.pyi")
    assert {f"keras_transformer/{name}" for name in typed} <= {*names}
    assert any(name.endswith("LICENSE") for name in names)


@pytest.mark.slow
def test_a_package_index_accepts_both(distributions):
    """The metadata is complete and the description can be rendered."""
    command = [sys.executable, "-m", "twine", "check", "--strict", *distributions[1:]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr


@pytest.mark.slow
def test_the_metadata_is_that_of_the_project(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata, unknown = parse_email(archive.read(name))
    assert metadata["version"] == __version__
    assert metadata["description_content_type"] == "text/markdown"
    assert metadata["license_expression"] == "Apache-2.0"
    assert metadata["description"].startswith("# keras_transformer\n")
    assert "all" in metadata["provides_extra"] and not unknown


def required(requirement, known):
    """Adds to `known` the distributions that a requirement needs, each with its extras."""
    requirement = Requirement(requirement)
    name = canonicalize_name(requirement.name)
    extras = {"", *requirement.extras, *known.get(name, ())}
    if extras == known.get(name):
        return
    known[name] = extras
    for further in importlib.metadata.distribution(name).requires or ():
        marker = Requirement(further).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            required(further, known)


def link_what_is_required(site):
    """Links the requirements of the package, and nothing else, into a folder.

    The result equals that of pip without the minutes of unpacking TensorFlow. The environment of
    the tests, made by pip, shows that the package index has all requirements.
    """
    known = {}
    required("keras-transformer-kit[all]", known)
    del known["keras-transformer-kit"]
    for name in known:
        distribution = importlib.metadata.distribution(name)
        for path in distribution.files:
            if path.parts[0] != ".." and not (site / path).exists():
                (site / path).parent.mkdir(parents=True, exist_ok=True)
                (site / path).symlink_to(distribution.locate_file(path))
    return known


@pytest.mark.slow
@pytest.mark.long
def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python, command = (tmp_path / "env" / "bin" / name for name in ("python", "keras-transformer"))
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-compile", wheel], check=True)
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    known = link_what_is_required(pathlib.Path(site))
    assert {"tensorflow", "ai-edge-litert", "matplotlib"} <= known.keys()
    assert not {"pytest", "ruff", "tensorflow-serving-api"} & known.keys()
    assert (pathlib.Path(site) / "keras_transformer" / "training" / "training_run.py").is_file()
    for name in ("training", "export", "tests", "benchmarks"):
        assert not (pathlib.Path(site) / name).exists()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    small = {
        "data.examples": 3000, "data.data_dir": f'"{tmp_path}/data"', "vocabulary.size": 800,
        "model.d_model": 32, "model.num_heads": 2, "model.max_length": 24, "data.max_length": 24,
        "schedule.warmup_steps": 5, "training.updates": 20, "training.validate_sentences": 2,
    }  # fmt: skip
    changes = [argument for item in small.items() for argument in ("--set", "{}={}".format(*item))]
    for arguments in (
        ["train", "demo", "--output", "run", *changes],
        ["export", "saved-model", "run", "serving"],
        ["export", "litert", "run", "run.tflite"],
    ):
        subprocess.run([command, *arguments], check=True, cwd=tmp_path, env=environment)
    outputs = {
        subprocess.run(
            [command, "translate", model],
            input=b"in 17 weeks\n", check=True, cwd=tmp_path, env=environment, capture_output=True,
        ).stdout
        for model in ("run", "serving", "run.tflite")
    }  # fmt: skip
    assert len(outputs) == 1
