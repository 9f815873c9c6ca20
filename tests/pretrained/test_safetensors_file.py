"""Files of tensors that are damaged, truncated, or malicious."""

import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from keras_transformer.pretrained.files.safetensors_files import SafetensorsFile

TENSORS = {
    "a": np.arange(6, dtype="float32").reshape(2, 3),
    "b": np.array([1.5, -2], "float16"),
    "c": np.array(0.25, ml_dtypes.bfloat16),
    "nothing": np.zeros((0, 3), "float32"),
}


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write(path, header, data=b"", length=None):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(content) if length is None else length
    path.write_bytes(length.to_bytes(8, "little") + content + data)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def test_every_type_is_read_as_float32(path):
    safetensors.numpy.save_file(TENSORS, path, metadata={"format": "pt"})
    file = SafetensorsFile(path)
    assert file.shapes == {name: values.shape for name, values in TENSORS.items()}
    assert file.types == {"a": "F32", "b": "F16", "c": "BF16", "nothing": "F32"}
    for name, values in TENSORS.items():
        assert file.read(name).dtype == "float32"
        np.testing.assert_array_equal(file.read(name), values.astype("float32"))
    with pytest.raises(ValueError, match=r"the tensor d is missing\."):
        file.read("d")


@pytest.mark.parametrize("kept", [0, 7, 8, 60, -1])
def test_a_truncated_file_is_reported(kept, path):
    safetensors.numpy.save_file(TENSORS, path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        SafetensorsFile(path)


HUGE = 2**62
HOSTILE = {
    "header longer than the file": ({}, b"", HUGE, "its header must fit into"),
    "no JSON": (b"{nothing", b"", None, "its header is not a table of tensors"),
    "a list": ([1], b"", None, "its header is not a table of tensors"),
    "entries that are no tables": ({"a": 3}, b"", None, "its header is not a table of tensors"),
    "deep JSON": (b"[" * 100_000, b"", None, "its header is not a table of tensors"),
    "no shape": ({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, b"1234", None, "not a table"),
    "another type": ({"a": entry([1], 0, 8, "F64")}, b"12345678", None, "Received: a of 'F64'"),
    "a type that is a list": ({"a": entry([1], 0, 4, [])}, b"1234", None, "not a table"),
    "negative sizes": ({"a": entry([-1, -1], 0, 4)}, b"1234", None, "at least 0"),
    "sizes that are no integers": ({"a": entry([1.0], 0, 4)}, b"1234", None, "whole numbers"),
    "a size that is true": ({"a": entry([True], 0, 4)}, b"1234", None, "whole numbers"),
    "a huge shape": ({"a": entry([HUGE, HUGE], 0, 4)}, b"1234", None, "as many bytes as its"),
    "a huge place": ({"a": entry([HUGE], 0, 4 * HUGE)}, b"1234", None, "ends after the file's 4"),
    "overlapping places": (
        {"a": entry([2], 0, 8), "b": entry([1], 4, 8)}, b"12345678", None, "b overlaps another",
    ),
    "a gap": (
        {"a": entry([1], 0, 4), "b": entry([1], 8, 12)}, b"1" * 12, None, "b leaves a gap before",
    ),
    "bytes of no tensor": ({"a": entry([1], 0, 4)}, b"12345678", None, "4 bytes at its end belong"),
    "a name twice": (
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, '
        b'"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}',
        b"12345678", None, "a leaves a gap before it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_malicious_header_is_refused_in_one_line(kind, path):
    header, data, length, message = HOSTILE[kind]
    write(path, header, data, length)
    with pytest.raises(ValueError, match=message) as error:
        SafetensorsFile(path)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))
    assert len(str(error.value)) < 400
