"""Weights in int4: their values, the products and look-ups that read them, and what they cost."""

import json
import re
import zipfile

import keras
import numpy as np
import pipelines
import pytest
import tensorflow as tf
from exporting import asked
from litert_files import translator_of
from marks import long, slow_except
from searching import by_greedy
from support import normal, small_config
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer import Beam, Transformer
from keras_transformer.export import LiteRTOptions, export_litert
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import convert as conversion
from keras_transformer.export.litert.compact import store_once
from keras_transformer.export.litert.engines import load_interpreter
from keras_transformer.export.litert.int4 import Int4Rows, in_int4, store_in_int4
from keras_transformer.export.litert.packed import FixedSignature, make_signatures
from keras_transformer.export.litert.runtime import LiteRTTranslator
from keras_transformer.export.parity import copy_model
from keras_transformer.training.tuning.rounded_weights import RoundedWeights

pytest.importorskip("ai_edge_litert")

V, D, T = 29, 64, 5
TYPES = schema.TensorType
TOKENS = np.array([[3, 28, 0, 7, 3]], "int32")


def unpacked(content, shape):
    """Returns the numbers of a tensor in int4, one nibble at a time."""
    numbers = []
    for byte in map(int, content):
        for nibble in (byte % 16, byte // 16):
            numbers.append(nibble - 16 if nibble > 7 else nibble)
    return np.array(numbers).reshape(shape)


def read(content):
    """Returns the matrices in int4 of a .tflite model by their buffers, in float64."""
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    matrices = {}
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            if tensor.type != TYPES.INT4:
                continue
            quantization = tensor.quantization
            assert quantization.quantizedDimension == 0 and not any(quantization.zeroPoint)
            scales = np.array(quantization.scale, "float64")[:, None]
            codes = unpacked(model.buffers[tensor.buffer].data, tensor.shape)
            assert len(scales) == len(codes) == len(quantization.zeroPoint)
            matrices[tensor.buffer] = codes * scales
    return [*matrices.values()]


def in_int8(row):
    """Returns a row as the converter stores it in int8, in units of its largest number."""
    step = np.float32(max(np.abs(row.astype("float64")).max(), 0.5e-6) / 127)
    return np.array([np.copysign(np.floor(abs(x) / step + 0.5), x) for x in row]) * step


def test_every_row_has_the_scale_with_the_smallest_error():
    matrix = normal(7, 96).astype("float32") * np.linspace(0.01, 40, 7, dtype="float32")[:, None]
    matrix[2, 11] *= 20  # one number is much larger than the others
    matrix[3] = 0.0
    matrix[4] = -np.abs(matrix[4])
    stored = in_int4(matrix)
    codes = unpacked(stored.codes.ravel().tolist(), matrix.shape)
    gains = []
    for row, row_codes, scale in zip(matrix, codes, stored.scales, strict=True):
        values = in_int8(row).astype("float64")
        largest = np.abs(values).max() / 7 or 1.0
        error = np.square(row_codes * float(scale) - values).sum()
        for factor in np.linspace(0.06, 1, 95):
            rounded = np.clip(np.round(values / (factor * largest)), -7, 7)
            other = np.square(rounded * factor * largest - values).sum()
            assert error <= 1.01 * other + 1e-12
        gains.append(1 - error / max(other, 1e-12))  # over the scale of the largest number
    assert codes.min() == -7 and codes.max() == 7 and not codes[3].any()
    assert min(gains) >= 0 and np.median(gains) > 0.1


def converted(columns=D):
    """Returns a table, and a .tflite model that looks up its rows and multiplies with them."""
    table = keras.Variable(normal(V, columns) * np.linspace(0.1, 3, V)[:, None], dtype="float32")
    rows = Int4Rows([table])

    def run(tokens, x):
        return rows.look_up(table, tokens), tf.matmul(x, table.value, transpose_b=True)

    specs = [tf.TensorSpec(TOKENS.shape, tf.int32), tf.TensorSpec([T, columns], tf.float32)]
    function = tf.function(run, specs, autograph=False).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], function)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    return table.numpy(), converter.convert()


def run(content, x, kernels="AUTO"):
    """Returns the outputs of a model.

    Args:
        content: Its bytes.
        x: The states.
        kernels: `"AUTO"`: XNNPACK; another member of `OpResolverType` for kernels without it.
    """
    from ai_edge_litert.interpreter import OpResolverType

    kind = OpResolverType[kernels]
    interpreter = load_interpreter()(
        model_content=bytes(content), experimental_op_resolver_type=kind
    )
    interpreter.allocate_tensors()
    for details in interpreter.get_input_details():
        value = TOKENS if details["dtype"] == np.int32 else x
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    return sorted(outputs, key=lambda output: output.ndim)


KERNELS = ("AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF")


@pytest.mark.parametrize("columns", [D, 38])
def test_products_and_look_ups_read_the_same_numbers(columns):
    """With and without XNNPACK. The product also rounds its inputs to 255 steps."""
    table, content = converted(columns)
    content, x = store_once(store_in_int4(content)), normal(T, columns, seed=3).astype("float32")
    (matrix,) = read(content)
    assert 0.05 < np.abs(matrix - table).max() / np.abs(table).max() < 0.15
    exact = x.astype("float64") @ matrix.T
    steps = (x.max(axis=1, initial=0) - x.min(axis=1, initial=0)) / 255  # for each row
    limit = 0.51 * steps[:, None] * np.abs(matrix).sum(axis=1) + 1e-5
    assert (np.abs(exact - x @ table.T) > limit).any(), "or the test could not fail"
    for kernels in KERNELS:
        product, rows = run(content, x, kernels)
        np.testing.assert_array_equal(rows, matrix[TOKENS].astype("float32"), err_msg=kernels)
        assert (np.abs(product - exact) <= limit).all(), kernels
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    sizes = [len(buffer.data) for buffer in model.buffers if buffer.data is not None]
    assert [sizes.count(V * columns // 2), sizes.count(4 * V)] == [1, 1]
    assert max(sizes) == V * columns // 2, "the table has no other copy"


def test_matrices_with_the_same_codes_have_their_own_scales():
    """In int8, a matrix and its double have the same codes, which the converter stores once."""
    table, x = normal(V, D).astype("float32"), normal(T, D, seed=3).astype("float32")

    def products(tokens, x):
        single, double = (x @ tf.constant(factor * table.T) for factor in (1.0, 2.0))
        return tf.concat([single, double], axis=-1) + 0.0 * tf.cast(tf.reduce_max(tokens), x.dtype)

    specs = [tf.TensorSpec(TOKENS.shape, tf.int32), tf.TensorSpec([T, D], tf.float32)]
    function = tf.function(products, specs, autograph=False).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], function)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    (product,) = run(store_once(store_in_int4(converter.convert())), x)
    assert np.abs(product).max() > 1
    np.testing.assert_allclose(product[:, V:], 2 * product[:, :V], rtol=1e-5, atol=1e-5)


def test_an_odd_width_stays_in_int8():
    table, content = converted(columns=37)
    with pytest.raises(ExportError, match="int4 needs products with an even number of inputs"):
        store_in_int4(content)
    rows = run(content, normal(T, 37).astype("float32"))[1]
    np.testing.assert_allclose(rows, [[in_int8(table[n]) for n in TOKENS[0]]], rtol=1e-6)


def test_a_model_that_is_stored_once_computes_the_same():
    _, content = converted()
    content, x = store_in_int4(content), normal(T, D).astype("float32")
    once = store_once(content)
    assert len(once) < 0.9 * len(content) and store_once(once) == once
    for ours, theirs in zip(run(once, x), run(content, x), strict=True):
        np.testing.assert_array_equal(ours, theirs)


# One token: an error of the first one does not change what the others are computed from.
SIGNATURES = [FixedSignature("greedy_32x5", 32, 5, 1)]


@pytest.fixture(scope="module")
def pipeline():
    model = Transformer(small_config(vocab_size=101, d_model=64, num_heads=4, d_ff=80))
    for number, weight in enumerate(model.weights):
        weight.assign(normal(*weight.shape, seed=number) * 0.3)
    return translator_of(model)


def scores(content, path, source):
    path.write_bytes(content)
    interpreter = load_interpreter()(str(path))
    return interpreter.get_signature_runner("greedy_32x5")(source=source)["score"]


def with_stored(model, matrices, d_k):
    """Returns a copy of a model with the matrices of a file, and the paths of its changed weights.

    Args:
        model: The model in float32.
        matrices: Result of `read`.
        d_k: Size of a head; the converter multiplies the weights of queries by `d_k**-0.5`.
    """
    model, changed = copy_model(model), []
    for weight in model.weights:
        values = weight.numpy()
        for stored in (turned for matrix in matrices for turned in (matrix, matrix.T)):
            if stored.shape != values.shape:
                continue
            factor = min(1.0, d_k**0.5, key=lambda f: np.abs(f * stored - values).max())  # noqa: B023
            if np.square(factor * stored - values).mean() < 0.03 * np.square(values).mean():
                weight.assign(factor * stored)
                changed.append(weight.path)
    return model, changed


@pytest.mark.slow
def test_the_file_computes_with_the_numbers_that_it_stores(pipeline, tmp_path):
    """A float model with the weights of the file scores like it, as far as int8 can tell.

    Inputs of products are rounded to int8 in both files, so their errors are of the same size.
    """
    ours, theirs = (conversion.convert(pipeline, SIGNATURES, q) for q in ("int4", "int8"))
    model, changed = with_stored(pipeline.model, read(ours), d_k=5)
    kernels = [weight for weight in model.weights if weight.path.endswith("kernel")]
    large = [weight.path for weight in kernels if np.prod(weight.shape) >= 1024]
    unused = re.compile("decoder/.*/self_attention/(query|key)/")  # of a single position
    large = [path for path in large if not unused.match(path)]
    assert sorted(changed) == sorted([*large, model.embeddings[0].table.path])
    source = np.random.default_rng(0).integers(4, 101, (32, 5)).astype("int32")
    source[:, -1] = pipeline.source_tokenizer.eos_id
    found = [scores(content, tmp_path / "x.tflite", source) for content in (ours, theirs)]
    expected = [by_greedy(some, source, 1)[1] for some in (model, pipeline.model)]
    int4, int8 = (np.abs(a - b).mean() for a, b in zip(found, expected, strict=True))
    assert int4 < 1.5 * int8 and np.abs(found[0] - expected[1]).mean() > 4 * int4


@pytest.mark.slow
def test_a_file_stores_exactly_the_weights_that_training_rounded(pipeline):
    with RoundedWeights(pipeline.model, "int4").used():
        content = conversion.convert(pipeline, SIGNATURES, "int4")
        model, changed = with_stored(pipeline.model, read(content), d_k=5)
        trained = {weight.path: weight.numpy().copy() for weight in pipeline.model.weights}
    assert len(changed) > 10
    for weight in model.weights:
        if weight.path in changed:
            np.testing.assert_allclose(weight.numpy(), trained[weight.path], rtol=1e-5)


def interpreted(path, translator, rows, kernels):
    """Returns texts and scores of LiteRT's interpreter with some kernels: see `run`."""
    from ai_edge_litert.interpreter import OpResolverType

    kind = OpResolverType[kernels]
    interpreter = load_interpreter()(str(path), experimental_op_resolver_type=kind)
    translate, texts, scores = interpreter.get_signature_runner("greedy_1x20"), [], []
    for ids in rows:
        source = np.zeros((1, 20), "int32")
        source[0, : len(ids)] = ids
        outputs = translate(source=source)
        texts.append(translator.target_tokenizer.decode(outputs["tokens"])[0].numpy().decode())
        scores.append(outputs["score"][0])
    return texts, np.array(scores)


@pytest.mark.long
@pytest.mark.slow
def test_all_kernels_translate_with_the_numbers_that_the_file_stores(export, translator, sentences):
    """As the model in float does with these numbers, and not as with its own."""
    path, _ = export("int4")
    config = translator.model.config
    d_k = config.decoder.d_model // config.decoder.block.attention.num_heads
    model, changed = with_stored(translator.model, read(path.read_bytes()), d_k)
    assert len(changed) >= 10
    rows = translator.source_tokenizer.encode(sentences).to_list()
    sentences, rows = zip(
        *((text, ids) for text, ids in zip(sentences, rows, strict=True) if 1 < len(ids) <= 20),
        strict=True,
    )
    expected, others = (
        some.answer_batch([*sentences]) for some in (translator.with_model(model), translator)
    )
    assert len({output.text for output in expected}) > 25
    differences = []
    for kernels in KERNELS:
        texts, scores = interpreted(path, translator, rows, kernels)
        assert texts == [output.text for output in expected], kernels
        for outputs in (expected, others):
            differences.append(np.abs(scores - [output.score for output in outputs]).mean())
    assert max(differences[::2]) < 0.3 * min(differences[1::2])


@pytest.mark.long
@pytest.mark.slow
def test_a_file_of_phrases(export, translator, sentences):
    path, report = export("int4")
    assert report["score_loss"] < 0.2 and report["score_error"] < 0.2
    sizes = {quantize: export(quantize)[0].stat().st_size for quantize in ("int4", "int8")}
    assert sizes["int4"] < 0.8 * sizes["int8"]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {item.compress_type for item in archive.infolist()} == {zipfile.ZIP_DEFLATED}
        assert archive.read("tokenizer.model") == translator.source_tokenizer.model
        metadata = json.loads(archive.read("metadata.json"))
    assert metadata["quantize"] == "int4"
    assert metadata["agreement"]["score_loss"] == report["score_loss"]
    assert len({result.text for result in LiteRTTranslator(path).answer_batch(sentences)}) > 25


@pytest.mark.long
@pytest.mark.slow
def test_a_beam_and_batches_share_one_table(translator, sentences, tmp_path):
    path = tmp_path / "x.tflite"
    options = {"lengths": [16, 20], "batch_sizes": [1, 4], "search": Beam(3)}
    report = export_litert(translator, path, sentences, **asked(LiteRTOptions, "int4", **options))
    assert report["beam"]["score_error"] < 0.2
    table = translator.model.source_embedding.table
    assert sum(matrix.shape == table.shape for matrix in read(path.read_bytes())) == 1


@pytest.mark.slow
def test_loops_begin_with_zeros_that_are_not_stored(translator):
    signatures = make_signatures([20], [1], 20, 20, 3)
    content = conversion.convert(translator, signatures, "int4")
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    large = [b.data for b in model.buffers if b.data is not None and len(b.data) >= 1024]
    assert large and all(data.any() for data in large)


PICTURES = [np.full((4, 6, 1), 40 * number, "uint8") for number in range(4)]
KINDS = {
    "classifier": pipelines.LINES,
    "embedder": pipelines.LINES,
    "token_classifier": pipelines.LINES,
    "filler": ["a <mask> runs", "the <mask> dog"],
    "generator": pipelines.LINES,
    "summarizer": pipelines.LINES,
    "image_classifier": PICTURES,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", slow_except(KINDS, "image_classifier", mark=long))
def test_every_kind_of_model(kind, monkeypatch, tmp_path):
    monkeypatch.setattr(pipelines, "SIZES", {**pipelines.SIZES, "d_model": 64, "d_ff": 96})
    monkeypatch.setattr(pipelines, "translator", pipelines.translator.__wrapped__)
    pipeline, path = getattr(pipelines, kind).__wrapped__(), tmp_path / "x.tflite"
    errors = {}
    for quantize in ("int4", "int8"):
        report = export_litert(
            pipeline, path, KINDS[kind], LiteRTOptions(quantize, max_score_loss=100)
        )
        errors[quantize] = report["score_error"]
        assert len(read(path.read_bytes())) >= (6 if quantize == "int4" else 0)
    assert errors["int8"] < errors["int4"] < 0.3
