"""Every task as an .onnx file: the answers of the run, alone and in a batch."""

import numpy as np
import pipelines
import pytest
from task_samples import GENERATORS, SAMPLES

import keras_transformer
from keras_transformer.export import OnnxOptions, export_onnx

pytestmark = pytest.mark.slow
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("make", SAMPLES, ids=lambda make: make.__name__)
def test_answers_in_one_pass(make, tmp_path):
    pipeline, samples = make(), SAMPLES[make]
    report = export_onnx(pipeline, tmp_path / "x.onnx", samples)
    assert report["agreement"] == 1.0
    loaded = keras_transformer.open(tmp_path / "x.onnx")
    expected, tolerance = pipeline.answer(samples), pipeline.codec.tolerance
    for batch_size in (1, 64):
        answers = loaded.answer(samples, batch_size=batch_size)
        assert all(a.agrees(b, tolerance) for a, b in zip(expected, answers, strict=True))
        assert max(a.gap(b) for a, b in zip(expected, answers, strict=True)) < tolerance
    assert len({(str(answer), answer.text) for answer in expected}) > 1


@pytest.mark.parametrize("make", GENERATORS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", ["greedy", "beam"])
def test_generated_texts(make, kind, tmp_path):
    pipeline, samples = make(), [*pipelines.LINES, ""]
    search = GENERATORS[make] if kind == "beam" else pipeline.search
    n = 2 if kind == "beam" else 1
    options = OnnxOptions(search=search, n_best=n if kind == "beam" else None)
    report = export_onnx(pipeline, tmp_path / "x.onnx", samples, options)
    assert report["agreement"] == 1.0
    loaded = keras_transformer.open(tmp_path / "x.onnx")
    expected = pipeline.n_best(samples, n, search)
    assert len({row[0].text for row in expected}) > 1
    for batch_size in (1, 64):
        rows = loaded.n_best(samples, n, batch_size=batch_size)
        texts = [[[one.text for one in row] for row in side] for side in (rows, expected)]
        assert texts[0] == texts[1]
        scores = [[one.score for row in side for one in row] for side in (rows, expected)]
        np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)
