"""Files in int8, and files in another implementation of ONNX."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from onnx_files import RIGHT, inputs_of
from onnx_functions import call, converted
from pipelines import LINES, classifier

import keras_transformer
from keras_transformer import Beam
from keras_transformer.decoding import Sample
from keras_transformer.export import ExportError, OnnxOptions, export_onnx
from keras_transformer.export.onnx.int8 import in_int8
from keras_transformer.export.onnx.model import OnnxModel

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def nodes_of(graph):
    """Yields the nodes of a graph and of its subgraphs."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from nodes_of(attribute.g)


def matrices(graph):
    """Returns the weights of a model with at least two axes, of more than one number each."""
    return [w for w in graph.initializer if len(w.dims) > 1 and np.prod(w.dims) > max(w.dims)]


@pytest.mark.slow
def test_weights_are_in_int8_also_inside_the_loop(translator, sentences, tmp_path):
    path = tmp_path / "x.onnx"
    report = export_onnx(translator, path, sentences, OnnxOptions("int8", search=Beam(3), n_best=2))
    assert report["quantize"] == "int8" and report["score_loss"] < 0.1
    model = onnx.load(path)
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    inside = [node.op_type for node in nodes_of(loop.attribute[0].g)]
    assert inside.count("MatMulInteger") >= 6
    kinds = collections.Counter()
    for weight in matrices(model.graph):
        kinds[weight.data_type] += int(np.prod(weight.dims))
    in_8_bits = kinds[onnx.TensorProto.INT8] + kinds[onnx.TensorProto.UINT8]
    assert in_8_bits > 20 * kinds[onnx.TensorProto.FLOAT]
    assert {opset.domain for opset in model.opset_import} <= {"", "ai.onnx"}
    loaded = keras_transformer.open(path)
    assert loaded.metadata["quantize"] == "int8"
    assert loaded("in 17 weeks") == translator("in 17 weeks")


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_every_row_of_a_table_has_its_own_scale(in_a_loop):
    table = np.random.default_rng(2).normal(size=(6, 50)).astype("float32")
    table *= np.array([[1], [100], [0.01], [1], [1e-4], [0]], "float32")

    def rows(places):
        if not in_a_loop:
            return tf.gather(tf.constant(table), places)
        beginning = 0, tf.zeros([tf.shape(places)[0], 50])
        return tf.while_loop(
            lambda index, x: index < 2,
            lambda index, x: (index + 1, tf.gather(tf.constant(table), places + 0 * index)),
            beginning,
        )[1]

    places = np.arange(6, dtype="int32")
    model = in_int8(converted(rows, [places]))
    assert not [w for w in matrices(model.graph) if w.data_type == onnx.TensorProto.FLOAT]
    errors = np.abs(call(rows, [places], model) - table).max(1)
    assert (errors <= 0.51 * np.abs(table).max(1) / 127).all() and errors.any()


@pytest.mark.slow
def test_a_classifier_in_int8_keeps_its_limits(tmp_path):
    options = OnnxOptions("int8", max_score_loss=0.3)
    report = export_onnx(classifier(), tmp_path / "x.onnx", LINES, options)
    assert 0 < report["score_error"] < 0.3
    message = "the scores of the answers are off by .* at most 1e-06 is allowed"
    with pytest.raises(ExportError, match=message):
        options = OnnxOptions("int8", max_score_loss=1e-6)
        export_onnx(classifier(), tmp_path / "y.onnx", LINES, options)
    assert not (tmp_path / "y.onnx").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "search",
    [None, Beam(3), pytest.param(Sample(), marks=pytest.mark.long)],
    ids=["greedy", "beam", "sample"],
)
def test_the_reference_implementation_returns_the_same(search, light, tmp_path):
    path = tmp_path / "x.onnx"
    export_onnx(light, path, ["in 3 weeks", "after 7 days"], OnnxOptions(search=search))
    model = OnnxModel(path)
    inputs = inputs_of(model, RIGHT, limit=16)
    expected = model.run(**inputs)
    reference = pytest.importorskip("onnx.reference")
    outputs = reference.ReferenceEvaluator(str(path)).run([*expected], inputs)
    for array, wanted in zip(outputs, expected.values(), strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-4)
