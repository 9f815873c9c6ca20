"""Files that the page of `examples/browser` cannot use, each reported in one line."""

import os
import zipfile

import pytest
from browsers import open_blank

from keras_transformer.export.onnx.packed import FORMAT, pack
from keras_transformer.text.tokenizers import Tokenizers

SUFFIXES = (".tflite", ".onnx")
TITLES = {".tflite": "LiteRT.js", ".onnx": "ONNX Runtime Web"}
COMMANDS = {".tflite": "export litert", ".onnx": "export onnx"}
both_formats = pytest.mark.parametrize("suffix", SUFFIXES)


def write_onnx(path, **properties):
    """Writes a model without a graph, which has metadata."""
    onnx = pytest.importorskip("onnx")
    model = onnx.ModelProto(ir_version=10, producer_name="keras_transformer")
    for name, value in properties.items():
        model.metadata_props.add(key=name, value=value)
    path.write_bytes(model.SerializeToString())


@both_formats
def test_a_missing_model(browser, suffix):
    status = browser.open(f"?model=other{suffix}")
    assert status == (
        f"There is no model at {browser.address}/other{suffix} (404). Write it with: "
        f"keras-transformer {COMMANDS[suffix]} RUN examples/browser/other{suffix}"
    )
    assert browser.evaluate("document.getElementById('translate').disabled")


@both_formats
def test_another_file(browser, site, suffix):
    (site / f"text{suffix}").write_bytes(b"something else" * 9)
    status = browser.open(f"?model=text{suffix}")
    address, command = f"{browser.address}/text{suffix}", f"keras-transformer {COMMANDS[suffix]}"
    assert status == f"{address} was not written by `{command}`: it contains no vocabulary."


def test_an_onnx_file_of_another_program(browser, site):
    """It is recognised without its name."""
    write_onnx(site / "other.bin", author="somebody")
    status = browser.open("?model=other.bin")
    address = f"{browser.address}/other.bin"
    assert status.startswith(f"{address} was not written by `keras-transformer export onnx`: it")


def test_a_file_of_an_unknown_kind(browser, site):
    (site / "text.bin").write_bytes(b"something else" * 9)
    status = browser.open("?model=text.bin")
    address = f"{browser.address}/text.bin"
    assert status == f"{address} is not a file that this page can read: .tflite or .onnx."


@both_formats
def test_a_file_of_another_format(browser, site, suffix):
    path = site / f"old{suffix}"
    members = {"tokenizer.model": "eA==", "metadata.json": '{"format": 0}'}
    if suffix == ".onnx":
        write_onnx(path, **members)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    status = browser.open(f"?model={path.name}")
    reads = {".tflite": 3, ".onnx": 1}[suffix]
    address = f"{browser.address}/{path.name}"
    assert status == f"{address} has format 0; this page reads format {reads}."


def test_a_damaged_tflite_file(browser, site, export):
    content = bytearray(export("none")[0].read_bytes())
    content[:2000] = b"\xff" * 2000
    (site / "damaged.tflite").write_bytes(content)
    status = browser.open("?model=damaged.tflite")
    assert status.startswith(f"LiteRT.js cannot read {browser.address}/damaged.tflite: ")


def test_a_damaged_onnx_file(browser, site, tokenizer):
    """One has metadata and a vocabulary, but no graph; of the other one only a half is there."""
    model = pytest.importorskip("onnx").ModelProto(ir_version=10)
    pack(model, Tokenizers.of(tokenizer), {"format": FORMAT})
    content = model.SerializeToString()
    (site / "damaged.onnx").write_bytes(content)
    status = browser.open("?model=damaged.onnx")
    assert status.startswith(f"ONNX Runtime Web cannot read {browser.address}/damaged.onnx: ")
    (site / "half.onnx").write_bytes(content[: len(content) // 2])
    status = browser.open("?model=half.onnx")
    assert status == f"{browser.address}/half.onnx is damaged: its contents cannot be read."


@both_formats
def test_a_missing_runtime(browser, site, suffix):
    (site / f"text{suffix}").write_bytes(b"something else" * 9)
    browser.call("Network.clearBrowserCache")
    os.rename(site / "node_modules", site / "elsewhere")
    try:
        # The files may arrive in any order.
        seen = {browser.open(f"?model=text{suffix}") for _ in range(5)}
    finally:
        os.rename(site / "elsewhere", site / "node_modules")
    advice = "run `npm install` in the folder of this page"
    assert seen == {f"{TITLES[suffix]} is missing or damaged: {advice}."}


@both_formats
def test_no_other_package_is_loaded(browser, site, suffix):
    (site / f"text{suffix}").write_bytes(b"something else" * 9)
    open_blank(browser, site)
    code = f"""import("./model.js").then(({{ loadModel }}) => loadModel("text{suffix}"))
        .catch(() => performance.getEntriesByType("resource").map(({{ name }}) => name))"""
    packages = [name for name in browser.evaluate(code) if "node_modules" in name]
    folder = {".tflite": "/@litertjs/", ".onnx": "/onnxruntime-web/"}[suffix]
    assert packages and all(folder in name for name in packages), packages
