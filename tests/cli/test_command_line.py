"""The command line as a user sees it: help, mistakes, and one line for each mistake."""

import gc
import os
import subprocess
import sys
import types
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from support import small_config

import keras_transformer
from keras_transformer import Beam, Greedy
from keras_transformer.cli import command
from keras_transformer.cli.main import cli
from keras_transformer.cli.places import check_folder
from keras_transformer.cli.tensorflow_start import importing_quickly, lines_of_level
from keras_transformer.export.saved_model import runtime
from keras_transformer.export.saved_model.runtime import SavedModelTranslator


def run(*arguments, data=b""):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=data)


def error_line(*arguments, **options):
    """Returns the message of a failing command, which must be one line with nothing on stdout."""
    done = run(*arguments, **options)
    assert done.exit_code != 0
    assert done.stdout == ""
    # Leaves out progress messages.
    lines = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]
    assert len([line for line in lines if line]) == 1, done.stderr
    return lines[-1]


LOG = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    b"I0000 00:00:1795449989.689644   22781 port.cc:153] oneDNN custom operations are on.\n"
    b"To enable the following instructions: AVX2.\n"
    b"2025-11-23 12:00:00.123456: W external/local_xla/xla.cc:9] older releases write a date\n"
    b"E0000 00:00:1795450002.731256   22781 cuda_platform.cc:52] failed call to cuInit\n"
    b"Error: not a line of the log\n"
)


@pytest.mark.parametrize(("level", "shown"), [(1, [3, 4]), (2, [4]), (3, []), (9, [])])
def test_a_log_level_shows_messages_of_that_severity(level, shown):
    lines = LOG.splitlines(keepends=True)
    assert lines_of_level(LOG, level) == b"".join(lines[number] for number in shown)


@pytest.mark.parametrize("imported", [False, True], ids=["a command", "a program"])
def test_garbage_is_searched_for_again_after_an_import(imported, monkeypatch):
    """Only a command, which imports TensorFlow itself, leaves its modules out of the search."""
    frozen = []
    monkeypatch.setattr("gc.freeze", lambda: frozen.append(gc.isenabled()))
    if not imported:
        monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    assert gc.isenabled()
    with pytest.raises(ImportError), importing_quickly():
        searched = gc.isenabled()
        raise ImportError
    assert gc.isenabled() and searched == imported and frozen == ([] if imported else [False])


@pytest.mark.parametrize(
    ("arguments", "before", "expected"),
    [
        (("export", "litert", "missing", "model.tflite"), None, "1"),
        (("convert", "hf", "missing", "run"), None, "1"),
        (("export", "litert", "missing", "model.tflite"), "0", "0"),
        (("evaluate", "missing"), None, None),
    ],
)
def test_only_exports_and_conversions_return_free_memory(arguments, before, expected, monkeypatch):
    name = "TF_ONEDNN_USE_SYSTEM_ALLOCATOR"
    monkeypatch.setenv(name, before or "")  # so that it is restored in either case
    if before is None:
        monkeypatch.delenv(name)
    seen, calls = [], []
    monkeypatch.setattr(command, "start_tensorflow", lambda: seen.append(os.environ.get(name)))
    monkeypatch.setattr(command, "return_large_blocks", lambda: calls.append(1))
    assert run(*arguments).exit_code != 0
    assert seen == [expected] and len(calls) == (expected is not None)


@pytest.mark.long
@pytest.mark.slow
def test_the_highest_log_level_is_silent(tmp_path):
    """Runs in a process of its own because TensorFlow prints messages when it is imported."""
    command = [sys.executable, "-m", "keras_transformer", "evaluate", str(tmp_path)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stderr.startswith(f"Error: {tmp_path} ") and done.stderr.count("\n") == 1


def test_help_does_not_import_tensorflow(tmp_path):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise SystemExit('TensorFlow loaded')")
    done = subprocess.run(
        [sys.executable, "-m", "keras_transformer", "--help"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
    )
    for name in ("train", "distill", "average", "evaluate", "translate", "score", "export", "plot"):
        assert f"\n  {name} ".encode() in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        "import keras, keras_transformer",
        "import keras_transformer, keras; keras_transformer.EncoderBlock",
        "from keras_transformer.layers import MultiHeadCrossAttention; import keras",
    ],
)
def test_importing_the_package_registers_all_layers_and_models(imports):
    """Without a hook: an `import keras` after that of the package is seen at the next name."""
    code = (
        f"import sys; {imports};"
        "finders = [type(finder).__module__ for finder in sys.meta_path];"
        "assert not any(name.startswith('keras_transformer') for name in finders), finders;"
        "names = {*keras.saving.get_custom_objects()};"
        "wanted = {'EncoderBlock', 'TextClassifier', 'SpeechTransformer', 'FrameEmbedding'};"
        "assert names >= {f'keras_transformer>{name}' for name in wanted}, names"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_configuration_is_reported_with_the_known_ones(tmp_path):
    line = error_line("train", "nonsense", "--output", tmp_path)
    assert "nonsense: no such configuration file" in line and "demo" in line


def test_a_wrong_key_is_reported_with_the_valid_ones(tmp_path):
    line = error_line("train", "demo", "--output", tmp_path, "--set", "model.d_modell=3")
    assert "model.d_modell" in line and "did you mean d_model?" in line
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["evaluate"], ["export", "saved-model"]])
def test_a_folder_that_is_not_a_run_is_reported(tmp_path, arguments):
    line = error_line(*arguments, tmp_path, *(["x"] if "export" in arguments else []))
    assert str(tmp_path) in line


def test_a_missing_model_is_reported():
    assert "nowhere does not exist" in error_line("translate", "nowhere", data=b"x\n")


def test_source_and_reference_go_together(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("a\n")
    (tmp_path / "config.toml").write_text('[data]\nsource = "cldr"\n')
    line = error_line("evaluate", tmp_path, "--source", file)
    message = "a run for translation, whose data have source and target: evaluation needs two files"
    assert f"{tmp_path} is {message}." in line
    line = error_line("evaluate", tmp_path, "--reference", file)
    assert "--reference needs --source." in line


@pytest.mark.parametrize("command", ["evaluate", "translate"])
def test_a_length_penalty_needs_a_beam(command, tmp_path):
    line = error_line(command, tmp_path, "--length-penalty", "1")
    assert "--length-penalty needs --beam." in line


def test_sampling_options_are_refused_for_a_saved_model(tmp_path, monkeypatch):
    """The searches of a SavedModel are fixed when it is exported."""

    class Opened(SavedModelTranslator):
        task, beam = "translation", None
        _model = types.SimpleNamespace(signatures={})

        def __init__(self, path):
            pass

    monkeypatch.setattr(runtime, "SavedModelTranslator", Opened)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()
    line = error_line("translate", tmp_path, "--sample")
    assert (
        f"--sample has no effect on {tmp_path}: the export has no such option. Open the run."
        in line
    )
    line = error_line("translate", tmp_path, "--greedy")
    assert "the export was written with its own search. Export the run again with --greedy." in line


def test_references_need_sentences(tmp_path):
    (tmp_path / "a.txt").touch()
    file = tmp_path / "x.tflite"
    line = error_line("export", "litert", tmp_path, file, "--references", tmp_path / "a.txt")
    assert "--references needs --sentences." in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--n-best", "2"), "--n-best needs --beam."),
        (("--beam-only",), "--beam-only needs --beam."),
        (("--beam-only", "--greedy"), "--beam-only needs --beam."),
        (("--beam", "2", "--beam-only", "--alignment"), "--alignment has no effect with --beam-o"),
    ],
)
def test_options_of_a_file_need_their_search(options, message, tmp_path):
    assert message in error_line("export", "litert", tmp_path, tmp_path / "x.tflite", *options)


def test_a_beam_and_its_penalty_reach_the_search(monkeypatch, tmp_path):
    class Recorder(keras_transformer.Translator):
        max_length, search = 9, Greedy()
        model = types.SimpleNamespace(config=small_config())
        models = (model,)
        tokenizers = types.SimpleNamespace(languages=None)
        searches = []
        _wording_tokens = staticmethod(lambda: None)

        def __init__(self):
            pass

        def with_search(self, search):
            other = Recorder()
            other.search = search
            return other

        def graph(self, search, n_best, details):
            def translate(sentences, *values):
                assert values == tuple(search.values([0]))
                self.searches.append((search, n_best))
                return {
                    "text": tf.constant([[b"ja"]]),
                    "score": tf.constant([[-1.0]]),
                    "truncated": tf.constant([False]),
                }

            return translate

    monkeypatch.setattr("keras_transformer.tasks.open_run", lambda path, max_length: Recorder())
    (tmp_path / "config.toml").touch()
    for options in ([], ["--length-penalty", "1.5"]):
        assert run("translate", tmp_path, "--beam", "3", *options, data=b"yes\n").stdout == "ja\n"
    beams = [Beam(3, 0.6, "gnmt", 1, 50), Beam(3, 1.5, "gnmt", 1, 50)]
    assert Recorder.searches == [(beam, 1) for beam in beams]


def files(folder, source="one\ntwo\n", target="eins\nzwei\n"):
    """Writes source and target lines to files and returns the options of `score` for them."""
    (folder / "source.txt").write_text(source)
    (folder / "target.txt").write_text(target)
    return "--source", folder / "source.txt", "--target", folder / "target.txt"


def test_score_writes_a_line_for_each_pair(tmp_path, monkeypatch):
    class Fixed:
        def score(self, sources, targets, batch_size):
            assert (sources, targets, batch_size) == (["one", "two"], ["eins", "zwei"], 7)
            return [
                keras_transformer.pipelines.Score(-1.5, 4, False),
                keras_transformer.pipelines.Score(-2, 3, True),
            ]

    monkeypatch.setattr(keras_transformer.Translator, "from_run", lambda path: Fixed())
    done = run("score", tmp_path, *files(tmp_path), "--batch-size", "7")
    assert (done.exit_code, done.stdout) == (0, "-1.50000\t4\n-2.00000\t3\n")
    assert done.stderr.startswith("Warning: line 2: longer than the model's limit")


def test_files_to_score_must_match(tmp_path):
    """The error comes before the model is loaded: the folder is not even a run."""
    line = error_line("score", tmp_path, *files(tmp_path, target="eins\n"))
    assert "source.txt has 2 lines, " in line and "target.txt has 1" in line


def test_options_that_score_needs_are_reported(tmp_path):
    options = files(tmp_path)
    assert "source.txt' does not exist" in error_line(
        "score", tmp_path, "--source", tmp_path / "no" / "source.txt", *options[2:]
    )
    assert "Missing option '--target'" in error_line("score", tmp_path, *options[:2])
    line = error_line("score", tmp_path, *options)
    assert f"{tmp_path} is not a finished run" in line


def test_traceback_shows_the_source_of_an_error(tmp_path):
    with pytest.raises(ValueError, match="is not a finished run"):
        CliRunner().invoke(cli, ["--traceback", "evaluate", str(tmp_path)], catch_exceptions=False)


@pytest.mark.long
@pytest.mark.slow
def test_a_process_survives_warnings_as_errors_and_a_full_disk():
    program = "from keras_transformer.cli.main import main; main()"
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [*command, "train", "nowhere.toml", "--output", "x"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "nowhere.toml: no such configuration file" in done.stderr
    for options in (["--help"], ["train", "--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*command, *options], stdout=full, stderr=-1, text=True)
        assert (done.returncode, done.stderr) == (1, "Error: No space left on device.\n")


def test_warnings_of_other_packages_about_each_other_are_no_errors(monkeypatch):
    """NumPy warns of Keras, also while it saves a model: with `-W error`, no training could end."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")  # nothing else is prepared
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")  # restored afterwards
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("error")
        variable = keras.Variable([1.0, 2.0])
        command.start_tensorflow()
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(variable), [1.0, 2.0])
        warnings.warn("ast.Str is deprecated and will", DeprecationWarning, stacklevel=1)  # gast
        with pytest.raises(DeprecationWarning, match="another"):
            warnings.warn("another", DeprecationWarning, stacklevel=1)


def test_a_missing_model_has_the_same_status_for_every_command(tmp_path):
    for name in ("predict", "evaluate"):
        done = CliRunner().invoke(cli, [name, str(tmp_path / "nowhere")], input="")
        assert done.exit_code == 1 and "nowhere" in done.stderr, name


@pytest.mark.parametrize(
    ("flag", "reason"),
    [(0, "permission denied"), (os.ST_RDONLY, "it is on a read-only file system")],
)
def test_a_folder_that_cannot_be_written_names_the_reason(tmp_path, monkeypatch, flag, reason):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(os, "statvfs", lambda path: types.SimpleNamespace(f_flag=flag))
    with pytest.raises(ValueError, match=f"cannot be written: {reason}"):
        check_folder(tmp_path / "new")
