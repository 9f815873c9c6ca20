"""The files that `pip install` puts on a user's machine."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    # A copy: setuptools leaves `build/` and `*.egg-info` in the folder that it builds from.
    source = folder / "source"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("a git checkout is needed to know which files belong to the package")
    for name in tracked.stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"keras_transformer", "keras_transformer_kit-0.1.0.dist-info"}
    modules = {name for name in names if name.endswith(".py")}
    for folder, prefix in (("keras_transformer", ""), ("training", "keras_transformer/"),
                           ("export", "keras_transformer/")):  # fmt: skip
        for path in (ROOT / folder).rglob("*.py"):
            assert prefix + str(path.relative_to(ROOT)) in modules
    assert "keras_transformer/training/configs/demo.toml" in names
    assert "keras_transformer/plots/attention.html" in names
    assert any(name.endswith("LICENSE") for name in names)


def required(requirement, known):
    """Adds to `known` the distributions that a requirement asks for, each with its extras."""
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
    """Links into a folder all that the package requires, and nothing else, from where tests run.

    This is what pip installs, without the minutes that unpacking TensorFlow takes; that an index
    has it all is shown by the environment of the tests, which pip has made.
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
    assert (pathlib.Path(site) / "keras_transformer" / "training" / "train.py").is_file()
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
