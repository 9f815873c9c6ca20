"""`export --sentences` of models that read files: every line is the path of a file."""

from click.testing import CliRunner
from pipelines import speech_recognizer, translator, write_run

from keras_transformer.cli.main import cli
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
