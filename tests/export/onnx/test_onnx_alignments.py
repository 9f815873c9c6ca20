"""The attention that an .onnx file returns is that of the model."""

import numpy as np
import pytest
from click.testing import CliRunner
from onnx_files import PAD, inputs_of
from pipelines import LINES, generator, translator

import keras_transformer
from keras_transformer import Beam
from keras_transformer.cli.main import cli
from keras_transformer.export import OnnxOptions, export_onnx
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.opening.lines import LineFormat

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

HEAD = (0, 1)
ROWS = [[7, 9, 3], [3], [10, 1, 4, 8, 3]]


@pytest.fixture(
    scope="module",
    params=[None, pytest.param(Beam(3), marks=pytest.mark.slow)],
    ids=["greedy", "beam"],
)
def path(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("alignments") / "x.onnx"
    n_best = None if request.param is None else 2
    options = OnnxOptions(search=request.param, n_best=n_best, alignment=HEAD)
    export_onnx(translator(), path, LINES, options)
    return path


def attention(source, tokens):
    """The model's attention to a source while it reads given tokens, `[T, S]`."""
    layer, head = HEAD
    target = np.concatenate([[2], tokens[:-1]])[None].astype(np.int32)
    inputs = {"source": np.array(source, np.int32)[None], "target": target}
    weights = translator().model.attention_weights(inputs)
    return weights[f"decoder/block_{layer}/cross_attention"][0].numpy()[head]


def test_the_output_is_the_attention_of_the_model(path):
    """Each hypothesis has them, with zeros for the padding of the source and of the output."""
    model = OnnxModel(path)
    outputs = model.run(**inputs_of(model, ROWS, width=7, limit=11))
    tokens = outputs["tokens"].reshape(len(ROWS), -1, 11)  # [B, M, L]
    weights = outputs["alignment"].reshape(*tokens.shape, 7)  # [B, M, L, S]
    counted = 0
    for number, row in enumerate(ROWS):
        for found, rows in zip(tokens[number], weights[number], strict=True):
            length = np.count_nonzero(found != PAD)
            expected = attention(row, found[:length])
            np.testing.assert_allclose(rows[:length, : len(row)], expected, atol=1e-5)
            assert not rows[length:].any() and not rows[:, len(row) :].any()
            counted += length
    assert counted > 20


def test_alignments_are_those_of_the_run(path):
    loaded, pipeline = keras_transformer.open(path), translator().with_search(None)
    assert loaded.aligns
    if isinstance(loaded.search, Beam):  # of the best hypotheses
        assert [one.translation.text for one in loaded.align(LINES)] == loaded(LINES)
        return
    theirs = pipeline.align(LINES, *HEAD)
    for ours, wanted in zip(loaded.align(LINES), theirs, strict=True):
        assert (ours.source, ours.target) == (wanted.source, wanted.target)
        assert ours.translation.text == wanted.translation.text
        np.testing.assert_allclose(ours.weights, wanted.weights, atol=1e-5)
    done = CliRunner().invoke(
        cli, ["translate", str(path), "--alignments"], "".join(f"{line}\n" for line in LINES)
    )
    assert done.exit_code == 0, done.output
    form = LineFormat(alignments=True)
    assert done.stdout.splitlines() == [
        line for number, one in enumerate(theirs, 1) for line in form.lines(number, [one])
    ]


@pytest.mark.parametrize(
    ("alignment", "message"),
    [((5, 0), "`alignment` must be a pair of a decoder layer"), ((0, 2), "`alignment` must be")],
)
def test_a_head_that_the_model_does_not_have_is_refused(alignment, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_onnx(translator(), tmp_path / "x.onnx", LINES, OnnxOptions(alignment=alignment))


def test_a_model_without_a_source_has_no_alignment(tmp_path):
    with pytest.raises(ValueError, match="`alignment` has no effect on a model for language_mod"):
        export_onnx(generator(), tmp_path / "x.onnx", LINES, OnnxOptions(alignment=HEAD))
