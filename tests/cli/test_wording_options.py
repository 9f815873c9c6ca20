"""Options of `translate` for words that outputs must or must not contain."""

import json

import pytest
from click.testing import CliRunner

from keras_transformer import Translator
from keras_transformer.cli.main import cli
from keras_transformer.opening.lines import LineFormat
from keras_transformer.pipelines import Translation


@pytest.fixture
def translate(tmp_path, monkeypatch):
    """A function that takes options, and returns the settings and what the command wrote."""
    settings = {}

    class Recorder(Translator):
        def __init__(self):
            pass

        @property
        def accepts(self):
            return Translator.accepts.fget(self)

        def with_settings(self, **given):
            settings.update(given)
            raise ValueError("stopped")

    monkeypatch.setattr("keras_transformer.tasks.open_run", lambda *_, **__: Recorder())
    (tmp_path / "config.toml").touch()
    for name, text in {"g.tsv": "dog\tHund\n", "b.txt": "Katze\n", "p.txt": "Der\n\n"}.items():
        (tmp_path / name).write_text(text)

    def run(*options):
        names = {name: str(tmp_path / name) for name in ("g.tsv", "b.txt", "p.txt")}
        options = [names.get(option, option) for option in options]
        done = CliRunner().invoke(cli, ["translate", str(tmp_path), *options], input="\n")
        return settings, done.stderr

    return run


@pytest.mark.parametrize(
    "options, settings",
    [
        (
            ["--glossary", "g.tsv", "--banned", "b.txt", "--token-scores"],
            {"glossary": {"dog": ("Hund",)}, "banned": ("Katze",), "token_scores": True},
        ),
        (["--prefix", "Der"], {"prefix": "Der"}),
        (["--prefixes", "p.txt"], {"prefix": ["Der", ""]}),
    ],
)
def test_options_are_settings(translate, options, settings):
    received, _ = translate(*options)
    assert received == settings


@pytest.mark.parametrize(
    "options, message",
    [
        (["--glossary", "g.tsv", "--greedy"], "--greedy has no effect with --glossary, which"),
        (["--glossary", "g.tsv", "--sample"], "--sample has no effect with --glossary, which"),
        (["--prefixes", "p.txt", "--prefix", "a"], "--prefix has no effect with --prefixes."),
        (["--banned", "b.txt", "--alignments"], "--banned has no effect with --alignments."),
        (["--glossary", "p.txt"], "line 1: a line of a glossary is a source term, a tab and"),
    ],
)
def test_options_without_effect_are_refused(translate, options, message):
    _, stderr = translate(*options)
    assert message in stderr


def test_token_scores_are_a_list_in_json():
    form = LineFormat(token_scores=True)
    result = Translation("a\tb", -1.5, False, token_scores=(('\u2581"a', -0.25), ("</s>", -1.25)))
    (line,) = form.lines(1, [result])
    text, scores = line.split("\t")
    assert text == "a b" and json.loads(scores) == [['\u2581"a', -0.25], ["</s>", -1.25]]
    assert form.lines(2, None) == ["\t[]"]
