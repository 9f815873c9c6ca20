"""Weights that are not in the graphs during a conversion: the file is the same as with them."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from litert_files import translator_of
from stand_in_files import described
from support import normal, small_config
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer import Transformer
from keras_transformer.export.litert import convert as conversion
from keras_transformer.export.litert import stand_ins
from keras_transformer.export.litert.converters import TENSORFLOW
from keras_transformer.export.litert.packed import FixedSignature
from keras_transformer.export.litert.stored_weights import Unrecognized, Uses
from keras_transformer.layers.kernels import Kernels

SIGNATURES = [FixedSignature("greedy_2x5", 2, 5, 6)]


@pytest.fixture(scope="module")
def pipeline():
    model = Transformer(small_config(vocab_size=101, d_model=24, num_heads=2, num_decoder_layers=1))
    for number, weight in enumerate(model.weights):
        weight.assign(normal(*weight.shape, seed=number))
    same = [w for w in model.weights if w.path.endswith("self_attention/key/kernel")]
    same[0].assign(same[1].value)  # stored once
    factors = np.ones((101, 1))
    factors[7:10] = [[0.0], [1e-9], [1e-40]]  # numbers as small as those of neurons without use
    model.embeddings[0].table.assign(normal(101, 24) * factors)
    return translator_of(model)


@pytest.fixture(scope="module")
def theirs(pipeline):
    """A function that returns the file that the converter writes without stand-ins."""
    return functools.cache(functools.partial(without_stand_ins, pipeline))


def without_stand_ins(pipeline, quantize):
    converter = dataclasses.replace(TENSORFLOW, stand_ins=((),))
    return described(conversion.convert(pipeline, SIGNATURES, quantize, converter=converter))


@pytest.fixture
def tried(monkeypatch):
    """The numbers of weights with stand-ins, one for each conversion."""
    numbers = []

    class Counted(stand_ins.StandIns):
        def __init__(self, *args):
            super().__init__(*args)
            numbers.append(len(self.paths))

    monkeypatch.setattr(stand_ins, "SMALLEST", 64)
    monkeypatch.setattr(conversion, "StandIns", Counted)
    return numbers


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["int8", "int4"])
def test_the_file_equals_the_one_that_the_converter_writes(pipeline, quantize, theirs, tried):
    """The scale of the attention scores, which is no power of 2, is part of query kernels."""
    ours = described(conversion.convert(pipeline, SIGNATURES, quantize))
    assert tried == [17]  # a table, 6 kernels of the encoder, 10 of the decoder
    for one, other in zip(ours, theirs(quantize), strict=True):
        assert one == other


@pytest.mark.slow
def test_tables_that_only_look_ups_read_have_stand_ins(tried, quantize="int4"):
    """A model with tables of source and target, beside output weights of their own."""
    sizes = {"vocab_size": 101, "d_model": 24, "num_heads": 2, "num_decoder_layers": 1}
    model = Transformer(small_config(**sizes, target_vocab_size=101, tie="none"))
    for number, weight in enumerate(model.weights):
        weight.assign(normal(*weight.shape, seed=number))
    pipeline = translator_of(model)
    ours = described(conversion.convert(pipeline, SIGNATURES, quantize))
    assert tried == [19]
    for one, other in zip(ours, without_stand_ins(pipeline, quantize), strict=True):
        assert one == other


@pytest.mark.slow
def test_norms_without_an_offset_do_not_change_the_weights_after_them(tried):
    """The table of a T5 or a Llama, whose last norm has no offset, is stored once."""
    model = Transformer(
        small_config(
            vocab_size=101,
            d_model=24,
            num_heads=2,
            num_decoder_layers=1,
            norm="pre",
            normalization="rms",
        )
    )
    for number, weight in enumerate(model.weights):
        weight.assign(normal(*weight.shape, seed=number))
    content = conversion.convert(translator_of(model), SIGNATURES, "int8")
    assert tried == [17]
    buffers = flatbuffer_utils.read_model_from_bytearray(bytearray(content)).buffers
    sizes = [len(buffer.data) for buffer in buffers if buffer.data is not None]
    assert sizes.count(101 * 24) == 1


@pytest.mark.parametrize(
    ("computed", "in_advance"),
    [
        (lambda dense, x: dense(tf.ones([2, 24])) + x[0, 0], True),
        (lambda dense, x: dense(tf.fill([tf.shape(x)[0], 24], 0.5)) * x[0, 0], True),
        (lambda dense, x: dense(x + tf.ones([2, 24])), False),
        (lambda dense, x: dense(x) + tf.matmul(tf.ones([2, 1]), tf.ones([1, 10])), False),
    ],
)
def test_nothing_is_computed_with_the_constants_in_place_of_weights(
    computed, in_advance, pipeline, tried
):
    """The converter would compute it in advance, and the file would contain wrong numbers."""
    ins = stand_ins.StandIns(pipeline.model, "none")
    copy = ins.copy(pipeline.model, Kernels())
    dense = next(layer for layer in copy._flatten_layers() if layer.name == "query")
    function = tf.function(ins.within(lambda x: computed(dense, x)), autograph=False)
    function = function.get_concrete_function(tf.TensorSpec([2, 24]))
    assert stand_ins.computes_in_advance(function.graph) == in_advance
    ins.note(function)
    if in_advance:
        with pytest.raises(Unrecognized):
            ins.replace(b"")


@pytest.mark.slow
def test_a_weight_that_is_not_found_is_converted_as_a_variable(
    pipeline, theirs, tried, monkeypatch
):
    found = Uses._find

    def find(uses, tensor):
        use = found(uses, tensor)
        path = "" if use is None else use[0].variable.path
        return None if path.endswith("cross_attention/query/kernel") else use

    expected = theirs("none")
    tried.clear()
    monkeypatch.setattr(Uses, "_find", find)
    assert described(conversion.convert(pipeline, SIGNATURES, "none")) == expected
    assert tried == [17, 0]
