"""An .onnx file draws the tokens that the pipeline in memory draws for the same seeds."""

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from onnx_files import PAD, RIGHT, batch_of
from pipelines import LINES, generator, write_run
from pipelines import translator as small_translator

import keras_transformer
from keras_transformer import Beam, Greedy
from keras_transformer.cli.main import cli
from keras_transformer.decoding import Sample, SearchOptions
from keras_transformer.export import OnnxOptions, export_onnx
from keras_transformer.export.onnx.model import OnnxModel

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

HELD = Sample(temperature=1.5, seed=4)
OTHERS = [
    HELD,
    Sample(temperature=3.0, top_k=5, seed=-(2**31)),
    Sample(temperature=2.0, top_p=0.9, seed=2**31 - 1, max_length=4),
    Sample(temperature=2.0, min_p=0.2, repetition_penalty=3.0, seed=8),
    Sample(temperature=0.0),
]
CONFIG = """
[data]
source = "text"
train = "train.tsv"
validation = "train.tsv"
test = "train.tsv"
"""
PIPELINES = {"translator": small_translator, "language model": generator}


@pytest.fixture(
    scope="module",
    params=["translator", pytest.param("language model", marks=pytest.mark.slow)],
)
def exported(request, tmp_path_factory):
    """A pipeline, the path of its file, and the report."""
    pipeline = PIPELINES[request.param]()
    path = tmp_path_factory.mktemp("samples") / "x.onnx"
    return pipeline, path, export_onnx(pipeline, path, LINES, OnnxOptions(search=HELD))


def run_command(*words):
    """The output of a command."""
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def sources(pipeline, count):
    ids = pipeline.source_tokenizer.encode(LINES).to_list()
    rows = [row for row in ids if len(row) <= 9]
    return (rows * count)[:count]


def inputs_of(rows, sample, numbers):
    """The inputs that the documentation describes, written independently of the package."""
    count, longest = len(rows), max(map(len, rows))
    limit = 2**30 if sample.max_length is None else sample.max_length
    return {
        "source": batch_of(rows, longest),
        "seed": np.array([[sample.seed, number] for number in numbers], np.int32),
        "temperature": np.full(count, sample.temperature, np.float32),
        "top_k": np.full(count, sample.top_k, np.int32),
        "top_p": np.full(count, sample.top_p, np.float32),
        "min_p": np.full(count, sample.min_p, np.float32),
        "repetition_penalty": np.full(count, sample.repetition_penalty, np.float32),
        "max_length": np.full(count, limit, np.int32),
    }


def drawn(model, rows, sample, numbers):
    return model.run(**inputs_of(rows, sample, numbers))


def test_the_tokens_are_those_of_the_pipeline_for_the_same_seeds(exported):
    """Also for extreme seeds and numbers, and for other settings than those of the file."""
    pipeline, path, _ = exported
    model, rows = OnnxModel(path), sources(pipeline, 6)
    numbers = [0, 1, 2**31 - 1, -(2**31), -1, 7]
    source = batch_of(rows, max(map(len, rows)))
    options = SearchOptions(cache_length=pipeline.max_length)

    @tf.function(autograph=False)
    def draw(*values):
        return HELD.with_values(values)(pipeline.model, source, options)

    for sample in OTHERS:
        pairs = zip(sample.values(numbers), sample.inputs, strict=True)
        expected = draw(*(tf.cast(value, spec.dtype) for value, spec in pairs))
        outputs = drawn(model, rows, sample, numbers)
        np.testing.assert_array_equal(outputs["tokens"], expected.tokens[:, 0])
        np.testing.assert_allclose(outputs["score"], expected.scores[:, 0], atol=1e-4)
        np.testing.assert_array_equal(outputs["length"], (outputs["tokens"] != PAD).sum(-1))
        for number, row in enumerate(rows):  # the seed decides, not the place in a batch
            alone = drawn(model, [row], sample, numbers[number : number + 1])
            np.testing.assert_array_equal(alone["tokens"][0], outputs["tokens"][number])


def test_every_row_has_its_own_settings(exported):
    pipeline, path, _ = exported
    model, rows = OnnxModel(path), sources(pipeline, len(OTHERS))
    each = [inputs_of(rows, sample, range(len(rows))) for sample in OTHERS]
    mixed = {name: np.stack([one[name][n] for n, one in enumerate(each)]) for name in each[0]}
    outputs = model.run(**mixed)
    for number, one in enumerate(each):
        tokens = model.run(**one)["tokens"][number]
        np.testing.assert_array_equal(outputs["tokens"][number], tokens)


def test_an_opened_file_answers_as_the_pipeline(exported):
    pipeline, path, report = exported
    assert report["agreement"] == 1.0 and report["other_hypotheses"] == 0
    loaded = keras_transformer.open(path)
    assert loaded.search == HELD and loaded(LINES) == pipeline(LINES, HELD)
    other = Sample(2.5, seed=8)
    assert loaded(LINES, other) == pipeline(LINES, other)
    assert loaded(LINES, other, batch_size=2) == loaded(LINES, other)
    numbers = [5, 3, 2**31 - 1, *range(len(LINES) - 3)]
    expected = pipeline.answer(LINES, other, numbers=numbers)
    found = loaded.answer(LINES, other, numbers=numbers)
    assert [one.text for one in found] == [one.text for one in expected]
    assert loaded.answer(LINES[1], other, numbers=[3]).text == expected[1].text
    with pytest.raises(ValueError, match="`numbers` must have one number for each sentence"):
        loaded.answer(LINES, other, numbers=[1])
    for search, option in ((Greedy(), "--greedy"), (Beam(2), "--beam 2")):
        with pytest.raises(
            ValueError, match=f"was exported for sampling only. Export it again with {option}"
        ):
            loaded.with_search(search)


@pytest.mark.slow
def test_a_quantised_file_is_measured_without_chance(tmp_path):
    """Its losses are those of a file with greedy search, at any temperature."""
    reports = [
        export_onnx(small_translator(), tmp_path / "x.onnx", LINES, OnnxOptions("int8", search=one))
        for one in (Greedy(), Sample(temperature=9.0))
    ]
    for name in ("score_loss", "score_error", "token_agreement"):
        np.testing.assert_allclose(reports[1][name], reports[0][name], atol=1e-5)
    assert keras_transformer.open(tmp_path / "x.onnx").search == Sample(temperature=9.0)


@pytest.mark.slow
def test_the_command_line_exports_and_draws(tmp_path):
    run, path = tmp_path / "run", tmp_path / "x.onnx"
    pipeline = small_translator()
    write_run(pipeline, run, CONFIG)
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    sampling = "--sample", "--temperature", "2", "--seed", "3"
    run_command("export", "onnx", run, path, *sampling, "--sentences", tmp_path / "in.txt")
    loaded = keras_transformer.open(path)
    assert loaded.search == Sample(temperature=2.0, seed=3)
    for options, sample in (
        ((), loaded.search),
        (("--sample", "--seed", "9"), Sample(temperature=2.0, seed=9)),
        (("--sample", "--top-k", 2, "--max-output", 4), Sample(2.0, 2, seed=3, max_length=4)),
    ):
        lines = run_command("translate", path, "--input", tmp_path / "in.txt", *options)
        assert lines.splitlines() == pipeline(LINES, sample)


def test_invalid_rows_draw_nothing(exported):
    pipeline, path, _ = exported
    rows = [[7, -1, 3], *RIGHT]
    outputs = drawn(OnnxModel(path), rows, HELD, range(len(rows)))
    assert (outputs["tokens"][0] == PAD).all() and outputs["length"][0] == 0
    assert outputs["score"][0] == np.float32(-1e9) and (outputs["length"][1:] > 0).any()
