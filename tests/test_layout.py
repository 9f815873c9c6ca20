"""The structure that the README promises, read from the sources."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ("keras_transformer", "training", "export")
# Each heavy dependency has one door, so that it can be replaced there.
DOORS = {
    "tensorflow_text": {"keras_transformer/tokenizer.py", "export/fast_tokenizer.py"},
    "tensorflow_datasets": {"training/sources/cldr.py", "training/sources/tfds.py"},
    "sacrebleu": {"keras_transformer/quality.py"},
    "sentencepiece": {
        "training/vocabulary.py",
        "keras_transformer/tokenizer.py",
        "export/fast_tokenizer.py",
    },
    "matplotlib": {"training/figure.py"},
    "ai_edge_litert": {"export/loaded.py"},
    "ctranslate2": {"export/ctranslate2_loaded.py"},
}


def sources():
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def imports(path):
    """Every module that a file imports, anywhere in it, by its full name."""
    package = ["keras_transformer"] if path.parts[len(ROOT.parts)] != "keras_transformer" else []
    package += path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def owner(module):
    for name in ("training", "export"):
        if module == f"keras_transformer.{name}" or module.startswith(f"keras_transformer.{name}."):
            return name
    return "keras_transformer"


COMMAND_LINE = {"__main__.py", "export_commands.py", "export_sentences.py", "open_model.py"}


def test_imports_point_one_way():
    """training -> keras_transformer <- export; only the command line knows all three."""
    for path in sources():
        folder = path.relative_to(ROOT).parts[0]
        if path.name in COMMAND_LINE:
            continue
        for module in imports(path):
            if module.startswith("keras_transformer"):
                assert owner(module) in {folder, "keras_transformer"}, f"{path}: {module}"


@pytest.mark.parametrize("package", DOORS)
def test_each_heavy_dependency_has_one_door(package):
    users = {
        str(path.relative_to(ROOT))
        for path in sources()
        if any(module.split(".")[0] == package for module in imports(path))
    }
    assert users, f"nobody imports {package}: take it out of the table and of pyproject.toml"
    assert users <= DOORS[package]


def test_the_layers_are_written_in_keras_ops():
    """No layer knows TensorFlow: they run on every Keras backend."""
    layers = [
        "masks",
        "attending",
        "dot_product",
        "attention",
        "feed_forward",
        "embedding",
        "composite",
        "block",
        "encoder",
        "decoder",
        "model",
        "config",
    ]
    for name in layers:
        used = {module.split(".")[0] for module in imports(ROOT / f"keras_transformer/{name}.py")}
        assert used - sys.stdlib_module_names <= {"numpy", "keras", "keras_transformer"}


def test_the_library_neither_prints_nor_asserts():
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.Assert), f"{path}:{node.lineno}"
            name = getattr(getattr(node, "func", None), "id", None)
            assert name != "print", f"{path}:{node.lineno}"


def test_no_test_needs_the_root_on_the_path():
    """`pytest` alone does not put it there, as `python -m pytest` does."""
    for path in (ROOT / "tests").rglob("*.py"):
        roots = {module.partition(".")[0] for module in imports(path)}
        assert not roots & {"training", "export", "benchmarks", "tests"}, path


@pytest.mark.slow
def test_pytest_alone_collects_every_test():
    command = [pathlib.Path(sys.executable).with_name("pytest"), "--collect-only", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
