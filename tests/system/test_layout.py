"""The structure described in docs/architecture.md, checked in the sources."""

import ast
import functools
import graphlib
import pathlib
import re
import subprocess
import sys

import pytest

from keras_transformer.tasks import TASKS

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("keras_transformer", "training", "export")
# The files that import each heavy dependency, so that it can be replaced in one place.
WRAPPERS = {
    "tensorflow_text": {
        "keras_transformer/lazy_tensorflow.py",
        "export/litert/fast_tokenizer.py",
    },
    "tensorflow_datasets": {
        "training/data/sources/cldr.py",
        "training/data/sources/generated.py",
        "training/demos/reports.py",
        "training/data/sources/tfds.py",
        "training/tasks/speech_recognition/tfds.py",
    },
    "sentencex": {"keras_transformer/documents/sentences.py"},
    "usearch": {"keras_transformer/retrieval/graph.py"},
    "sacrebleu": {"keras_transformer/text/quality.py"},
    "rouge_score": {"keras_transformer/tasks/summarization/metrics.py"},
    "nltk": {"keras_transformer/tasks/summarization/metrics.py"},
    "sentencepiece": {"keras_transformer/text/sentencepiece_package.py"},
    "safetensors": {"keras_transformer/pretrained/files/safetensors_files.py"},
    "jiwer": {"keras_transformer/tasks/speech_recognition/metrics.py"},
    "soundfile": {"keras_transformer/tasks/speech_recognition/audio/files.py"},
    "sklearn": {"training/tasks/image_classification/source.py"},
    "matplotlib": {"keras_transformer/plots/figure.py"},
    "ai_edge_litert": {"export/litert/engines.py"},
    "litert_converter": {"export/litert/stablehlo/compiler.py"},
    "onnxruntime": {"export/onnx/int8.py", "export/onnx/packages.py"},
    "ctranslate2": {"export/ctranslate2/engine.py"},
    "huggingface_hub": {"keras_transformer/pretrained/hub.py"},
    "starlette": {
        "keras_transformer/serving/app.py",
        "keras_transformer/serving/bodies.py",
        "keras_transformer/serving/protocol.py",
        "keras_transformer/serving/protocols/kserve_v1.py",
        "keras_transformer/serving/protocols/kserve_v2.py",
        "keras_transformer/serving/protocols/libretranslate.py",
        "keras_transformer/serving/protocols/openai/chat.py",
        "keras_transformer/serving/protocols/openai/completions.py",
        "keras_transformer/serving/protocols/openai/embeddings.py",
        "keras_transformer/serving/protocols/openai/events.py",
        "keras_transformer/serving/protocols/openai/generation.py",
        "keras_transformer/serving/protocols/openai/transcriptions.py",
    },
    "uvicorn": {
        "keras_transformer/serving/connections.py",
        "keras_transformer/serving/server.py",
    },
    "prometheus_client": {"keras_transformer/serving/metrics.py"},
    "yaml": {"keras_transformer/pretrained/files/marian/yaml_files.py"},
}
# Layers with an implementation or check of their own for TensorFlow, which other backends do
# without.
BRANCHES = {"call_checks.py", "constants.py", "dropout.py", "normalization.py"}
# Packages of values that a configuration stores and a layer computes with.
VALUES = ("feed_forwards", "mixers", "norms", "positions", "scores")
# The layers that the files and folders of a task belong to, if not to the layer `tasks`.
FILES_OF_TASKS = {
    "audio": "audio",
    **dict.fromkeys(("config", "memories", "modules", "pair_layout", "table_format"), "config"),
    **dict.fromkeys(("layers", "tape"), "layers"),
    **dict.fromkeys(("head", "model", "snow"), "models"),
    "plots": "plots",
}
SHARED_TRAININGS = ("images", "__init__", "source_to_target", "task", "text_pairs")
# What knows tasks by name: families of checkpoints build their models, the command line draws their
# plots, protocols of servers write subtitles, demos generate their data, and one table lists the
# kinds of data.
USERS_OF_TASKS = (
    "keras_transformer/cli/",
    "keras_transformer/pretrained/",
    "keras_transformer/serving/protocols/",
    "training/demos/",
    "training/settings/sources.py",
)
# The packages that the modules of a package may import; `.` stands for modules outside of these
# packages. Modules that all may import, such as checks and files, are not listed.
PACKAGES = {
    "keras_transformer/.": {"text", "models", "config"},
    "keras_transformer/audio": {"."},
    **{f"keras_transformer/{name}": {"."} for name in VALUES},
    "keras_transformer/mixers": {".", "norms", "positions", "scores"},
    "keras_transformer/config": {".", *VALUES},
    "keras_transformer/fields": {".", "text"},
    "keras_transformer/layers": {
        ".",
        "config",
        "feed_forwards",
        "mixers",
        "norms",
        "positions",
        "scores",
    },
    "keras_transformer/models": {".", "config", "layers", "positions"},
    "keras_transformer/decoding": {".", "config", "models", "layers"},
    "keras_transformer/text": {"."},
    "keras_transformer/tasks": {".", "audio", "config", "fields", "models", "decoding", "text"},
    "keras_transformer/documents": {".", "decoding", "tasks", "text"},
    "keras_transformer/retrieval": {"."},
    "keras_transformer/opening": {".", "pretrained", "tasks", "text"},
    "keras_transformer/serving": {".", "decoding", "documents", "tasks"},
    "keras_transformer/pretrained": {
        *(
            ".",
            "config",
            "layers",
            "models",
            "decoding",
            "text",
            "feed_forwards",
            "mixers",
            "norms",
            "positions",
        ),
    },
    "keras_transformer/plots": {".", "layers", "models", "positions"},
    "training/data": set(),
    "training/losses": set(),
    "training/devices": {"losses"},
    "training/tasks": {"losses", "loop", "data", "settings"},
    "training/demos": {"data", "settings", "tasks"},
    "training/distillation": {".", "data", "loop", "settings"},
    "training/loop": {"data", "devices", "losses", "settings", "tuning"},
    "training/settings": {"data"},  # a section opens its data
    "training/tuning": set(),
    "export/saved_model": set(),
    "export/litert": set(),
    "export/onnx": set(),
    "export/ctranslate2": set(),
    "export/marian": set(),
}


@functools.cache
def sources():
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text())


@functools.cache
def imports(path):
    """Returns the full name of every module that a file imports anywhere."""
    return tuple(_imports(path))


def _imports(path):
    package = ["keras_transformer"] if path.parts[len(ROOT.parts)] != "keras_transformer" else []
    package += path.relative_to(ROOT).parent.parts
    for node in ast.walk(tree_of(path)):
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


@functools.cache
def modules(path):
    """Returns the files of this package that a file imports, relative to the root."""
    return tuple(_modules(path))


def _modules(path):
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "keras_transformer":
            continue
        parts = parts[1:] if parts[1:2] in (["training"], ["export"]) else parts
        place = ROOT.joinpath(*parts)
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.exists():
                yield file.relative_to(ROOT)


def test_imports_point_one_way():
    """training -> keras_transformer <- export; only the command line knows all three."""
    for path in sources():
        folder = path.relative_to(ROOT).parts[0]
        if path.parent.name == "cli" or path.name == "__main__.py":
            continue
        for module in imports(path):
            if module.startswith("keras_transformer"):
                assert owner(module) in {folder, "keras_transformer"}, f"{path}: {module}"
                assert not module.startswith("keras_transformer.cli"), f"{path}: {module}"


# The files of the library that name modules of the other packages in strings, which are imported
# when they are needed: the training of each task, and the package that opens exports.
REFERENCES = {"keras_transformer/tasks": "training", "keras_transformer/opening/forms.py": "export"}


@functools.cache
def references(path):
    """Returns the strings of a file that name a module of this package, or something in one."""
    return tuple(_references(path))


def _references(path):
    for node in ast.walk(tree_of(path)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and re.fullmatch(r"keras_transformer(\.\w+)+(:\w+)?", text):
            yield text


def file_of(module):
    """Returns the path of a module of this package, or `None`."""
    parts = module.split(".")
    place = ROOT.joinpath(*parts[owner(module) != "keras_transformer" :])
    files = [place.with_suffix(".py"), place / "__init__.py"]
    return next((one for one in files if one.is_file()), None)


def referenced(path):
    """Yields the files that a file names in strings, relative to the root."""
    found = (file_of(reference.partition(":")[0]) for reference in references(path))
    yield from (one.relative_to(ROOT) for one in found if one)


def test_references_in_strings_point_one_way_and_exist():
    """As imports do, except for those in `REFERENCES`; the command line knows all packages."""
    unused = {*REFERENCES}
    for path in sources():
        file = path.relative_to(ROOT)
        for reference in references(path):
            module, _, name = reference.partition(":")
            found = file_of(module)
            assert found or not name, f"{file}: {reference} does not exist"
            if name:
                names = [node.name for node in tree_of(found).body if hasattr(node, "name")]
                assert name in names, f"{file}: {reference} does not exist"
            if path.parent.name == "cli" or owner(module) in (file.parts[0], "keras_transformer"):
                continue
            allowed = [key for key in REFERENCES if f"{file}".startswith(key)]
            assert [REFERENCES[key] for key in allowed] == [owner(module)], f"{file}: {reference}"
            unused -= {*allowed}
    assert not unused, f"nothing in {unused} names another package: take it out of the table"


def layer(file):
    """Returns the package of `PACKAGES` that a file belongs to, or `None`.

    Within the folder of a task, files belong to the layers that `FILES_OF_TASKS` names.
    """
    if file.parts[0] == "keras_transformer" and task_of(file):
        return f"keras_transformer/{FILES_OF_TASKS.get(file.parts[3].removesuffix('.py'), 'tasks')}"
    name = "/".join(file.parts[:2]) if len(file.parts) > 2 else f"{file.parts[0]}/."
    return name if name in PACKAGES else None


def package_of(file):
    """Returns the folder of a file; in the folder of a task, its layer among those of all tasks."""
    inside = file.parts[0] == "keras_transformer" and task_of(file)
    kind = FILES_OF_TASKS.get(file.parts[3].removesuffix(".py"), ".") if inside else "."
    return file.parent if kind == "." else pathlib.Path("keras_transformer/tasks/*", kind)


SHARED_FOLDERS = ("images", "single_pass", "streams")  # of several tasks


def task_of(file):
    """Returns the name of the task whose folder a file lies in, or `None`."""
    top, name = file.parts[:2], file.parts[2].removesuffix(".py") if len(file.parts) > 2 else ""
    if top == ("keras_transformer", "tasks"):
        return name if len(file.parts) > 3 and name not in SHARED_FOLDERS else None
    return name if top == ("training", "tasks") and name not in SHARED_TRAININGS else None


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_in_one_direction(package):
    """The layers of the architecture import only downwards, also within the folder of a task.

    config <- layers <- models <- decoding <- tasks; losses <- tasks <- the training loop; no export
    format imports another.
    """
    files = [path.relative_to(ROOT) for path in sources() if path.name != "__main__.py"]
    files = [file for file in files if file.name != "__init__.py" and layer(file) == package]
    assert files, f"there are no files in {package}: take it out of the table"
    for file in files:
        path = ROOT / file
        for used in modules(path):
            other = layer(used)
            if other and used.parts[0] == file.parts[0] and len(used.parts) > 2:
                name = other.partition("/")[2]
                assert other == package or name in PACKAGES[package], f"{file}: {used}"


def test_tasks_are_known_to_nobody_but_themselves():
    """A file of a task is used by its own task; shared ones know no task, also not in strings."""
    for path in sources():
        file = path.relative_to(ROOT)
        if any(f"{file}".startswith(user) for user in USERS_OF_TASKS):
            continue
        for used in {*modules(path), *referenced(path)}:
            assert task_of(used) in (None, task_of(file)), f"{file}: {used}"


# Files of one task outside of its folder: kinds of a value or of a field, in the packages of these.
KINDS_OF_ONE_TASK = {
    "keras_transformer/fields/labels.py": "token_classification",
}


def test_what_one_task_uses_is_in_its_folder():
    users = {}
    for path in sources():
        file = path.relative_to(ROOT)
        for used in {*modules(path), *referenced(path)}:
            if file.name != "__init__.py" and not task_of(used):
                users.setdefault(str(used), set()).add(task_of(file))
    tasks = {used: owners for used, owners in users.items() if len(owners) == 1}
    owned = {used: owner for used, (owner,) in tasks.items() if owner}
    assert owned == KINDS_OF_ONE_TASK, "move it into the folder of the task"


def at_import(path):
    """Yields the files of this package whose import a file's import causes by itself."""
    tree = ast.Module([node for node in tree_of(path).body if not is_lazy(node)], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from filter(None, map(file_of, names))


def is_lazy(node):
    """Returns whether a statement runs nothing at import, or is for type checkers only."""
    checking = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    return checking or isinstance(node, ast.FunctionDef | ast.ClassDef)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_opened_without_any_other(task):
    """No module that its folder imports, or that these import, is of another task."""
    waiting, seen = sorted((ROOT / "keras_transformer" / "tasks" / task).rglob("*.py")), set()
    assert waiting, f"the folder of a task has its name: {task}"
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting.extend(at_import(path))
    owners = {task_of(path.relative_to(ROOT)) for path in seen} - {None}
    assert owners == {task} and len(seen) > 5


@pytest.mark.parametrize("whole", [True, False], ids=["packages", "modules"])
def test_there_are_no_circular_imports(whole):
    """Neither between packages, nested ones included, nor between modules, even indirectly.

    An `__init__` only lists the public names of its package.
    """
    graph = {}
    for path in sources():
        if path.name in ("__init__.py", "__main__.py"):
            continue
        file = path.relative_to(ROOT)
        for used in modules(path):
            if used.name == "__init__.py":
                continue
            user, used = map(package_of, (file, used)) if whole else (file, used)
            if used != user:
                graph.setdefault(user, set()).add(used)
    if whole:  # the few modules outside of packages do not form a package
        graph.pop(pathlib.Path("keras_transformer"), None)
    graphlib.TopologicalSorter(graph).prepare()  # raises a `CycleError` with the cycle


@pytest.mark.parametrize("package", WRAPPERS)
def test_each_heavy_dependency_has_few_importers(package):
    users = {
        str(path.relative_to(ROOT))
        for path in sources()
        if any(module.split(".")[0] == package for module in imports(path))
    }
    assert users, f"nobody imports {package}: take it out of the table and of pyproject.toml"
    assert users <= WRAPPERS[package]


def test_the_layers_are_written_in_keras_ops():
    """Layers use TensorFlow only in a branch for it, so they run on every Keras backend."""
    packages = {f"keras_transformer/{name}" for name in ("config", "layers", "models", *VALUES)}
    files = [path for path in sources() if layer(path.relative_to(ROOT)) in packages]
    assert any(task_of(path.relative_to(ROOT)) for path in files)
    for path in files:
        if path.name in BRANCHES:
            continue
        used = {module.split(".")[0] for module in imports(path)}
        assert used - sys.stdlib_module_names <= {"numpy", "keras", "keras_transformer"}, path


def test_the_library_neither_prints_nor_asserts():
    for path in sources():
        for node in ast.walk(tree_of(path)):
            assert not isinstance(node, ast.Assert), f"{path}:{node.lineno}"
            name = getattr(getattr(node, "func", None), "id", None)
            assert name != "print", f"{path}:{node.lineno}"


def test_no_test_needs_the_root_on_the_path():
    """`pytest` does not add the root to the path, unlike `python -m pytest`."""
    statement = re.compile(r"\s*(?:from|import) (?:training|export|benchmarks|tests)\b")
    for path in (ROOT / "tests").rglob("*.py"):
        assert not any(map(statement.match, path.read_text("utf-8").splitlines())), path


@pytest.mark.long
@pytest.mark.slow
def test_pytest_alone_collects_every_test():
    command = [pathlib.Path(sys.executable).with_name("pytest"), "--collect-only", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


# Classes that share a name; one of each should be renamed.
SHARED_NAMES = {
    *("Encoder", "Images", "Limits"),
    *("Parts", "Series", "TextData", "TfdsData", "Words"),
}


def test_a_class_name_has_one_meaning():
    files = {}
    for path in sources():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    shared = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert shared.keys() == SHARED_NAMES, f"{shared} (a renamed class leaves `SHARED_NAMES`)"


def test_code_asks_the_part_of_a_configuration_that_has_an_option():
    for path in [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]:
        assert not re.search(r"\bhasattr\((\w+\.)*config\b", path.read_text()), path
