"""Files that this package did not write as .onnx, and models that it cannot write, are refused."""

import json
import sys

import pytest
from pipelines import LINES, classifier, translator

import keras_transformer
from keras_transformer import Beam
from keras_transformer.export import ExportError, OnnxOptions, export_onnx
from keras_transformer.export.onnx import export as exporting
from keras_transformer.export.onnx import packed
from keras_transformer.export.onnx.model import OnnxModel
from keras_transformer.export.onnx.runtime import OnnxTranslator
from keras_transformer.export.onnx.single_pass import OnnxSinglePass
from keras_transformer.opening.forms import form_of

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
METADATA = {"format": packed.FORMAT, "task": "classification", "quantize": "none"}
METADATA |= {"max_length": 11, "labels": ["bad", "good", "so so"]}


@pytest.fixture
def write(tmp_path):
    """A function that writes a file that returns its input, with some `metadata_props`."""

    def write(properties, tokenizers=None):
        tensor = onnx.helper.make_tensor_value_info("source", onnx.TensorProto.INT32, ["B", "S"])
        out = onnx.helper.make_tensor_value_info("label", onnx.TensorProto.INT32, ["B", "S"])
        node = onnx.helper.make_node("Identity", ["source"], ["label"])
        graph = onnx.helper.make_graph([node], "identity", [tensor], [out])
        opsets = [onnx.helper.make_opsetid("", 17)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
        if tokenizers is not None:
            packed.pack(model, tokenizers, METADATA)
        for name, value in properties.items():
            model.metadata_props.add(key=name, value=value)
        onnx.save(model, tmp_path / "x.onnx")
        return tmp_path / "x.onnx"

    return write


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "x.onnx was not written by `keras-transformer export onnx`: it contains no metadata"),
        ({"metadata.json": "{"}, "x.onnx is damaged: its metadata.json cannot be read"),
        ({"metadata.json": "{}"}, "x.onnx is damaged: its metadata.json cannot be read"),
        (
            {"metadata.json": json.dumps({**METADATA, "format": 9})},
            "x.onnx has format 9; this package reads format 1. Export it again.",
        ),
        (
            {"metadata.json": json.dumps({**METADATA, "task": "juggling"})},
            "x.onnx has the task 'juggling', which is unknown",
        ),
        (
            {"metadata.json": json.dumps({**METADATA, "max_length": None})},
            "x.onnx is damaged: its metadata.json cannot be read",
        ),
        ({"metadata.json": json.dumps(METADATA)}, "x.onnx is damaged: its vocabulary cannot be"),
        (
            {"metadata.json": json.dumps(METADATA), "tokenizer.model": "?"},
            "x.onnx is damaged: its vocabulary cannot be read",
        ),
    ],
)
def test_a_file_that_this_package_did_not_write_is_reported(write, properties, message):
    path = write(properties)
    assert form_of(path).name == "onnx"
    with pytest.raises(ValueError, match=message) as caught:
        keras_transformer.open(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_onnx_runtime_cannot_read_is_reported(tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(b"\x08no model")
    with pytest.raises(ValueError, match="x.onnx cannot be read by ONNX Runtime: ") as caught:
        keras_transformer.open(path)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_kind_of_model_is_reported(write):
    model = OnnxModel(write({}, classifier().tokenizers))
    assert OnnxSinglePass(model).task == "classification"
    with pytest.raises(ValueError, match="x.onnx holds a model for classification"):
        OnnxTranslator(model)


@pytest.mark.parametrize("number", [0, -1, 1.5])
def test_numbers_of_threads_are_positive_integers(write, number):
    with pytest.raises(ValueError, match="`num_threads` must be an integer of at least 1"):
        keras_transformer.open(write({}, classifier().tokenizers), num_threads=number)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    package, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"^ONNX files need the package {package} in version .* or newer. .*\[onnx\]"
    with pytest.raises(ValueError, match=message):
        export_onnx(classifier(), tmp_path / "x.onnx", LINES)


def test_predicting_does_not_need_the_package_that_writes(write, monkeypatch):
    path = write({}, classifier().tokenizers)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert keras_transformer.open(path).task == "classification"


def test_a_file_of_another_kind_is_not_replaced(tmp_path):
    path = tmp_path / "x.onnx"
    path.write_text("notes")
    with pytest.raises(ExportError, match="x.onnx exists and is not an .onnx file. It is not"):
        export_onnx(classifier(), path, LINES)
    assert path.read_text() == "notes"


def test_a_model_larger_than_a_file_can_be_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "LARGEST", 1000)
    message = (
        "x.onnx cannot be written: the weights need 0.0 GB in float32, and an .onnx file holds"
    )
    with pytest.raises(ExportError, match=message):
        export_onnx(classifier(), tmp_path / "x.onnx", LINES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": Beam(3, normalization="average")}, "`normalization` of a beam in an .onnx fil"),
        ({"search": Beam(2), "n_best": 3}, "`n_best` must be"),
        ({"n_best": 2}, "`n_best` needs a `Beam`"),
    ],
)
def test_a_search_that_a_file_cannot_hold_is_refused(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export_onnx(translator(), tmp_path / "x.onnx", LINES, OnnxOptions(**options))
    assert not list(tmp_path.iterdir())
