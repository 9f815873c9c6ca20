"""`keras-transformer shortlist`: learns a file in Marian's format from a run's or other pairs."""

import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from pipelines import classifier, translator

from keras_transformer.cli.main import cli
from keras_transformer.decoding import Shortlist
from keras_transformer.pipelines import Run
from keras_transformer.tasks.shortlists import learn_shortlist

SOURCES = ["the big dog", "a cat and a dog", "runs", "the cat runs", "a cat"]
TARGETS = ["a cat runs", "the cat and the big dog", "a dog", "the cat", "the big dog"]
CONFIG = """
[task]
kind = "{kind}"
[data]
source = "text"
train_source = "{folder}/train.a"
train_target = "{folder}/train.b"
validation_source = "{folder}/train.a"
validation_target = "{folder}/train.b"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "train.a").write_text("\n".join(SOURCES) + "\n")
    (folder / "train.b").write_text("\n".join(TARGETS) + "\n")
    for kind, pipeline in {
        "translation": translator(),
        "classification": classifier(),
    }.items():
        run = Run(folder / kind)
        run.path.mkdir()
        run.config.write_text(CONFIG.format(kind=kind, folder=folder))
        run.write_tokenizers(pipeline.tokenizers)
        pipeline.model.save(run.model)
    return folder


def call(*arguments):
    return CliRunner().invoke(cli, ["shortlist", *map(str, arguments)])


def same(path, expected):
    assert path.read_bytes() == expected.to_bytes()
    assert len(expected.ids)


@pytest.mark.slow
def test_it_is_learned_from_the_training_data(folder, tmp_path):
    file = tmp_path / "new" / "lists" / "lex.bin"
    done = call(folder / "translation", file, "--first", 4, "--best", 2)
    assert done.exit_code == 0, done.stderr
    same(file, learn_shortlist(translator(), SOURCES, TARGETS, 4, 2))
    assert f"{file}: 5 pairs; " in done.stdout and "reading 5 pairs" in done.stderr


@pytest.mark.slow
def test_exchanged_pairs_are_not_among_those_of_a_run_in_both_directions(folder, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(folder / "translation", run)
    run.joinpath("config.toml").write_text(
        CONFIG.format(kind="translation", folder=folder) + "bidirectional = true\n"
    )
    done = call(run, tmp_path / "lex.bin", "--first", 4, "--best", 2)
    assert done.exit_code == 0, done.stderr
    same(tmp_path / "lex.bin", learn_shortlist(translator(), SOURCES, TARGETS, 4, 2))


@pytest.mark.slow
def test_a_sample_takes_pairs_at_equal_distances(folder, tmp_path, files=False):
    options = ["--source", folder / "train.a", "--target", folder / "train.b"] if files else []
    done = call(folder / "translation", tmp_path / "lex.bin", "--limit", 3, "--first", 4, *options)
    assert done.exit_code == 0, done.stderr
    expected = learn_shortlist(translator(), SOURCES[::2], TARGETS[::2], 4)
    same(tmp_path / "lex.bin", expected)
    assert np.array_equal(Shortlist.read(tmp_path / "lex.bin").ids, expected.ids)


def test_mistakes_are_reported_in_one_line_and_leave_no_file(folder, tmp_path):
    short = tmp_path / "short.b"
    short.write_text("a\n")
    (tmp_path / "none").write_text("")
    run, file = folder / "translation", tmp_path / "lex.bin"
    none = tmp_path / "none"
    cases = {
        (run, file, "--source", none): "--source and --target go together",
        (run, file, "--source", none, "--target", none): "none has no line to learn from",
        (
            run,
            file,
            "--source",
            folder / "train.a",
            "--target",
            tmp_path / "short.b",
        ): "short.b has 1",
        (run, file, "--first", 31): "--first must be at most the size of the vocabulary, 30",
        (tmp_path / "x", file): "is not a finished run",
        (folder / "classification", file): "a shortlist needs a model that generates",
        (run, tmp_path): "is a directory",
    }
    for arguments, message in cases.items():
        done = call(*arguments)
        lines = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]
        assert done.exit_code and len(lines) == 1 and message in lines[0], done.stderr
        assert not file.exists()
