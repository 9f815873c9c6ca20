"""`predict` with bad lines: a warning and an empty answer for each, in every task alike."""

import io

import keras
import numpy as np
import pytest
from click.testing import CliRunner
from pipelines import answerer, image_classifier, translator, write_run

from keras_transformer.cli.main import cli
from keras_transformer.opening.stream import answer_stream
from keras_transformer.tasks.time_series.lines import SeriesLines

QUESTIONS = ["a cat\tthe big dog runs", "a big cat", "a dog\ta cat and a dog"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        pipeline.task: write_run(pipeline, folder / pipeline.task)
        for pipeline in (answerer(), image_classifier(), translator())
    }


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Paths of good and bad images: missing, truncated, of another size, and not an image."""
    folder, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(4)
    for name in "abcd":
        pixels = rng.integers(0, 256, (4, 6, 1))
        keras.utils.save_img(folder / f"{name}.png", pixels, scale=False)
    keras.utils.save_img(folder / "large.png", np.zeros((5, 6, 1)), scale=False)
    (folder / "cut.png").write_bytes((folder / "a.png").read_bytes()[:40])
    (folder / "text.png").write_text("no image")
    names = ["a", "missing", "b", "large", "", "cut", "c", "text", "d"]
    return [str(folder / f"{name}.png") if name else "" for name in names]


BAD_IMAGES = [
    (2, "missing.png: cannot be read: No such file or directory"),
    (4, "large.png: must have height x width x channels of 4 x 6 x 1. Received: 5 x 6 x 1"),
    (6, "cut.png: is not a readable PNG or JPEG image"),
    (8, "text.png: is not a readable PNG or JPEG image"),
]


def call(*arguments, lines):
    data = b"".join(line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines)
    return CliRunner().invoke(cli, ["predict", *map(str, arguments)], input=data)


def test_a_bad_image_does_not_affect_the_other_answers(runs, images, batch_size=64):
    done = call(runs["image_classification"], "--batch-size", batch_size, lines=images)
    assert done.exit_code == 0, done.output
    good = iter(image_classifier()([images[place] for place in (0, 2, 6, 8)]))
    expected = [next(good) if place in (0, 2, 6, 8) else "" for place in range(len(images))]
    assert done.stdout.splitlines() == expected
    folder = images[0].removesuffix("a.png")
    assert done.stderr.splitlines() == [
        f"Warning: line {number}: {folder}{text}; left empty" for number, text in BAD_IMAGES
    ]


@pytest.mark.slow
def test_a_bad_image_gets_the_fields_of_an_empty_line(runs, images):
    lines = call(runs["image_classification"], "--scores", lines=images[:2]).stdout.splitlines()
    assert lines[0].endswith(f"\t{image_classifier()(images[:1])[0]}") and lines[1] == "0.00000\t"


@pytest.mark.slow
def test_strict_writes_the_labels_before_the_first_bad_image(runs, images):
    lines = [images[0], images[2], images[5], images[1]]
    done = call(runs["image_classification"], "--strict", lines=lines)
    assert done.exit_code == 1
    assert done.stdout.splitlines() == image_classifier()(lines[:2])
    message = f"Error: line 3: {images[5]}: is not a readable PNG or JPEG image.\n"
    assert done.stderr == message


@pytest.mark.slow
def test_strict_leaves_no_output_file(runs, images, tmp_path):
    file = tmp_path / "labels.txt"
    arguments = runs["image_classification"], "--output", file
    assert call(*arguments, "--strict", lines=images).exit_code == 1
    assert list(tmp_path.iterdir()) == []
    assert call(*arguments, lines=images).exit_code == 0
    assert len(file.read_text().splitlines()) == len(images)


@pytest.mark.slow
def test_a_line_without_a_passage_does_not_affect_the_other_answers(runs):
    lines = [*QUESTIONS, b"a \xff\tcat\n", QUESTIONS[0]]
    done = call(runs["question_answering"], lines=lines)
    assert done.exit_code == 0, done.output
    first, last = answerer()([tuple(QUESTIONS[place].split("\t")) for place in (0, 2)])
    assert done.stdout.splitlines() == [first, "", last, "", first]
    assert done.stderr.splitlines() == [
        "Warning: line 2: must be a question, a tab and a passage. Received: no tab; left empty",
        "Warning: line 4: not UTF-8 (byte 0xff at position 3); left empty",
    ]


@pytest.mark.slow
def test_a_bad_pair_is_not_scored(runs, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"a cat\n\xff\na dog\n")
    target.write_bytes(b"dog\ncat\nthe dog\n")
    arguments = ["score", str(runs["translation"]), "--source", str(source), "--target", target]
    done = CliRunner().invoke(cli, [*map(str, arguments)])
    first, last = translator().score(["a cat", "a dog"], ["dog", "the dog"])
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [int(tokens) for _, tokens in rows] == [first.tokens, 0, last.tokens]
    scores = [float(score) for score, _ in rows]
    np.testing.assert_allclose(scores, [first.score, 0, last.score], atol=2e-5)
    reason = f"line 2: {source} is not UTF-8 (byte 0xff at position 1)"
    assert (done.exit_code, done.stderr) == (0, f"Warning: {reason}; not scored\n")
    done = CliRunner().invoke(cli, [*map(str, arguments), "--strict"])
    assert (done.exit_code, done.stderr) == (1, f"Error: {reason}.\n")
    assert done.stdout.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--alignments", "--scores"]])
def test_a_bad_line_gets_the_fields_of_an_empty_line(runs, options):
    bad, empty = (
        call(runs["translation"], *options, lines=["a cat", line, "dog"])
        for line in (b"\xff\n", "")
    )
    assert bad.exit_code == empty.exit_code == 0
    assert bad.stdout == empty.stdout != ""
    warnings = bad.stderr.splitlines(keepends=True)
    others = [warning for warning in warnings if "left empty" not in warning]
    assert (len(warnings) - len(others), "".join(others)) == (1, empty.stderr)


def test_a_bad_line_of_a_series_is_always_an_error():
    """`--strict` makes no difference; bad values in a column that is not read do not matter."""

    class Sums:
        num_inputs = 1

        def extend(self, rows):
            return np.sum(rows, axis=1)

    def answer(data):
        target = io.BytesIO()
        lines = SeriesLines(Sums(), ["rain"], "flow")
        answer_stream(lines, io.BytesIO(data), target, pytest.fail)
        return target.getvalue()

    assert answer(b"place,rain\nK\xf6ln,1\nBonn,2\n") == b"flow\n1\n2\n"
    with pytest.raises(ValueError, match=r"line 3: rain must be UTF-8\. Received: b'\\xb2'"):
        answer(b"place,rain\nBonn,1\nBonn,\xb2\n")
    with pytest.raises(ValueError, match="line 2: must have 2 columns"):
        answer(b"place,rain\n\xff\nBonn,1\n")
