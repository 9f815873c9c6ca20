"""Conversions through StableHLO: operators and loops against TensorFlow, tasks, and refusals."""

import subprocess
import sys

import numpy as np
import pipelines
import pytest
import tensorflow as tf
from exporting import asked
from litert_files import translator_of
from marks import long
from support import listing, normal, randomise, small_config
from task_samples import SAMPLES

import keras_transformer
from keras_transformer import Beam, Transformer
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import converters
from keras_transformer.export.litert.serialization import read_model, schema
from keras_transformer.installation import install_hint

pytest.importorskip("ai_edge_litert")


def converted(function, **arrays):
    """Returns the outputs of a function's .tflite model, by name, and its operators."""
    pytest.importorskip("litert_converter")
    from ai_edge_litert.interpreter import Interpreter

    specs = {name: tf.TensorSpec(a.shape, a.dtype, name=name) for name, a in arrays.items()}
    concrete = tf.function(function, autograph=False).get_concrete_function(**specs)
    content = bytes(converters.LITERT.convert([("f", concrete)], [], "none"))
    names = {value: name for name, value in vars(schema.BuiltinOperator).items()}
    operators = {names[code.builtinCode] for code in read_model(content).operatorCodes}
    return Interpreter(model_content=content).get_signature_runner("f")(**arrays), operators


def loop(limit, step, *state):
    return tf.while_loop(lambda i, *_: i < limit, step, (tf.constant(0), *state))[1:]


def of_a_loop(x, w):
    """Reads a constant, an input and a computed value from outside."""
    outside = tf.reduce_sum(w, axis=0)
    (y,) = loop(5, lambda i, y: (i + 1, tf.tanh(y @ w + outside) + tf.cast(i, tf.float32)), x)
    return {"y": y}


def of_nested_loops(x, w):
    """The inner loop reads the state of the outer one."""

    def outer(i, y):
        (z,) = loop(i + 2, lambda j, z: (j + 1, tf.sin(z @ w + y)), y)
        return i + 1, y + z

    return {"y": loop(3, outer, x)[0]}


def of_two_loops(x, w):
    (y,) = loop(2, lambda i, y: (i + 1, y @ w), x)
    (z,) = loop(3, lambda i, z: (i + 1, z - y), x)
    return {"y": y, "z": z}


def of_the_largest(x, w):
    """Values with and without their indices, of numbers and of integers."""
    values, places = tf.math.top_k(x, 3)
    whole = tf.cast(x * 10, tf.int32)
    return {
        "values": values,
        "places": places,
        "alone": tf.math.top_k(x @ w, 2)[0],
        "sorted": tf.sort(whole, direction="DESCENDING"),
        "order": -tf.math.top_k(-places, 3)[0],
    }


@pytest.mark.parametrize(
    "function",
    [of_a_loop, of_nested_loops, of_two_loops, of_the_largest],
    ids=lambda function: function.__name__,
)
def test_a_function_computes_what_tensorflow_does(function):
    x, w = normal(3, 4, seed=1), normal(4, 4, seed=2) / 2
    outputs, operators = converted(function, x=x, w=w)
    expected = function(tf.constant(x), tf.constant(w))
    assert outputs.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(outputs[name], value, rtol=2e-5, atol=2e-5)
    assert not {name for name in operators if name.startswith("STABLEHLO")}


def test_an_input_that_is_not_read_and_a_name_out_of_order_are_kept():
    def function(z, a):
        return {"last": a - 1.0, "first": a + 1.0}

    outputs, _ = converted(function, z=normal(2), a=normal(2, seed=5))
    np.testing.assert_allclose(outputs["first"] - outputs["last"], [2.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: {"y": tf.linalg.cholesky(x @ tf.transpose(x))}, "operator for .*cholesky"),
        (lambda x: {"y": tf.numpy_function(np.sin, [x], tf.float32)}, "XLA cannot compile f: .*"),
    ],
    ids=["Cholesky", "Python"],
)
def test_a_function_that_cannot_be_converted_is_refused_by_name(function, message):
    with pytest.raises(ExportError, match=message):
        converted(function, x=normal(2, 3))


@pytest.fixture(scope="module")
def small():
    """A translator with random weights."""
    options = {"vocab_size": 32, "num_layers": 1, "num_decoder_layers": 1, "max_length": 9}
    return translator_of(randomise(Transformer(small_config(**options))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantize": "int8"}, "converter 'litert' does not quantise; only 'tensorflow' does"),
        ({"tokenizer": True}, "take strings need the converter 'tensorflow'"),
        ({"converter": "tf2onnx"}, "`converter` must be .* Received: .*'tf2onnx'"),
    ],
)
def test_what_it_does_not_support_is_refused_before_any_work(small, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_litert(
            small,
            tmp_path / "x.tflite",
            ["a"],
            **asked(LiteRTOptions, **{"converter": "litert", **options}),
        )
    assert listing(tmp_path) == []


def test_without_its_package_the_export_is_refused(small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "litert_converter.mlir", None)
    with pytest.raises(ValueError) as error:
        export_litert(small, tmp_path / "x.tflite", ["a"], LiteRTOptions(converter="litert"))
    assert install_hint("converter") in str(error.value) and "\n" not in str(error.value)
    assert listing(tmp_path) == []


def test_tensorflow_without_tf_lite_changes_the_default(monkeypatch):
    assert converters.converter_of(LiteRTOptions()) is converters.TENSORFLOW
    monkeypatch.delattr(tf.lite, "TFLiteConverter")
    assert converters.default_converter() is converters.LITERT
    with pytest.raises(ValueError, match="does not quantise"):
        converters.converter_of(LiteRTOptions("int8"))


# Runs where TensorFlow has no `tf.lite`.
WITHOUT = """
import sys
import tensorflow as tf
for name in [name for name in sys.modules if name.startswith("tensorflow.lite")]:
    del sys.modules[name]
sys.modules["tensorflow.lite"] = sys.modules["tensorflow.lite.python"] = None
del tf.lite
import pipelines
from keras_transformer.export import export_litert
print(export_litert(pipelines.classifier(), sys.argv[1], pipelines.LINES)["agreement"])
"""


@pytest.mark.slow
def test_the_export_works_where_tensorflow_has_no_tf_lite(tmp_path):
    pytest.importorskip("litert_converter")
    path = tmp_path / "x.tflite"
    command = [sys.executable, "-c", WITHOUT, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd="tests", check=False)
    assert ended.returncode == 0 and ended.stdout.endswith("1.0\n"), ended.stderr
    assert path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("unrolled", [False, True])
def test_texts_are_those_of_the_run(unrolled, tmp_path):
    pytest.importorskip("litert_converter")
    pipeline, samples = pipelines.translator(), [*pipelines.LINES, ""]
    options = {"unrolled": True} if unrolled else {"search": Beam(3)}
    options = LiteRTOptions(converter="litert", **options)
    report = export_litert(pipeline, tmp_path / "x.tflite", samples, options)
    assert report["agreement"] == 1.0 and unrolled or report["beam"]["agreement"] == 1.0
    loaded = keras_transformer.open(tmp_path / "x.tflite")
    expected = pipeline(samples)
    assert loaded(samples) == expected and len(set(expected)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [long(make) for make in SAMPLES], ids=lambda make: make.__name__)
def test_answers_are_those_of_the_run(make, tmp_path):
    pytest.importorskip("litert_converter")
    pipeline, samples = make(), SAMPLES[make]
    options = LiteRTOptions(converter="litert")
    report = export_litert(pipeline, tmp_path / "x.tflite", samples, options)
    assert report["agreement"] == 1.0
    answers = keras_transformer.open(tmp_path / "x.tflite").answer(samples)
    expected, tolerance = pipeline.answer(samples), pipeline.codec.tolerance
    assert all(a.agrees(b, tolerance) for a, b in zip(expected, answers, strict=True))
    assert len({(str(answer), answer.text) for answer in expected}) > 1
