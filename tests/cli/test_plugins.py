"""Tasks and layers of other packages: entry points and `--module`."""

import importlib.metadata
import sys
import zipfile

import keras
import pytest
from click.testing import CliRunner

from keras_transformer.cli.main import cli
from keras_transformer.plugins import import_plugins
from keras_transformer.tasks import TASKS, open_run
from keras_transformer.tasks.run import Run

PLUGIN = """
import keras
from keras_transformer.tasks import register
from keras_transformer.tasks.classification.task import ClassificationTask

class Cooking(ClassificationTask):
    name = "cooking"

@keras.saving.register_keras_serializable("cooking")
def simmer(x):
    return x

register(Cooking())
"""
CONFIG = """
task = { kind = "cooking" }
data = { source = "text", train = "nowhere.tsv", validation = "nowhere.tsv" }
"""
UNKNOWN = r"import the module that registers it, on the command line with --module, or name the"


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Folder with the module `cooking_plugin`, whose effects end with the test."""
    (tmp_path / "cooking_plugin.py").write_text(PLUGIN)
    (tmp_path / "config.toml").write_text(CONFIG)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    TASKS.pop("cooking", None)
    sys.modules.pop("cooking_plugin", None)
    keras.saving.get_custom_objects().pop("cooking>simmer", None)


def install(folder, *lines):
    """Makes a folder a place of an installed package with entry points."""
    info = folder / "site" / "cooking_package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cooking-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[keras_transformer]", *lines, ""]))
    sys.path[:0] = [str(folder), str(info.parent)]
    importlib.invalidate_caches()


def train(*options):
    return CliRunner().invoke(cli, ["train", "config.toml", "--output", "run", *options]).stderr


def test_a_command_knows_the_task_of_a_module(plugin):
    assert "task.kind must be one of translation" in train()
    assert "nowhere.tsv: cannot be read: No such" in train("--module", "cooking_plugin")


def test_a_command_knows_the_tasks_of_installed_packages(plugin):
    install(plugin, "cooking = cooking_plugin", "broken = not_there.at_all")
    shown = train()
    assert "Warning: the plug-in broken cannot be imported: ModuleNotFoundError: No mod" in shown
    assert "nowhere.tsv: cannot be read: No such" in shown


def test_an_installed_package_that_exits_does_not_end_a_command(plugin):
    (plugin / "exits.py").write_text("raise SystemExit(0)")
    install(plugin, "exits = exits", "cooking = cooking_plugin", "nothing = ")
    shown = train()
    assert "Warning: the plug-in exits cannot be imported: SystemExit: 0." in shown
    assert "Warning: the plug-in nothing cannot be imported: " in shown
    assert "nowhere.tsv: cannot be read: No such" in shown


@pytest.mark.parametrize(
    "name", ["../plugin", "plugin.py", "a/plugin", "", ".plugin", "a-b", "a b"]
)
def test_a_module_is_a_name(plugin, name):
    with pytest.raises(ValueError, match=r"a module has a name such as .* no path\. Received: '"):
        import_plugins([name], pytest.fail)


def test_a_plugin_registers_functions_by_name(plugin):
    import_plugins(["cooking_plugin"], pytest.fail)
    assert keras.saving.get_registered_object("cooking>simmer") is not None
    assert TASKS["cooking"].name == "cooking"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "ModuleNotFoundError: No module named"),
        ("1 / 0", "ZeroDivisionError: division by"),
        ("import sys; sys.exit(2)", r"SystemExit: 2\."),
        ("raise SystemExit", r"SystemExit\."),
    ],
)
def test_a_module_that_cannot_be_imported_is_an_error(plugin, text, reason):
    if text is not None:
        (plugin / "broken_plugin.py").write_text(text)
    with pytest.raises(ValueError, match=f"the module broken_plugin cannot be imported: {reason}"):
        import_plugins(["broken_plugin"], pytest.fail)


def test_an_unknown_task_is_named_in_a_configuration_and_in_a_run(plugin):
    shown = train()
    assert "Received: 'cooking'" in shown and "import the module that registers it" in shown
    (plugin / "run").mkdir()
    (plugin / "run" / "config.toml").write_text(CONFIG)
    with pytest.raises(
        ValueError, match=f"run has the task 'cooking', which is unknown: {UNKNOWN}"
    ):
        open_run(plugin / "run")


def test_a_model_with_an_unknown_layer_is_not_called_damaged(plugin):
    own = type("Simmer", (keras.layers.Dense,), {})
    model = keras.Sequential([keras.Input([2]), own(1)])
    (plugin / "run").mkdir()
    model.save(Run("run").model)
    with zipfile.ZipFile(Run("run").model) as archive:
        assert b"Simmer" in archive.read("config.json")
    with pytest.raises(ValueError, match=f"needs Simmer, which is not registered.*: {UNKNOWN}"):
        Run("run").load_model()
