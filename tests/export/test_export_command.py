"""`keras-transformer export`: its options reach the exports."""

import dataclasses
import functools
import json
import types

import pytest
from click.testing import CliRunner

from keras_transformer import Beam, Greedy, TransformerConfig, Translator
from keras_transformer.cli import main as command_line
from keras_transformer.export.formats import FORMATS
from keras_transformer.export.litert.export import export_litert
from keras_transformer.pipelines import Run
from keras_transformer.tasks import TASKS


class Recorder(Translator):
    max_length = 20
    model = types.SimpleNamespace(config=TransformerConfig.preset("tiny", vocab_size=50))

    def __init__(self):
        pass

    def answer_batch(self, sentences):
        return None


@pytest.fixture
def exported(monkeypatch, tmp_path):
    """A function that runs the command and returns the arguments of the export."""
    calls = []

    def record(translator, directory, sentences, options, *, progress, origin, left_out=0):
        progress("writing")
        values = dataclasses.asdict(options)
        shapes = {name: values[name] for name in ("batch_sizes", "lengths", "check_seconds")}
        shapes = {name: value for name, value in shapes.items() if value is not None}
        chosen = options.search, options.n_best, options.jit, options.alignment
        calls.append((translator, directory, sentences, *chosen, shapes))
        return {"agreement": 1.0, **({"sentences_left_out": left_out} if left_out else {})}

    def open_run(path, max_length=None):
        translator = Recorder()
        translator.max_length = max_length or 20
        return translator

    monkeypatch.setattr("keras_transformer.export.saved_model.export.export_saved_model", record)
    monkeypatch.setattr("keras_transformer.tasks.open_run", open_run)
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("in 17 weeks\nin 3 days\n")

    def run(*options):
        arguments = ["export", "saved-model", tmp_path, tmp_path / "x", "--sentences", sentences]
        arguments.append("--json")
        done = CliRunner().invoke(
            command_line.cli, [str(argument) for argument in [*arguments, *options]]
        )
        return done, calls

    return run


def test_without_options_the_search_is_greedy(exported, tmp_path):
    done, calls = exported()
    source = str(tmp_path / "sentences.txt")
    report = json.loads(done.stdout)
    assert report.pop("seconds") >= 0 and report == {"agreement": 1.0, "checked_with": source}
    ((translator, directory, sentences, *options),) = calls
    assert type(translator) is Recorder and directory == tmp_path / "x"
    assert sentences == ["in 17 weeks", "in 3 days"] and options == [
        Greedy(),
        None,
        False,
        None,
        {},
    ]
    assert json.loads(Run(tmp_path).metrics.read_text()) == {"saved_model_agreement": 100.0}
    assert done.stderr == "loading the run ...\nwriting ...\n"


def test_a_check_that_would_take_too_long_compares_fewer_sentences(exported, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_transformer.export.extent.SECONDS", 0.0)
    (tmp_path / "sentences.txt").write_text("in 3 weeks\n" * 70)
    done, calls = exported()
    ((_, _, sentences, *_),) = calls
    assert sentences == ["in 3 weeks"] * 32
    assert json.loads(done.stdout)["sentences_left_out"] == 38
    assert "measuring how long a sentence takes ...\n" in done.stderr
    assert "Warning: the check compares 32 of 70 sentences: all of them would take" in done.stderr


def test_a_read_only_run_stores_no_metrics_and_says_so(exported, tmp_path, monkeypatch):
    def refuse(self, **metrics):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Run, "update_metrics", refuse)
    done, _ = exported()
    assert done.exit_code == 0 and json.loads(done.stdout)["agreement"] == 1.0
    warning = f"Warning: {tmp_path} does not store the results of this export: Permission denied."
    assert done.stderr.splitlines()[-1] == warning


@pytest.mark.parametrize(
    "command",
    [["saved-model"], ["litert"], ["litert", "--quantize", "int8"], ["onnx"], ["ctranslate2"]],
)
def test_an_unwritable_destination_is_refused_before_the_run_is_loaded(
    tmp_path, monkeypatch, command
):
    def load(*arguments, **options):
        raise AssertionError("work was done before the refusal")

    monkeypatch.setattr("keras_transformer.tasks.open_run", load)
    monkeypatch.setattr("keras_transformer.training.settings.toml.load_settings", load)
    (tmp_path / "file").touch()
    name, *options = command
    place = tmp_path / "file" / f"x{FORMATS[name].suffix}"
    done = CliRunner().invoke(
        command_line.cli, ["export", name, str(tmp_path), str(place), *options]
    )
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: {place} cannot be written: no file can be created in")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_beam_and_all_options(exported):
    chosen = ("--beam", 6, "--length-penalty", 1.5, "--n-best", 3, "--jit", "--alignment")
    _, calls = exported(*chosen, "--check-seconds", 90)
    ((_, _, _, *options),) = calls
    seconds = {"check_seconds": 90}
    assert options == [Beam(6, length_penalty=1.5), 3, True, (-1, None), seconds]


def test_shapes_to_compile_for_include_the_longest_sentence(exported):
    _, calls = exported("--jit", "--batch-sizes", "1,32", "--lengths", "8,12", "--max-length", 12)
    ((translator, *_, shapes),) = calls
    assert translator.max_length == 12
    assert shapes == {"batch_sizes": (1, 32), "lengths": (8, 12)}


@pytest.mark.parametrize("option", ["--batch-sizes", "--lengths"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1,four", "'1,four' is not a list of numbers such as 1,4,16."),
        ("1, 4", "'1, 4' is not a list of numbers such as 1,4,16."),
        ("", "'' is not a list of numbers such as 1,4,16."),
        ("4,1", "'4,1' must be positive and increasing, as 1,4,16 is."),
        ("0,4", "'0,4' must be positive and increasing"),
        ("4,4", "'4,4' must be positive and increasing"),
    ],
)
def test_a_malformed_list_is_reported(exported, option, value, message):
    done, calls = exported("--jit", option, value)
    assert done.exit_code == 2 and not calls
    assert f"Invalid value for '{option}': {message}" in done.stderr


@pytest.mark.parametrize("option", ["--batch-sizes", "--lengths"])
def test_shapes_need_a_compiler(exported, option):
    done, calls = exported(option, "1,4")
    assert done.exit_code == 2 and not calls
    assert f"{option} needs --jit." in done.stderr


def test_a_length_penalty_needs_a_beam(exported):
    done, calls = exported("--length-penalty", 1)
    assert "--length-penalty needs --beam." in done.stderr and not calls


def test_help_names_the_signatures():
    text = CliRunner().invoke(command_line.cli, ["export", "saved-model", "--help"]).stdout
    for word in ("serving_default", "n_best", "beam_tokens", "--n-best M", "README.md", "--jit"):
        assert word in text
    assert "--alignment" in text


@pytest.fixture
def litert(monkeypatch, tmp_path):
    """A function that runs the command and returns the arguments of the export."""
    calls = []

    @functools.wraps(export_litert)
    def record(translator, path, sentences, options, calibration=None, **data):
        calls.append((sentences, options.quantize, calibration))
        return {"agreement": 1.0, "bytes": 1}

    data = types.SimpleNamespace(splits=["train", "validation", "test"])

    def read_columns(data, task, split, limit):
        return [f"{limit} of {split}"], ["a translation"]

    monkeypatch.setattr("keras_transformer.export.litert.export.export_litert", record)
    monkeypatch.setattr(
        "keras_transformer.training.settings.sources.open_source", lambda settings, columns: data
    )
    monkeypatch.setattr("keras_transformer.training.evaluate.read_columns", read_columns)
    monkeypatch.setattr(Run, "require_finished", lambda run, vocabulary: None)
    task = types.SimpleNamespace(get=lambda: TASKS["translation"])
    settings = types.SimpleNamespace(data=None, task=task)
    monkeypatch.setattr(
        "keras_transformer.training.settings.toml.load_settings", lambda _: settings
    )
    monkeypatch.setattr(
        "keras_transformer.tasks.open_run", lambda path, max_length=None: Recorder()
    )

    def run(*options):
        arguments = ["export", "litert", tmp_path, tmp_path / "x.tflite", *options, "--json"]
        return CliRunner().invoke(
            command_line.cli, [str(argument) for argument in arguments]
        ), calls

    run.data = data
    return run


def test_without_a_test_split_validation_sentences_are_used(litert):
    litert.data.splits = ["train", "validation"]
    done, calls = litert()
    assert [sentences for sentences, *_ in calls] == [["200 of validation"]]
    source = "1 sentence of the validation split of the run's data, which has no test split"
    assert json.loads(done.stdout)["checked_with"] == source
    assert done.stderr.splitlines()[-1] == f"Checked with {source}."


def test_with_a_test_split_there_is_no_message_about_it(litert):
    done, _ = litert()
    assert "Checked with" not in done.stderr
    assert (
        json.loads(done.stdout)["checked_with"] == "1 sentence of the test split of the run's data"
    )


def test_static_int8_is_calibrated_with_the_training_data(litert):
    done, calls = litert("--quantize", "int8_static")
    assert done.exit_code == 0, done.stderr
    assert calls == [(["200 of test"], "int8_static", ["200 of train"])]


def test_static_int8_is_calibrated_with_a_file(litert, tmp_path):
    file = tmp_path / "calibration.txt"
    file.write_text("in 2 hours\nafter 5 years\n")
    _, calls = litert("--quantize", "int8_static", "--calibration", file)
    assert calls == [(["200 of test"], "int8_static", ["in 2 hours", "after 5 years"])]


def test_a_calibration_needs_static_int8(litert, tmp_path):
    file = tmp_path / "calibration.txt"
    file.touch()
    done, calls = litert("--quantize", "int8", "--calibration", file)
    assert "--calibration needs --quantize int8_static." in done.stderr and not calls


def test_other_quantisations_are_not_calibrated(litert):
    _, calls = litert("--quantize", "int8")
    assert calls == [(["200 of test"], "int8", None)]


@pytest.mark.parametrize("options, tokenizer", [([], False), (["--tokenizer"], True)])
def test_an_option_puts_the_tokenizer_into_a_tflite_file(monkeypatch, tmp_path, options, tokenizer):
    calls = []

    @functools.wraps(export_litert)
    def record(translator, path, sentences, options, **data):
        calls.append(options)
        return {"agreement": 1.0, "bytes": 3}

    monkeypatch.setattr("keras_transformer.export.litert.export.export_litert", record)
    monkeypatch.setattr(
        "keras_transformer.tasks.open_run", lambda path, max_length=None: Recorder()
    )
    (tmp_path / "sentences.txt").write_text("in 17 weeks\n")
    arguments = ["export", "litert", tmp_path, tmp_path / "x.tflite", "--sentences"]
    arguments += [tmp_path / "sentences.txt", *options, "--json"]
    done = CliRunner().invoke(command_line.cli, [str(argument) for argument in arguments])
    source = str(tmp_path / "sentences.txt")
    report = json.loads(done.stdout)
    assert report.pop("seconds") >= 0
    assert report == {"agreement": 1.0, "bytes": 3, "checked_with": source}
    assert [call.tokenizer for call in calls] == [tokenizer]


@pytest.mark.parametrize("option", ["--sentences", "--calibration"])
def test_a_file_that_is_not_text_is_reported(litert, tmp_path, option):
    file = tmp_path / "bad.txt"
    file.write_bytes(b"in 2 hours\n\xff\xfe\n")
    done, calls = litert("--quantize", "int8_static", option, file)
    assert done.exit_code == 1 and not calls
    assert done.stderr == f"Error: {file}, line 2: not UTF-8.\n"


def test_there_must_be_as_many_references_as_sentences(litert, tmp_path):
    (tmp_path / "x.txt").write_text("in 2 hours\nin 3 days\n")
    (tmp_path / "y.txt").write_text("in 2 Stunden\n")
    files = ["--sentences", tmp_path / "x.txt", "--references", tmp_path / "y.txt"]
    done, calls = litert("--quantize", "int8", *files)
    assert done.exit_code == 1 and not calls
    assert "x.txt has 2 lines" in done.stderr and "y.txt has 1" in done.stderr
