"""Every bad input is reported in one line that names it, sets an exit status and leaves no file."""

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest
from bad_inputs import command_line, configuration, data, models
from click.testing import CliRunner
from marks import long

from keras_transformer import Beam, Translator
from keras_transformer.cli.main import cli

CASES = [*command_line.CASES, *configuration.CASES, *data.CASES, *models.CASES]


TRAINED = {"RUN", "SAVED", "FILE.tflite", "CT2"}
# The first case of each command that reads a run.
READING = {
    case.command.split()[0]: case
    for case in reversed(CASES)
    if TRAINED & {*case.materials()} == {"RUN"}
}


def marked(case):
    """Marks cases that need a trained model as slow, except one for each command."""
    is_fast = not TRAINED & {*case.materials()} or case in READING.values()
    return pytest.param(case, marks=() if is_fast else pytest.mark.slow)


CONFIG = """
[model]
num_layers = 1
d_model = 8
d_ff = 12
num_heads = 2
dropout = 0.0
max_length = 14

[data]
source = "text"
train_source = "DATA/train.en"
train_target = "DATA/train.de"
validation_source = "DATA/val.en"
validation_target = "DATA/val.de"
max_length = 14
batch_tokens = 60

[vocabulary]
size = 30

[schedule]
warmup_steps = 1

[training]
updates = 2
checkpoint_every = 1
validate_every = 2
validate_sentences = 0
"""
# Progress that `train` and `export` print before the error.
PROGRESS = re.compile(r"(Learning a vocabulary of .*|[\d,]+ parameters; .*|.* \.\.\.)\n")
TEXTS = {
    "DATA/train.en": "in 3 days\nin 5 weeks\nin 12 days\n" * 4,
    "DATA/train.de": "in 3 Tagen\nin 5 Wochen\nin 12 Tagen\n" * 4,
    "DATA/val.en": "in 5 days\n",
    "DATA/val.de": "in 5 Tagen\n",
    "IN.txt": "in 3 days\nin 5 weeks\nin 2 days\n",
    "OUT.txt": "in 3 Tagen\nin 5 Wochen\nin 2 Tagen\n",
    "LONG.txt": "in 3 days\nin 5 weeks\nin 2 days\nin 4 days\n",
    "CONFIG.toml": CONFIG,
}


def run(command, stdin=b""):
    return CliRunner().invoke(cli, shlex.split(command), input=stdin, prog_name="keras-transformer")


class Materials:
    """The files that `bad_inputs` names in capitals, each made when a case first mentions it."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "DATA").mkdir()
        for name, text in TEXTS.items():
            (folder / name).write_text(text)
        (folder / "BYTES.txt").write_bytes(b"in 3 days\n\xff\nin 2 days\n")

    def path(self, name):
        """Returns the path of a file; raises if there is no file of that name."""
        path = self.folder / name
        make = {"RUN": self.train, "SAVED": self.export, "FILE.tflite": self.export}
        make["CT2"] = self.export
        if name in make and not path.exists():
            make[name](name, path)
        return path

    def train(self, name, path):
        done = run(f"train {self.folder}/CONFIG.toml --output {path}")
        assert done.exit_code == 0, done.output

    def export(self, name, path):
        from keras_transformer import export

        translator = Translator.from_run(self.path("RUN"))
        write, options = {
            "SAVED": (export.export_saved_model, export.SavedModelOptions()),
            "FILE.tflite": (export.export_litert, export.LiteRTOptions(search=Beam(2))),
            "CT2": (export.export_ctranslate2, export.CTranslate2Options()),
        }[name]
        write(translator, path, TEXTS["IN.txt"].splitlines(), options)


@pytest.fixture(scope="session")
def materials(tmp_path_factory):
    return Materials(tmp_path_factory.mktemp("materials"))


def snapshot(folder):
    """Returns every path below a folder, with the bytes of each file."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def prepared(materials, tmp_path, monkeypatch):
    """A function that copies the files of a case into a folder and changes to that folder."""

    def prepare(case):
        names = case.materials() | ({"DATA"} if "CONFIG.toml" in case.materials() else set())
        for path in map(materials.path, names):
            if path.is_dir():
                shutil.copytree(path, tmp_path / path.name)
            elif path.exists():
                shutil.copyfile(path, tmp_path / path.name)
        for change in case.changes:
            change(tmp_path)
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return prepare


@pytest.mark.parametrize("case", [marked(case) for case in CASES], ids=lambda case: case.id)
def test_a_bad_input_is_reported_in_one_line_and_leaves_no_file(case, prepared, capfd):
    folder = prepared(case)
    before = snapshot(folder)
    capfd.readouterr()
    done = run(case.command, case.stdin)
    assert done.exit_code == case.status, done.output or done.exception
    assert done.stdout == ""
    shown = re.sub(PROGRESS, "", done.stderr)
    assert re.fullmatch(r"Error: .+\n", shown), done.stderr
    assert re.search(case.match, done.stderr), done.stderr
    assert not re.search("Traceback|pickle|unsafely", done.stderr)
    assert capfd.readouterr().err == ""
    assert snapshot(folder) == before


def test_there_are_many_bad_inputs():
    assert len({case.id for case in CASES}) == len(CASES) >= 150


SLEEPING = """
import sys, time, click
sys.argv = ["keras-transformer"]  # the package imports no TensorFlow then
from keras_transformer.cli.command import Commands, start

@click.group(cls=Commands)
def cli():
    pass

@cli.command(cls=click.Command)
def sleep():
    print("ready", flush=True)
    time.sleep(60)

start()
sys.exit(cli(["sleep"]))
"""


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_silently(number, status):
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Restores the signal that a shell's `&` makes the process ignore.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, stderr = process.communicate(timeout=50)
    assert (process.returncode, stderr.strip()) == (status, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "closed, message",
    [
        long("<&-", "Error: stdin is closed. Redirect a file"),
        (">&-", "Error: stdout is closed. Redirect it"),
    ],
)
def test_a_closed_stream_is_reported(materials, closed, message):
    """Closes a stream as a shell does and runs the real command in a process of its own."""
    command = f"{sys.executable} -m keras_transformer translate {materials.path('RUN')} {closed}"
    environment = {
        name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"
    }
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, input="in 3 days\n", env=environment
    )
    assert done.returncode == 1
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1
