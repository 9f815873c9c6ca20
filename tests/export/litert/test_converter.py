"""Conversions in processes of their own: the merged file equals that of a single conversion."""

import functools
import sys

import numpy as np
import pytest
from litert_files import translator_of
from marks import long
from stand_in_files import described
from support import normal, small_config
from tensorflow.lite.tools import flatbuffer_utils

from keras_transformer import Transformer
from keras_transformer.decoding import Beam
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import convert as conversion
from keras_transformer.export.litert import stand_ins, tensorflow_converter
from keras_transformer.export.litert.merge import merge
from keras_transformer.export.litert.packed import make_signatures
from keras_transformer.export.litert.searches import LoopSearches

SIGNATURES = make_signatures([5], [2], 6, 6, 2, 1, None)  # greedy search and a beam


@pytest.fixture(scope="module")
def convert():
    """A function from a quantisation to the bytes of a file."""
    config = small_config(d_model=24, num_heads=2, num_layers=1, num_decoder_layers=1)
    model = Transformer(config)
    for number, weight in enumerate(model.weights):
        weight.assign(normal(*weight.shape, seed=number))
    searches = LoopSearches(Beam(2))
    return functools.partial(
        conversion.convert, translator_of(model), SIGNATURES, searches=searches
    )


def in_this_process(folder, names, quantize):
    for name in names:
        place = folder / name
        content = tensorflow_converter.convert_saved_model(
            place / tensorflow_converter.MODEL, [name], quantize
        )
        (place / tensorflow_converter.RESULT).write_bytes(content)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("quantize", "apart"), [long("int8", False), ("none", True)])
def test_the_merged_file_equals_that_of_one_conversion(convert, quantize, apart, monkeypatch):
    monkeypatch.setattr(stand_ins, "SMALLEST", 64)
    expected = convert(quantize)
    monkeypatch.setattr(tensorflow_converter, "LARGE", 1)
    if not apart:
        monkeypatch.setattr(tensorflow_converter, "convert_apart", in_this_process)
    merged = convert(quantize)
    for ours, theirs in zip(described(merged), described(expected), strict=True):
        assert ours == theirs
    ours, theirs = (
        flatbuffer_utils.read_model_from_bytearray(bytearray(content))
        for content in (merged, expected)
    )
    assert {graph.name for graph in ours.subgraphs} >= {b"greedy_2x5", b"beam2_2x5"}
    assert len(ours.subgraphs) == len(theirs.subgraphs)
    assert len(ours.operatorCodes) == len(theirs.operatorCodes)
    assert ours.version == theirs.version and ours.description == theirs.description
    for name in ("min_runtime_version", "CONVERSION_METADATA"):
        assert (metadata(ours, name) is None) == (metadata(theirs, name) is None)
    name = "min_runtime_version"
    assert bytes(metadata(ours, name)) == bytes(metadata(theirs, name))


def metadata(model, name):
    places = [entry.buffer for entry in model.metadata or () if entry.name == name.encode()]
    return model.buffers[places[0]].data if places else None


def model_of(version, *constants):
    """Returns the bytes of a model without operators: constants `[N]` and a runtime version."""
    schema = flatbuffer_utils.schema_fb
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.operatorCodes = 3, []
    model.buffers, graph.tensors, graph.operators = [schema.BufferT()], [], []
    for constant in (*constants, np.frombuffer(version.ljust(16, b"\0"), np.uint8)):
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = constant.view(np.uint8)
    for number, constant in enumerate(constants):
        graph.tensors.append(schema.TensorT())
        graph.tensors[-1].buffer, graph.tensors[-1].shape = number + 1, list(constant.shape)
    graph.inputs, graph.outputs = [], []
    entry, signature = schema.MetadataT(), schema.SignatureDefT()
    entry.name, entry.buffer = "min_runtime_version", len(constants) + 1
    signature.signatureKey, signature.subgraphIndex = f"of {version.decode()}", 0
    signature.inputs, signature.outputs = [], []
    model.subgraphs, model.metadata, model.signatureDefs = [graph], [entry], [signature]
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def test_merged_models_share_constants_and_need_the_newest_runtime():
    rng = np.random.default_rng(1)
    large, other = rng.normal(size=(2, 2053)).astype("float32")
    small = rng.normal(size=3).astype("float32")
    contents = model_of(b"1.9.0", large, small), model_of(b"1.14.0", small, other, large)
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(merge(iter(contents))))
    assert bytes(metadata(model, "min_runtime_version")).rstrip(b"\0") == b"1.14.0"
    read = [[model.buffers[t.buffer].data for t in g.tensors] for g in model.subgraphs]
    expected = [[large, small], [small, other, large]]
    for constants, ours in zip(expected, read, strict=True):
        for constant, data in zip(constants, ours, strict=True):
            np.testing.assert_array_equal(data.view("float32"), constant)
    assert sum(len(b.data) for b in model.buffers if b.data is not None) < 2.1 * large.nbytes
    assert [s.subgraphIndex for s in model.signatureDefs] == [0, 1]


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        ("echo broken >&2; exit 3", ExportError, "converted greedy ended with 3; .*broken"),
        ("kill -9 $$", ExportError, "converted greedy ended with -9; .* not enough memory"),
        ("printf 'Some ops' > failure.txt; exit 1", RuntimeError, "Some ops"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Python is a shell script")
def test_failures_of_the_process_are_reported(program, error, message, tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(error, match=message):
        tensorflow_converter.convert_apart(tmp_path, ["greedy"], "none")
