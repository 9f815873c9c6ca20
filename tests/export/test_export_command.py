"""`keras-transformer export saved-model` and `litert`: their options reach the export."""

import json

import pytest
from click.testing import CliRunner

from keras_transformer import BeamTranslator, Run, Translator
from keras_transformer import __main__ as command_line


class Recorder(Translator):
    max_length = 20

    def __init__(self):
        pass


@pytest.fixture
def exported(monkeypatch, tmp_path):
    """A function that runs the command and returns what it called the export with."""
    calls = []

    def record(translator, directory, sentences, n_best=None, *, jit=False):
        calls.append((translator, directory, sentences, n_best, jit))
        return {"agreement": 1.0}

    monkeypatch.setattr("keras_transformer.export.saved_model.export_saved_model", record)
    monkeypatch.setattr(Translator, "from_run", lambda path: Recorder())
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("in 17 weeks\nin 3 days\n")

    def run(*options):
        arguments = ["export", "saved-model", tmp_path, tmp_path / "x", "--sentences", sentences]
        done = CliRunner().invoke(command_line.cli, [str(each) for each in [*arguments, *options]])
        return done, calls

    return run


def test_without_options_the_search_is_greedy(exported, tmp_path):
    done, calls = exported()
    assert json.loads(done.stdout) == {"agreement": 1.0}
    ((translator, directory, sentences, n_best, jit),) = calls
    assert type(translator) is Recorder and directory == tmp_path / "x"
    assert sentences == ["in 17 weeks", "in 3 days"] and (n_best, jit) == (None, False)
    assert json.loads(Run(tmp_path).metrics.read_text()) == {"saved_model_agreement": 100.0}


def test_a_beam_and_all_options(exported):
    _, calls = exported("--beam", 6, "--length-penalty", 1.5, "--n-best", 3, "--jit")
    ((translator, _, _, n_best, jit),) = calls
    assert isinstance(translator, BeamTranslator)
    assert (translator.beam_size, translator.length_penalty) == (6, 1.5)
    assert (n_best, jit) == (3, True)


def test_a_length_penalty_needs_a_beam(exported):
    done, calls = exported("--length-penalty", 1)
    assert "--length-penalty needs --beam." in done.stderr and not calls


def test_help_names_the_signatures():
    text = CliRunner().invoke(command_line.cli, ["export", "saved-model", "--help"]).stdout
    for word in ("serving_default", "n_best", "beam_tokens", "--n-best M", "README.md", "--jit"):
        assert word in text


@pytest.mark.parametrize("options, tokenizer", [([], False), (["--tokenizer"], True)])
def test_the_tokenizer_is_put_into_a_tflite_file_if_asked(
    monkeypatch, tmp_path, options, tokenizer
):
    calls = []

    def record(translator, path, sentences, quantize, **options):
        calls.append(options)
        return {"agreement": 1.0, "bytes": 3}

    monkeypatch.setattr("keras_transformer.export.litert.export_litert", record)
    monkeypatch.setattr(Translator, "from_run", lambda path: Recorder())
    (tmp_path / "sentences.txt").write_text("in 17 weeks\n")
    arguments = ["export", "litert", tmp_path, tmp_path / "x.tflite", "--sentences"]
    arguments += [tmp_path / "sentences.txt", *options]
    done = CliRunner().invoke(command_line.cli, [str(each) for each in arguments])
    assert json.loads(done.stdout) == {"agreement": 1.0, "bytes": 3}
    assert [each["tokenizer"] for each in calls] == [tokenizer]
