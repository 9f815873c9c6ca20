"""`keras-transformer distill`: its options become a `Distillation`; mistakes leave nothing."""

import pathlib

import pytest
from click.testing import CliRunner
from pipelines import translator

from keras_transformer import Beam, Greedy
from keras_transformer.cli.main import cli
from keras_transformer.pipelines import Run
from keras_transformer.training.distillation import distill as module

CONFIG = """
[model]
num_layers = 1
[data]
source = "text"
train_source = "a"
train_target = "a"
validation_source = "a"
validation_target = "a"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    (folder / "a").write_text("the cat\na dog\n")
    (folder / "student.toml").write_text(CONFIG)
    run = Run(folder / "teacher")
    run.path.mkdir()
    run.config.write_text('[data]\nsource = "none"\n[vocabulary]\nsize = 30\n')
    run.write_tokenizers(translator().tokenizers)
    translator().model.save(run.model)
    return folder


def call(folder, *arguments):
    words = [folder / "student.toml", *arguments]
    return CliRunner().invoke(cli, ["distill", *map(str, words)])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {"search": Beam(8)}),
        (
            ["--beam", 4, "--normalization", "average", "--max-output", 7, "--best-of", 3],
            {"search": Beam(4, normalization="average", max_length=7), "best_of": 3},
        ),
        (["--original", 0.5, "--batch-size", 7], {"original": 0.5, "batch_size": 7}),
        (["--vocabulary", "own"], {"own_vocabulary": True}),
        (["--word-level", 8], {"word_level": 8}),
        (
            ["--backward", "y", "--backward", "z", "--separate"],
            {"backward": (pathlib.Path("y"), pathlib.Path("z")), "separate": True},
        ),
    ],
)
def test_options_become_fields_of_a_distillation(folder, tmp_path, monkeypatch, words, expected):
    calls = []
    monkeypatch.setattr(module, "distill", lambda *arguments: calls.append(arguments))
    done = call(folder, folder / "teacher", "x", "--output", tmp_path / "run", *words)
    assert done.exit_code == 0, done.stderr
    ((settings, run, teachers, distillation),) = calls
    assert settings.model.num_layers == 1 and run == tmp_path / "run"
    assert [path.name for path in teachers] == ["teacher", "x"]
    assert distillation == module.Distillation(**expected)


@pytest.mark.parametrize(
    ("own", "words", "expected"),
    [
        (Beam(3, 1.0, "power", stopping="score"), [], Beam(3, 1.0, "power", stopping="score")),
        (Beam(3, 1.0, "power"), ["--beam", 5], Beam(5)),
        (Beam(3, 1.0, "power"), ["--stopping", "score"], Beam(8, stopping="score")),
        (Greedy(), [], Beam(8)),
    ],
)
def test_a_teacher_uses_its_own_beam(folder, tmp_path, monkeypatch, own, words, expected):
    calls, teacher = [], Run(tmp_path / "teacher")
    monkeypatch.setattr(module, "distill", lambda *arguments: calls.append(arguments))
    teacher.path.mkdir()
    teacher.write_search(own)
    done = call(folder, teacher.path, "--output", tmp_path / "run", *words)
    assert calls[0][3].search == expected
    assert ("by default" in done.stderr) == (expected == own)


def test_source_files_may_be_given_again(folder, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(module, "distill", lambda *arguments: calls.append(arguments))
    file = folder / "a"
    words = ["--monolingual", file, "--monolingual", file, "--set", "training.seed=3"]
    words += ["--monolingual-target", file]
    call(folder, "t", "--output", tmp_path / "run", *words)
    assert calls[0][3].monolingual == (file, file) and calls[0][0].training.seed == 3
    assert calls[0][3].monolingual_targets == (file,)


def test_mistakes_are_reported_in_one_line_and_leave_no_file(folder, tmp_path):
    teacher, run = folder / "teacher", tmp_path / "run"
    output = ["--output", run]
    cases = {
        (teacher,): "Missing option '--output'",
        (*output,): "Missing argument 'TEACHER...'",
        (folder / "x", *output): "x is not a finished run: config.toml is missing",
        (teacher, *output, "--best-of", 9): "--best-of 9 needs a beam of as many hypotheses",
        (
            teacher,
            *output,
            "--normalization",
            "none",
            "--length-penalty",
            1,
        ): "--length-penalty has no effect with --normalization none",
        (
            teacher,
            *output,
            "--monolingual-target",
            folder / "a",
        ): "--monolingual-target needs a backward",
        ("--backward", teacher, *output): "needs a vocabulary of its own (`--vocabulary own`)",
        (teacher, *output, "--word-level", 31): "--word-level must be at most 30, the size of the",
        (teacher, *output, "--separate"): "--separate has no effect: it needs two or more",
        (teacher, *output, "--original", 0): "Invalid value for '--original'",
        (teacher, *output, "--monolingual", folder / "x"): "x' does not exist",
        (teacher, *output, "--beam", 31): "--beam must be at most the vocabulary",
        (teacher, *output, "--set", "vocabulary.size=9"): "`vocabulary.size` is 30 there and 9",
        (teacher, *output, "--set", 'data.source="none"'): "data.train_source is not a setting",
    }
    for arguments, message in cases.items():
        done = call(folder, *arguments)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("2 sentences")]
        assert done.exit_code and len(lines) == 1 and message in lines[0], done.stderr
        assert not run.exists()
