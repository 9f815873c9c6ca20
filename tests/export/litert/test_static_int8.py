"""Static int8: ranges from real sentences, for the encoder and for the decoder's step."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf
from exporting import asked
from litert_files import codes_of, model_of, operators, tables
from searching import by_greedy
from support import listing
from tensorflow.lite.python import schema_py_generated as schema

from keras_transformer import Beam, Transformer, TransformerConfig, Translator
from keras_transformer.export import LiteRTOptions
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import calibration as calibrating
from keras_transformer.export.litert import convert as conversion
from keras_transformer.export.litert import generated
from keras_transformer.export.litert.calibration import calibrate, observed, products, share_outside
from keras_transformer.export.litert.export import export_litert
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.litert.static_int8 import finish_static_int8
from keras_transformer.export.litert.tensorflow_converter import convert_functions
from keras_transformer.export.parity import copy_model
from keras_transformer.layers.kernels import Kernels

pytest.importorskip("ai_edge_litert")

WRONG = {
    "another script": ["привет мир, как дела", "это предложение на русском языке", "今天天气很好"],
    "one character": ["aaaaaaaaaaaa", "aaaa aaaa", "a"],
    "one word": ["weeks weeks weeks weeks weeks"],
    "one phrase": ["in 3 days"],
}


@pytest.fixture(scope="module")
def ranges(translator, calibration):
    return calibrate(translator, calibration)


@pytest.mark.slow
def test_real_sentences_give_a_file_that_agrees(export, sentences):
    path, report = export("int8_static")
    assert abs(report["score_loss"]) <= 0.02 and report["score_error"] <= 0.02  # measured: 0.003
    assert (report["quantize"], report["sentences"]) == ("int8_static", len(sentences))
    assert report["bytes"] == path.stat().st_size < export("none")[0].stat().st_size


@pytest.mark.slow
def test_the_file_records_how_it_was_calibrated(export):
    path, report = export("int8_static")
    metadata = LiteRTTranslator(path).metadata
    assert metadata["quantize"] == "int8_static"
    assert metadata["calibration"] == report["calibration"]
    assert metadata["calibration"]["sentences"] == 200
    assert "smallest and largest" in metadata["calibration"]["ranges"]
    assert 0 <= metadata["calibration"]["outside"] < calibrating.MAX_OUTSIDE
    assert metadata["agreement"]["token_agreement"] == report["token_agreement"]
    assert json.loads(json.dumps(report)) == report
    assert "calibration" not in LiteRTTranslator(export("int8")[0]).metadata


@pytest.mark.slow
def test_a_wrong_calibration_fails(
    translator, sentences, tmp_path, monkeypatch, wrong="one phrase"
):
    monkeypatch.setattr(generated, "convert", None)  # it fails before converting
    with pytest.raises(ExportError, match="x.tflite: .* % of the activations .* lie out") as error:
        export_litert(
            translator,
            tmp_path / "x.tflite",
            sentences,
            LiteRTOptions("int8_static"),
            calibration=WRONG[wrong],
        )
    assert "\n" not in str(error.value)
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_ranges_that_clip_too_much_fail_the_agreement_check(
    translator, sentences, tmp_path, monkeypatch
):
    """The check is the one of every quantised file."""

    def narrow(translator, sentences):
        return {name: 0.25 * values for name, values in calibrate(translator, sentences).items()}

    monkeypatch.setattr(calibrating, "calibrate", narrow)
    monkeypatch.setattr(calibrating, "MAX_OUTSIDE", 1.0)
    options = {"calibration": sentences, "lengths": [20]}
    path = tmp_path / "x.tflite"
    with pytest.raises(
        ExportError, match="x.tflite: .* by .* per token, but at most 0.1 is allowed"
    ):
        export_litert(translator, path, sentences, **asked(LiteRTOptions, "int8_static", **options))
    assert listing(tmp_path) == []


@pytest.mark.long
@pytest.mark.slow
def test_the_steps_of_greedy_search_are_calibrated(translator, calibration):
    """Each sentence runs alone, with the loop itself and not with its result given in advance."""
    chosen = calibration[:4]
    names = {dense.path: name for name, dense in products(translator.model).items()}
    seen = {name: ([0.0], [0.0]) for name in names.values()}

    def watch(values):
        def watched(x):
            if tf.executing_eagerly():  # skips values computed while the model is built
                values.extend([x.numpy().min(), x.numpy().max()])
            return x

        return watched

    def dense(layer, x):
        return observed(layer, x, *(watch(values) for values in seen[names[layer.path]]))

    model = copy_model(translator.model, Kernels(dense=dense))
    for ids in translator.source_tokenizer.encode(chosen).to_list():
        tokens, _ = by_greedy(translator.model, [ids])
        length = int(np.count_nonzero(tokens[0]))
        by_greedy(model, [ids], max_length=length, cache_stages=())
    calibrated = calibrate(translator, chosen)
    assert len(calibrated) == 6 + 10
    for name, ranges_of_layer in calibrated.items():
        expected = [[min(values), max(values)] for values in seen[name]]
        np.testing.assert_allclose(ranges_of_layer, expected, atol=1e-4, err_msg=name)


@pytest.mark.slow
def test_the_share_outside_the_ranges(translator, calibration, ranges):
    assert share_outside(translator, calibration, ranges) == 0
    nothing = {name: np.zeros_like(values) for name, values in ranges.items()}
    # The output of a relu, about half of it zeros, and the input of the next layer.
    inner = 4 / (2 * len(ranges))
    assert 1 - 2 * inner < share_outside(translator, calibration, nothing) < 1 - 0.2 * inner


@pytest.mark.slow
def test_sentences_without_a_token_are_refused(translator):
    with pytest.raises(ValueError, match="None of the 2 sentences holds a token"):
        calibrate(translator, ["", "\u200b"])


class Graphs:
    """The graphs of a .tflite file: lists of operators with their names and tensors."""

    def __init__(self, content):
        self.model = schema.Model.GetRootAs(content, 0)
        self.graphs = [
            list(self._operators(self.model.Subgraphs(number)))
            for number in range(self.model.SubgraphsLength())
        ]

    def all(self, name):
        return [operator for graph in self.graphs for operator in graph if operator[0] == name]

    def _operators(self, graph):
        names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
        for operator in map(graph.Operators, range(graph.OperatorsLength())):
            code = self.model.OperatorCodes(operator.OpcodeIndex())
            name = names[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
            sides = (operator.InputsAsNumpy(), operator.OutputsAsNumpy())
            yield (name, *([graph.Tensors(n) for n in side if n >= 0] for side in sides))


def scales(tensor):
    quantization = tensor.Quantization()
    return [] if quantization is None else quantization.ScaleAsNumpy().tolist()


INT8, INT32, FLOAT32 = (getattr(schema.TensorType, dtype) for dtype in ("INT8", "INT32", "FLOAT32"))


def check_products(graphs, vocab_size, expected):
    """Checks that all products with weights are int8 x int8; returns the scales on both sides."""
    static = []
    for _, (x, weights, *bias), (y,) in graphs.all("FULLY_CONNECTED"):
        assert weights.Type() == INT8 and len(scales(weights)) == weights.Shape(0)
        if weights.Shape(0) == vocab_size:  # the logits are rounded when they are computed
            assert (x.Type(), y.Type()) == (FLOAT32, FLOAT32)
        else:
            assert (x.Type(), y.Type()) == (INT8, INT8)
            assert all(tensor.Type() == INT32 for tensor in bias)
            static.append((tuple(weights.ShapeAsNumpy()), *scales(x), *scales(y)))
    assert len(static) == expected
    for _, inputs, outputs in graphs.all("BATCH_MATMUL"):  # products within an attention
        assert {tensor.Type() for tensor in (*inputs, *outputs)} == {FLOAT32}
    assert all(outputs[0].Type() == FLOAT32 for _, _, outputs in graphs.all("SOFTMAX"))
    return static


@pytest.mark.slow
def test_products_are_int8_with_the_calibrated_ranges(export, ranges):
    """Each signature has a graph for the encoder and one for the step, with ranges of its own."""
    graphs = Graphs(model_of(export("int8_static")[0]))
    static = check_products(graphs, 130, 2 * (6 + 10))
    expected = {tuple((high - low) / 255 for low, high in inputs) for inputs in ranges.values()}
    assert len(expected) == 6 + 10
    measured = np.array(sorted({tuple(product[1:]) for product in static}))
    np.testing.assert_allclose(measured, np.array(sorted(expected)), rtol=1e-5)
    (x,), (y,) = next(operator[1:] for operator in graphs.graphs[0] if operator[0] == "QUANTIZE")
    low, high = ranges["encoder/block_0/self_attention/query"][0]
    np.testing.assert_allclose(scales(y), [(high - low) / 255], rtol=1e-5)
    assert x.Type() == FLOAT32


@pytest.mark.slow
def test_attention_weights_are_not_rounded(export):
    """The mask reads the output of the softmax in float32."""
    graphs = Graphs(model_of(export("int8_static")[0]))
    for graph in graphs.graphs:
        made = {id_of(outputs[0]) for name, _, outputs in graph if name == "SOFTMAX"}
        readers = [name for name, inputs, _ in graph if made & {id_of(tensor) for tensor in inputs}]
        assert readers.count("SELECT_V2") == len(made) == len(readers)
    assert len(graphs.all("SOFTMAX")) == 2 * 3


def id_of(tensor):
    return tensor._tab.Pos


@pytest.mark.slow
def test_builtin_operators_only_and_no_output_comes_from_a_loop(export):
    names, ends = operators(export("int8_static")[0])
    assert "WHILE" in names and "CUSTOM" not in names
    assert len(ends) == 8 and "WHILE" not in ends.values()


@pytest.mark.slow
def test_the_tied_table_is_stored_once_and_in_int8(export, translator):
    path, _ = export("int8_static")
    table = translator.model.source_embedding.table.numpy()
    assert tables(path, table.shape) == [codes_of(table).tobytes()]
    assert path.read_bytes().count(codes_of(table).tobytes()) == 1
    assert table.tobytes() not in path.read_bytes()


@pytest.mark.slow
def test_the_compiled_model_api_gives_the_same(export, translator, calibration):
    compiled_model = pytest.importorskip("ai_edge_litert.compiled_model")
    path, _ = export("int8_static")
    loaded = LiteRTTranslator(path)
    model = compiled_model.CompiledModel.from_file(str(path))
    names = model.get_signature_by_index(0)["outputs"]
    fitting = [
        ids for ids in translator.source_tokenizer.encode(calibration).to_list() if len(ids) <= 16
    ]
    for ids in fitting[:5]:
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        source = np.zeros((1, 16), np.int32)
        source[0, : len(ids)] = ids
        inputs[0].write(source)
        model.run_by_index(0, inputs, outputs)
        ours = outputs[names.index("tokens")].read(20, np.int32)
        expected, _ = loaded.decode([ids], loaded.signatures[0])
        np.testing.assert_array_equal(ours.ravel(), expected.ravel())


@pytest.mark.slow
@pytest.mark.long
def test_with_a_beam(translator, sentences, calibration, tmp_path):
    path = tmp_path / "x.tflite"
    options = {"calibration": calibration, "lengths": [20], "search": Beam(2)}
    report = export_litert(
        translator, path, sentences, **asked(LiteRTOptions, "int8_static", **options)
    )
    assert report["signatures"] == ["greedy_1x20", "beam2_1x20"]
    assert report["beam"]["token_agreement"] >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"tie": "none", "attention_bias": True, "position": "learned"}]
)
def test_every_kind_of_model_has_int8_products(tokenizer, changes):
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size,
        **{"num_layers": 1, "d_model": 8, "d_ff": 12, "num_heads": 2, "max_length": 6, **changes},
    )
    translator = Translator(Transformer(config), tokenizer)
    ranges = calibrate(translator, ["in 3 weeks", "after 5 days"])
    signatures = [FixedSignature("greedy_1x6", 1, 6, 6)]
    content = conversion.convert(translator, signatures, "int8_static", ranges)
    check_products(Graphs(content), tokenizer.vocab_size, 6 + 10)
    run = tf.lite.Interpreter(model_content=bytes(content)).get_signature_runner("greedy_1x6")
    assert run(source=np.array([[5, 6, 3, 0, 0, 0]], np.int32))["tokens"].shape == (1, 6)


def test_a_product_that_the_converter_left_in_float32_is_reported():
    """The converter does so in a loop if no value is rounded outside of the loop."""
    weights = tf.Variable(np.random.default_rng(0).normal(size=(32, 32)).astype("float32"))

    def rounded(x):
        return tf.quantization.fake_quant_with_min_max_args(x, -4.0, 4.0)

    def step(index, x):
        return index + 1, rounded(tf.matmul(rounded(x), weights))

    @tf.function(input_signature=[tf.TensorSpec([1, 32], tf.float32, name="x")])
    def run(x):
        return {"x": tf.maximum(tf.while_loop(lambda index, _: index < 5, step, [0, x])[1], -9.0)}

    model = types.SimpleNamespace(variables=[types.SimpleNamespace(value=weights)])
    functions = {"run": run.get_concrete_function()}
    content = convert_functions(model, functions, "int8_static")
    with pytest.raises(ExportError, match="converter left the product with .* in float32"):
        finish_static_int8(content)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"quantize": "int8_static"}, ValueError, "`calibration` must contain real .*: None"),
        (
            {"quantize": "int8_static", "calibration": ["", " "]},
            ValueError,
            "`calibration` must contain real sentences .* Received: 2 sentences",
        ),
        (
            {"quantize": "int8_static", "calibration": "in 3 weeks"},
            TypeError,
            "`calibration` must be a list of strings. Received: 'in 3 weeks'",
        ),
        (
            {"quantize": "int8", "calibration": ["in 3 weeks"]},
            ValueError,
            "`calibration` has no effect with quantize='int8'",
        ),
    ],
)
def test_wrong_arguments_are_refused(translator, tmp_path, arguments, error, message):
    with pytest.raises(error, match=message):
        export_litert(
            translator, tmp_path / "x.tflite", ["in 3 weeks"], **asked(LiteRTOptions, **arguments)
        )
    assert listing(tmp_path) == []
