"""`keras-transformer neighbors` with models of images and of texts, and what it refuses."""

import math

import keras
import numpy as np
import pipelines
import pytest
from click.testing import CliRunner

from keras_transformer.cli.main import cli
from keras_transformer.pipelines import NearestNeighbors

TEXTS = ["a cat runs", "the big dog", "a dog and a cat"]
LABELS = ["small", "big", "small"]


def command(*arguments, data=b"", code=0):
    done = CliRunner().invoke(cli, ["neighbors", *map(str, arguments)], input=data)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return pipelines.write_run(pipelines.embedder(), tmp_path_factory.mktemp("texts") / "run")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    run = pipelines.write_run(pipelines.image_embedder(), folder / "run")
    rng = np.random.default_rng(0)
    for number, label in enumerate(["b", "a", "b", "a"]):
        path = folder / "examples" / label / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        keras.utils.save_img(path, rng.integers(0, 255, (4, 6, 1)), scale=False)
    return run


def test_texts_get_the_labels_of_their_neighbors(texts, tmp_path):
    examples = tmp_path / "examples.tsv"
    examples.write_text(
        "".join(f"{text}\t{label}\n" for text, label in zip(TEXTS, LABELS, strict=True))
    )
    lines = "the big dog runs\n\na cat and a dog\n"
    embedder = pipelines.embedder()
    nearest = NearestNeighbors(embedder.embed(TEXTS), LABELS, 2, 0.5)
    one, other = nearest.classify(embedder.embed(["the big dog runs", "a cat and a dog"]))
    options = ("--neighbors", 2, "--temperature", 0.5)
    assert command(texts, examples, *options, data=lines.encode()).split("\n") == [
        one.label, "", other.label, ""
    ]  # fmt: skip
    scored = command(texts, examples, *options, "--scores", data=lines.encode())
    scores = [row.split("\t")[0] for row in scored.splitlines()]
    assert float(scores[0]) == pytest.approx(math.log(one.probability), abs=1e-4)


def test_images_get_the_labels_of_folders(images):
    """Each example is its own nearest neighbour; a file that cannot be read has no label."""
    folder = images.parent / "examples"
    paths = sorted(folder.glob("*/*.png"))
    lines = "".join(f"{path}\n" for path in [*paths, "missing.png"])
    output = command(images, folder, "--neighbors", 1, data=lines.encode())
    assert output.splitlines() == ["a", "a", "b", "b", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a cat\n", "line 1: must have a text, a tab and a label. Received: 1 columns."),
        ("a\tb\na\t \n", "line 2: must have a text, a tab and a label."),
        ("", "must have at least one line with a text, a tab and a label"),
    ],
)
def test_examples_that_are_none_are_named(content, message, texts, tmp_path):
    (tmp_path / "examples.tsv").write_text(content)
    assert message in command(texts, tmp_path / "examples.tsv", code=1)


def test_what_does_not_fit_the_model_is_refused(texts, images, tmp_path):
    (tmp_path / "examples.tsv").write_text("a\tb\n")
    assert "is not a folder" in command(images, tmp_path / "examples.tsv", code=2)
    assert "is a folder: MODEL reads texts" in command(texts, tmp_path, code=2)
    assert "must contain a folder for each label" in command(images, tmp_path, code=1)
    other = pipelines.write_run(pipelines.classifier(), tmp_path / "run")
    error = command(other, tmp_path / "examples.tsv", code=1)
    assert "answers are vectors" in error and "for classification" in error
