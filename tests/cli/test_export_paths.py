"""`export --sentences` of models that read files: every line is the path of a file."""

import pytest
from click.testing import CliRunner
from pipelines import speech_recognizer, translator, write_run

from keras_transformer.cli.export_run import _warn_of_time
from keras_transformer.cli.main import cli
from keras_transformer.export import SavedModelOptions, export_saved_model
from keras_transformer.tasks import TASKS


def test_a_line_that_is_no_path_of_a_recording_is_named(tmp_path):
    run = write_run(speech_recognizer(), tmp_path / "run")
    sentences = tmp_path / "lines.txt"
    (tmp_path / "a.wav").touch()
    sentences.write_text(f"{tmp_path / 'a.wav'}\nhello world\n")
    message = (
        "lines.txt, line 2: must be the path of a file, the recording to check the export with"
    )
    arguments = ["export", "litert", run, tmp_path / "x.tflite", "--sentences", sentences]
    done = CliRunner().invoke(cli, list(map(str, arguments)))
    assert done.exit_code == 1 and f"{message}. Received: 'hello world'" in done.stderr


def test_progress_says_what_models_do():
    assert translator().participle == "translating"
    participles = {name: getattr(task.pipeline_class(), "participle", None)
                   for name, task in TASKS.items()}  # fmt: skip
    assert participles["language_modelling"] == "continuing"
    assert participles["summarization"] == "summarising"


def test_what_the_time_of_a_check_left_out_is_a_warning(capsys):
    _warn_of_time({"sentences": 5})
    assert capsys.readouterr().err == ""
    _warn_of_time({"sentences": 5, "not_called": ["n_best", "tokens", "search", "x", "y"]})
    message = (
        "the check compared 5 sentences and ended before it had called everything; it left out "
        "n_best, tokens, search and 2 more: increase --check-seconds"
    )
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_the_time_of_a_check_must_be_positive(seconds, tmp_path):
    with pytest.raises(ValueError, match="`check_seconds` must be above 0 and finite, or None. R"):
        export_saved_model(
            translator(), tmp_path / "x", ["a"], SavedModelOptions(check_seconds=seconds)
        )


def test_the_time_of_a_check_has_no_effect_on_a_model_that_answers_in_one_pass(tmp_path):
    with pytest.raises(ValueError, match="`check_seconds` has no effect on a model for speech"):
        export_saved_model(
            speech_recognizer(), tmp_path / "x", ["a"], SavedModelOptions(check_seconds=5.0)
        )
