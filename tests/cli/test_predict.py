"""`predict` and `evaluate` of classifiers and language models, and options that do not apply."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from pipelines import LABELS, answerer, classifier, embedder, generator, write_run

from keras_transformer import Beam
from keras_transformer.cli.main import cli
from keras_transformer.decoding import Sample
from keras_transformer.pipelines import Run

LINES = ["a cat", "", "the big dog runs", "dog", "   "]
TEXT_LINES = [line for line in LINES if line.strip()]
CONFIG = """
[task]
kind = "{kind}"

[data]
source = "text"
train = "../{kind}.tsv"
validation = "../{kind}.tsv"
test = "../{kind}.tsv"
"""
TEXTS = {
    "classification": "a cat\tbad\nthe big dog\tgood\ndog\tso so\n",
    "language_modelling": "a cat runs\nthe big dog\n",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of finished runs of each kind, with untrained models."""
    folder, made = tmp_path_factory.mktemp("runs"), {}
    for pipeline in (classifier(), generator()):
        kind = pipeline.task
        (folder / f"{kind}.tsv").write_text(TEXTS[kind])
        made[kind] = run = Run(folder / kind)
        run.path.mkdir()
        run.config.write_text(CONFIG.format(kind=kind))
        run.write_tokenizers(pipeline.tokenizers)
        pipeline.model.save(run.model)
    return {kind: run.path for kind, run in made.items()}


def call(*arguments, lines=LINES):
    data = "".join(f"{line}\n" for line in lines)
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=data)


def output(*arguments, **options):
    done = call(*arguments, **options)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def error(status, *arguments):
    """Returns the error line of a failing command, which must print nothing else."""
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (status, ""), done.output
    (line,) = done.stderr.splitlines()
    return line


# Predict


def test_a_classifier_writes_a_label_for_each_line(runs, command="translate"):
    """An empty line stays empty."""
    labels = classifier()(TEXT_LINES)
    assert len(set(labels)) > 1
    expected = [labels[0], "", labels[1], labels[2], ""]
    assert output(command, runs["classification"]) == expected
    assert output(command, runs["classification"], "--batch-size", 1) == expected


def test_the_score_of_a_label_is_its_log_probability(runs):
    rows = [line.split("\t") for line in output("predict", runs["classification"], "--scores")]
    results = iter(classifier().classify(TEXT_LINES))
    for line, (score, label) in zip(LINES, rows, strict=True):
        if line.strip():
            result = next(results)
            assert label == result.label
            assert float(score) == pytest.approx(np.log(result.probability), abs=1e-5)
        else:
            assert (score, label) == ("0.00000", "")


@pytest.mark.slow
def test_a_truncated_text_is_reported(runs):
    lines = ["dog", "the big dog and the cat and a dog and the big cat runs"]
    for kind in runs:
        done = call("predict", runs[kind], lines=lines)
        assert done.exit_code == 0 and done.stdout.count("\n") == 2
        assert "line 2: longer than the model's limit; its end was cut off" in done.stderr
        assert "line 1: longer" not in done.stderr
    lines = output("predict", runs["classification"], "--max-length", 3, lines=["a big dog"])
    assert lines[0] in LABELS


@pytest.mark.slow
def test_a_language_model_continues_each_line(runs):
    """An empty line is the beginning of any text and is continued as well."""
    texts = output("predict", runs["language_modelling"])
    assert texts == generator()(LINES) and len(set(texts)) > 2
    assert all(text.startswith(line.strip()) for line, text in zip(LINES, texts, strict=True))
    assert texts[1] != ""


@pytest.mark.long
@pytest.mark.slow
def test_every_search_reaches_a_language_model(runs):
    run = runs["language_modelling"]
    assert output("predict", run, "--beam", 3) == generator()(LINES, Beam(3))
    sample = Sample(temperature=2.0, seed=3)
    options = "--sample", "--temperature", 2, "--seed", 3
    assert output("predict", run, *options) == generator()(LINES, sample)
    expected = [
        f"{number}\t{result.score:.5f}\t{result.text}"
        for number, results in enumerate(generator().n_best(LINES, 2), start=1)
        for result in results
    ]
    assert output("predict", run, "--n-best", 2) == expected


@pytest.mark.parametrize(
    "options",
    [
        ["--beam", 4],
        ["--sample"],
        ["--n-best", 2],
        ["--alignments"],
        ["--beam", 2, "--min-length", 2],
    ],
)
def test_a_search_does_not_apply_to_a_classifier(runs, options):
    line = error(2, "predict", runs["classification"], *options)
    message = f"has no effect on {runs['classification']}, a run for classification."
    assert line == f"Error: {options[0]} {message}"


@pytest.mark.long
@pytest.mark.slow
def test_settings_of_answers_are_options(tmp_path):
    embeddings = write_run(embedder(), tmp_path / "embedding")
    short = embedder().with_settings(dimensions=2)
    assert output("predict", embeddings, "--dimensions", 2, lines=LINES[:1]) == short(LINES[:1])
    line = error(1, "predict", embeddings, "--dimensions", 6)
    assert "`dimensions` must be between 1 and the model's 5. Received: dimensions=6" in line
    line = error(2, "predict", embeddings, "--no-answer")
    assert line == f"Error: --no-answer has no effect on {embeddings}, a run for embedding."
    questions = write_run(answerer(), tmp_path / "answering")
    pair = ("the dog", "a cat, and a dog.")
    for switch, value in (("--no-answer", True), ("--always-answer", False)):
        expected = answerer().with_settings(no_answer=value)([pair])
        assert output("predict", questions, switch, lines=["\t".join(pair)]) == expected


@pytest.mark.parametrize("option", [["--no-answer"], ["--dimensions", 3]])
def test_settings_of_answers_do_not_apply_to_other_tasks(runs, option):
    for kind in runs:
        line = error(2, "predict", runs[kind], *option)
        assert line == f"Error: {option[0]} has no effect on {runs[kind]}, a run for {kind}."


def test_alignments_do_not_apply_to_a_language_model(runs):
    run = runs["language_modelling"]
    line = error(2, "predict", run, "--alignments")
    assert line == f"Error: --alignments has no effect on {run}, a run for language_modelling."


def test_translation_commands_name_the_kind_of_run_they_got(runs, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("dog\n")
    for kind, name in (("classification", "TextClassifier"), ("language_modelling", "LanguageMod")):
        line = error(1, "score", runs[kind], "--source", file, "--target", file)
        assert f"must hold a Transformer. Received: a {name}" in line


# Evaluate


@pytest.mark.slow
def test_a_classifier_is_evaluated_on_its_data_and_on_files(runs, tmp_path):
    run = runs["classification"]
    texts, labels = zip(*(line.split("\t") for line in TEXTS[run.name].splitlines()), strict=True)
    answers = classifier()(list(texts))
    right = sum(map(str.__eq__, answers, labels))
    figures = json.loads("".join(output("evaluate", run)))
    assert figures["accuracy"] == pytest.approx(100 * right / 3)
    assert set(figures) == {"accuracy", "macro_f1", "texts", "truncated", "seconds"}
    kept = json.loads(Run(run).metrics.read_text())
    assert kept == {
        **{name: value for name, value in figures.items() if name != "seconds"},
        "test_seconds": figures["seconds"],
    }
    (tmp_path / "texts").write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "labels").write_text("".join(f"{label}\n" for label in labels))
    files = "--source", tmp_path / "texts", "--reference", tmp_path / "labels"
    again = json.loads("".join(output("evaluate", run, *files)))
    assert {**again, "seconds": 0} == {**figures, "seconds": 0}


@pytest.mark.slow
def test_a_language_model_is_evaluated_on_its_data_and_on_a_file(runs):
    run = runs["language_modelling"]
    figures = json.loads("".join(output("evaluate", run, "--split", "validation")))
    scores = generator().score(TEXTS[run.name].splitlines())
    mean = sum(score.score for score in scores) / sum(score.tokens for score in scores)
    assert figures["perplexity"] == pytest.approx(np.exp(-mean), rel=1e-5)
    again = json.loads("".join(output("evaluate", run, "--source", f"{run}.tsv")))
    assert {**again, "seconds": 0} == {**figures, "seconds": 0}


@pytest.mark.parametrize(
    "options",
    [["--beam", 4], ["--tokenize", "intl"], ["--lowercase"], ["--beam", 4, "--length-penalty", 1]],
)
def test_translation_options_do_not_apply(runs, options):
    for kind, run in runs.items():
        line = error(2, "evaluate", run, *options)
        assert line == f"Error: {options[0]} has no effect on {run}, a run for {kind}."


def test_an_unknown_label_and_a_missing_file_are_reported_in_one_line(runs, tmp_path):
    (tmp_path / "texts").write_text("a cat\ndog\n")
    (tmp_path / "labels").write_text("good\nawful\n")
    run, files = runs["classification"], ["--source", tmp_path / "texts"]
    line = error(1, "evaluate", run, *files, "--reference", tmp_path / "labels")
    message = "labels, line 2: the label must be one of those in the training data, bad, good, so"
    assert message in line
    assert "Received: 'awful'." in line
    line = error(1, "evaluate", run, *files)
    assert "whose data have text and label: evaluation needs two files." in line
    line = error(1, "evaluate", runs["language_modelling"], *files, "--reference", files[1])
    assert "whose data have text: evaluation needs one file." in line
    (tmp_path / "labels").write_text("good\n")
    line = error(1, "evaluate", run, *files, "--reference", tmp_path / "labels")
    assert "texts has 2 lines, " in line and "labels has 1" in line
