"""Files of PyTorch's weights: read exactly, and never run."""

import base64
import collections
import os
import pickle
import random
import subprocess
import sys
import warnings
import zipfile
import zlib

import numpy as np
import pytest
import pytorch_files as pytorch

from keras_transformer.pretrained.files import torch_files
from keras_transformer.pretrained.files.torch_files import TorchFile

# Written by PyTorch 2.14, compressed with zlib: `torch.save` of the tensors below, the same with
# `_use_new_zipfile_serialization=False`, and of `dict(torch.nn.Linear(2, 1).named_parameters())`
# with the weights 1 and 2 and the bias 3.
WRITTEN = {
    "new": (
        "eNqllt9v21QUx2/s/CLrr9Gta2EtgwJNYE3jxHFTtpLMDAvJSLThh6K+BDdxGwvX7nFuNkBCqgSttLeBxCtC4ok/"
        "gIF4QBX/wDTEI2/TNHjaG8/ce52kvm7arvS2rhXnfr7ne27OOc2KLkYRSibRoTWKxtHGp3XHvL3QNLCR3f7E1tRR"
        "tMavHeELQOlahAAGRBrY9RqtbL2DLbudqnvmeseym3VsOm3Xq9/Kp0BIp2sJsrlNdhqbJog+ktJs18Dv+w9TEGWC"
        "OYjVRHJvbHcgrscxJFZ1pAu6uAdJXdQje/DMnUbDtW2zgS3Xaafe85qmZzZvWg2cglSmCucwDFVhuEZSRNgymzDS"
        "Gq6l6AvPcNrbbps8Gm0RTy2xFW3FWizKGI0i6sIenNcjNNizd1pUbBzDhSpcZGLbhodhIkxeWtWjurALk3pkF6Z8"
        "6jkMz1fhMqNahr0B0z7Vzfsd8qif9gxLW4IXiJyA4QpLdxdepHIv+XKzGF6uwiu1GNm47hmWA69yeio7SEnpa84x"
        "zTykfc2Mf4Tk7F4jyZHb677uVQzzVciy87aabVjgVN91nc2+Yo4pFkDyFfNdlwXqUvbVihiUKiyypB3XMaHUOyrG"
        "yrBEWIThDcoiPboH18jJETfXfX4Zw5tVKNfilO9srZseVDiFItwgChEMKlHIZHzqLQw3q/B2J7uiJ5I/PH6kfCsg"
        "RK+VI4t8As31ijy74XpbBq7fMr02qSZNnQ3X+qAl0Vg/P/nrS+qKXkfHmkKlfqxu+dcN29p0tkwHa6r8NOEOLUWm"
        "Bsq34R+SJxKONTCGKj0D659h06XdoqnX/1fc3rItjG2TethdfjhFP6/4sR6GUTk4VRZymnrtLAZ81Z0y+VMhv+Ta"
        "Idf3Fero0t3HX0+SNyZPcDTPOZI0NfP0jshnuk9jffVj7S6t9ugJsW5wsfKaunym41/bL1dYfGFmdvz08Qtnji92"
        "lRPdO/Xy27/37o+xeut5QQO9FDkvsqZKp/dyXK4XOf2ipp5HA+rnCquV7K+Xfz/5/EYOOqg/Js7WP4UUjf7gu80P"
        "T+7faVToDxCWUtv0LDJBPjfov7+61dTUhdOakfJKqagsFpaUJUUmP3lFknLyUqFYkktyrkReFoqKsqhQlz/9svYw"
        "TXykmcsINdv3GRy3o4ech75HhOHg/JzgwEcCOmI+hzWCI3CK01gV0dFzNywTnGJjnMwfBzL96RmmgxNnmKM/iiJ+"
        "7oXR4ADh0b9DqBRGg73Pox/EeDQfRoOtyqN/htBCDx3cy8H1cZxH5XDUYLPx6H4ILYbRYKeMcOiFBAr1ZpgN1u80"
        "x35zwA7urBU9Hr/a3TwjzvfBodD9iX9EqJTsjcM4m4xz5/zX/jeEWNxnhth+f+9/EYCFKA=="
    ),
    "old": (
        "eNp9k9lu00AUhr0lAUNK2Slr2BOWkNVN2RpKKUjDVnPjG2Q5zlAbGTvHnlQCqVJuGlGegQsueYy8Do+AxAXHHqel"
        "xWDZHvtk8v3n/2c8kr6o3q+vKz9L77+/nquOpBc/ZLxvgFA2ZgVBGIQBC+zAM9dpGLmBDyJOMIr4i+cy5lGT+n3X"
        "8kH6bKhYZB8H1IzcTzQCeQOUspHDYuQEIYMckQwZ31yfQZ4ohhIzAn8NCkQZDqeaIlYtEG0WhLZTNYfM9SLVDGlv"
        "6Hp9k1E/CkJzvaGCVC4bhRiOM601CjL/i7riBRZ7w4sqKMYMzllotTqa1mh06q1aswG5pA97MMQ+8i8ZFFaJQCQi"
        "j2EfkYk4hv1bNlr2qM3QcaS+Cvs0pP1l12YqqBUdDjA4qEMxscBc2ocZp8jth5YfDYIIS4cc7NCRncwOZh2ufDhW"
        "lok0hiNEjBs4uuXEAscYHNfhRCIwsDC8k/+jnUppc6tEIdImnCbiJpzhpLMMzulwPiE5lvcOLnBSmtYzLG2HVdqB"
        "t2vz2nxda3XgIsIlhF9KQtqEyzH8CodfZXBNh+vJIvdCy/WhvIu+lCxGXdtWqOxRaGi1DtxIFW7yZcD8b2EYONzm"
        "KlUGd3So8c3Tj6C+S+M5bqFtfmOvg3qtBc2U30odtGMHGmfPM+josJDE4wc+hbt/B52Q2hoGfQ9JApLuxySBKGN4"
        "gIljpw85bZFBV4dHRj6mDT/0aAhL/+ItNDV4jDwRecvIq1Q44wmDFR2exh/E2/iDyDAkZq2TlBWtnOUis5Vc1sbK"
        "06ok8ENOx0I6TutCR5hMnyeL3cm0LE4fhFI3L/x5jBbx1sUTrxFe37q/AarxFVw="
    ),
    "module": (
        "eNqlVM9P1EAUnnaX3VoRF/DXCjEeTFwTXFqgy64RIY1pYnpwWWOy4dKU7rBt7G557SyoiQmJAeSP0JvxP9C/g8R4"
        "8mI8efLqyTjTIrZdFwQnaSedvu9737z53tT1TBYhQUB9YwwV0NpTo+O1ei6ebpnELK8/cTV1GK3Exhb/AlCpmaOA"
        "Tey0bQKcRTzfsstGjzhuIBo+Xu05bstYN32zgwn2ReAHhBDcDTzf2JgRIVMqNfOUNKCRZhtDNoKImuuZ5FG0KMJQ"
        "k6MxEuSaGTpb6z3I6zwBYVlHOqfzO3BG53VuB8Q9y/JcF1vE8bqB+NBvYR+37jsWEeHsrQYMEzjXgJFXNvs4vwuF"
        "Bow2aV3QqmMGMGbzNtVjZ+0onwzjdl7nCFwI82zDRfa6tBeiLxO40oBiRHV1FyYaMNkr1/W8UL2x/P4mxbOnPrDs"
        "RVr4P2Uvr3l+xyTGBvYDKl1TRxLVX1mRGfOH759fMmHsGcw8iZQ480FlDdN12t0O7hJNlVPk/zAqc0zA4iZ842kK"
        "/kgB42ghJmD1GcEeOwhNrZ087+/hOoS4mGnYXvhaZDbMHamhgO6mXD0taWr11AIQ2lqktEtMwcbbxTJLKRyj4E5a"
        "gaypFXTa/Eth7r39L++YYbNH5h5NnMChqf6j/rMiy77/pv34+PO/jqS4AcOtB9h3qAOfm6wzDaelqVMnEiMpFVmW"
        "qsrMbEWuVeYlZaY2JyuKUlUqUpUu079zs7X5sE3uvf75oER1lEKVHBN7qDPenGN9yvvvwTQ+3oLFBHaTQ4MbOk0T"
        "b6TJBM1+kqave9NM8XYYTzA1ePS3NkwTxN1cSBB84lFfD6XRcT8m0eyqTvs/jY77aTSB/phAD6hi/KCvJ/eeRcda"
        "sK7nclMH8dcytw+xQmqe4KP5RzaaKS4fXnP56Du6jYdyEUYI46PYXxWOqLA="
    ),
}
SHARED = np.arange(6.0).reshape(2, 3)
TENSORS = {
    "a": SHARED, "tied": SHARED, "transposed": SHARED.T, "part": SHARED[1, 1:], "half": [0.5, -2],
    "brain": [[1.5], [-3]], "ids": [3, 7], "none": np.zeros((0, 4)), "number": 2.5,
}  # fmt: skip
TYPES = {"half": "F16", "brain": "BF16", "ids": "I64"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pytorch_model.bin"


def written(name):
    return zlib.decompress(base64.b64decode(WRITTEN[name]))


@pytest.mark.parametrize("name", ["new", "old"])
def test_a_file_of_pytorch_is_read_exactly(name, path):
    path.write_bytes(written(name))
    file = TorchFile(path)
    assert file.types == {name: TYPES.get(name, "F32") for name in TENSORS}
    assert file.shapes == {name: np.shape(values) for name, values in TENSORS.items()}
    for name, values in TENSORS.items():
        assert file.read(name).dtype == "float32"
        np.testing.assert_array_equal(file.read(name), values)
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: the tensor b is missing\."):
        file.read("b")


def test_trained_parameters_are_tensors(path):
    path.write_bytes(written("module"))
    file = TorchFile(path)
    assert {name: file.read(name).tolist() for name in file.shapes} == {
        "weight": [[1, 2]],
        "bias": [3],
    }


ARRAYS = {
    "x": np.arange(6, dtype="float32").reshape(2, 3),
    "h": np.array([1, 0.5], "float16"),
    "i": np.array([4, -5]),
}


@pytest.mark.parametrize("archive", [True, False])
def test_the_files_of_these_tests_are_read(archive, path):
    pytorch.save(path, ARRAYS, archive)
    file = TorchFile(path)
    assert {*file.shapes} == {*ARRAYS}
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(file.read(name), values)


class Hostile:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_a_program_in_the_file_does_not_run(archive, protocol, path, tmp_path, monkeypatch):
    program = pickle.dumps({"weight": Hostile(tmp_path / "ran")}, protocol)
    pickle.loads(program)  # so it would run
    assert (tmp_path / "ran").exists()
    (tmp_path / "ran").unlink()
    monkeypatch.setattr(pytorch, "pickled", of_pickle(program))
    pytorch.write(path, {"weight": None}, [], archive)
    message = r"was not read: its pickle names '\w+\.system', and|with the step DICT"
    with pytest.raises(ValueError, match=message) as error:
        TorchFile(path)
    assert not (tmp_path / "ran").exists() and "\n" not in str(error.value)


def of_pickle(program):
    """Returns a function that gives this program for the description of tensors."""
    ordinary = pytorch.pickled
    return lambda value, archive=True: (
        program if isinstance(value, dict) and "weight" in value else ordinary(value, archive)
    )


@pytest.mark.parametrize(
    "step",
    [b"(i__main__\nsystem\n", b"(ctorch\nFloatStorage\no", b"ctorch\nFloatStorage\n)\x81"],
)
def test_no_other_step_makes_an_object(step, path, monkeypatch):
    monkeypatch.setattr(pytorch, "pickled", lambda value, archive=True: b"\x80\x02" + step + b".")
    pytorch.write(path, {}, [])
    with pytest.raises(ValueError, match=r"with the step (INST|OBJ|NEWOBJ), which is not read"):
        TorchFile(path)


HUGE = 2**62
ONE = np.ones(3, "float32")


def tensor(count=None, key="0", **changes):
    storage = pytorch.Storage(key, ONE, count)
    return {"weight": pytorch.Tensor(storage, **changes)}, [pytorch.Storage("0", ONE)]


def twice(*storages):
    """Two tensors, and the first of their storages."""
    tensors = {str(n): pytorch.Tensor(storage) for n, storage in enumerate(storages)}
    return {"weight": tensors["0"], "other": tensors["1"]}, list(storages[:1])


FIT = "must have tensors that fit into their storage. Received: 'weight' with the offset "
DESCRIBE = "its pickle does not describe a tensor as PyTorch does"
LARGER = np.ones(4, "float32")
DAMAGED = {
    "more than the storage": (tensor(shape=(4,)), FIT),
    "after the storage": (tensor(offset=1), FIT),
    "a huge step": (tensor(strides=(HUGE,)), FIT),
    "a row repeated": (tensor(shape=(HUGE, 3), strides=(0, 1)), FIT),
    "before the storage": (tensor(offset=-1), DESCRIBE),
    "no whole number": (tensor(shape=(3.0,)), DESCRIBE),
    "no numbers": (tensor(shape=((3,),)), DESCRIBE),
    "another rank": (tensor(shape=(3, 1)), DESCRIBE),
    "a list": (tensor(strides=[1]), DESCRIBE),
    "a sign of its own": (tensor(metadata={"neg": True}), DESCRIBE),
    "a huge storage": (tensor(HUGE, shape=(HUGE,)), "has 12 bytes|has 3 numbers"),
    "a number of 128 bits": (tensor(2**100), "a number of more than 64 bits"),
    "no such storage": (tensor(key="9"), "data/9' is missing|are not those that it describes"),
    "two sizes": (
        twice(pytorch.Storage("0", ONE), pytorch.Storage("0", LARGER)),
        "storage '0' is described twice",
    ),
    "a name of two lines": (
        ({"weight\nx": tensor()[0]["weight"]}, tensor()[1]),
        r"nothing but named tensors.* 'weight\\nx'",
    ),
    "a number as name": (({7: tensor()[0]["weight"]}, tensor()[1]), "named tensors.* '7'"),
    "a number": (({"weight": 3}, []), "nothing but named tensors.* Received: 'weight'"),
    "nested": (({"state_dict": tensor()[0]}, tensor()[1]), "Received: 'state_dict'"),
    "no names": (([1], []), "must contain named tensors"),
    "nothing": (({}, []), "must contain named tensors"),
}


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("case", DAMAGED)
def test_a_description_that_does_not_fit_is_refused(case, archive, path):
    (tensors, storages), message = DAMAGED[case]
    pytorch.write(path, tensors, storages, archive)
    with pytest.raises(ValueError, match=message) as error:
        file = TorchFile(path)
        file.read("weight")
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


PROGRAM = pytorch.pickled(tensor()[0])


def archive(path, *members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that occurs twice
        for name, content in members:
            file.writestr(name, content)


ARCHIVES = {
    "big-endian": (
        [("a/data.pkl", PROGRAM), ("a/byteorder", "big"), ("a/data/0", ONE.tobytes())],
        "must have little-endian numbers",
    ),
    "no program": ([("a/weights.pkl", PROGRAM)], "must contain one `data.pkl` and no member twice"),
    "two programs": ([("a/data.pkl", PROGRAM), ("b/data.pkl", PROGRAM)], "must contain one `data"),
    "twice": (
        [("a/data.pkl", PROGRAM), ("a/data/0", ONE.tobytes()), ("a/data/0", ONE.tobytes())],
        "and no member twice",
    ),
    "numbers of another size": (
        [("a/data.pkl", PROGRAM), ("a/data/0", LARGER.tobytes())],
        "is damaged: 'a/data/0' has 16 bytes",
    ),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives_that_are_not_of_pytorch_are_refused(case, path):
    members, message = ARCHIVES[case]
    archive(path, *members)
    with pytest.raises(ValueError, match=message):
        TorchFile(path).read("weight")


def test_compressed_and_truncated_archives_are_refused(path):
    archive(path, ("a/data.pkl", PROGRAM + bytes(999)), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="must not compress its member 'a/data.pkl'"):
        TorchFile(path)
    pytorch.save(path, ARRAYS)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is incomplete: the end of the archive is missing"):
        TorchFile(path)
    path.write_bytes(content.replace(ARRAYS["x"].tobytes(), ARRAYS["x"][::-1].tobytes()))
    with pytest.raises(ValueError, match="is damaged: 'x' cannot be read"):  # by its checksum
        TorchFile(path).read("x")


def test_the_beginning_of_a_file_tells_its_format(path):
    """As for PyTorch: what follows an old file is no archive."""
    pytorch.save(path, ARRAYS)
    appended = path.read_bytes()
    pytorch.save(path, ARRAYS, archive=False)
    path.write_bytes(path.read_bytes() + appended)
    with pytest.raises(ValueError, match="its storages are not those that it describes"):
        TorchFile(path)


def test_the_order_of_bytes_and_the_end_of_old_files_are_checked(path, monkeypatch):
    monkeypatch.setitem(pytorch.SYSTEM, "little_endian", False)
    pytorch.save(path, ARRAYS, archive=False)
    with pytest.raises(ValueError, match="must have little-endian numbers"):
        TorchFile(path)
    monkeypatch.undo()
    tensors, storages = pytorch.described(ARRAYS)
    for held in (storages[:-1], [*storages, storages[0]]):  # too few, and one twice
        pytorch.write(path, tensors, held, archive=False)
        with pytest.raises(ValueError, match="its storages are not those that it describes"):
            TorchFile(path)


def test_a_huge_program_is_not_read(path, monkeypatch):
    monkeypatch.setattr(torch_files, "LONGEST_PROGRAM", 200)
    pytorch.save(path, ARRAYS)
    with pytest.raises(ValueError, match=r"is damaged: 'archive/data.pkl' has \d+ bytes"):
        TorchFile(path)
    pytorch.save(path, ARRAYS, archive=False)
    with pytest.raises(ValueError, match="its pickle has more than 200 bytes"):
        TorchFile(path)


EVERY_TYPE = {
    "float32": "FloatStorage", "float16": "HalfStorage", "float64": "DoubleStorage",
    "int64": "LongStorage", "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage",
    "uint8": "ByteStorage", "bool": "BoolStorage",
}  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("dtype", EVERY_TYPE)
def test_every_type_of_numbers(dtype, protocol, path, monkeypatch):
    """More than 256 values make longer steps; protocol 4 has others."""
    monkeypatch.setattr(pytorch, "STORAGES", EVERY_TYPE)
    monkeypatch.setattr(pytorch, "PROTOCOL", protocol)
    values = np.array([[1, 0, 1], [0, 1, 1]] if dtype == "bool" else [[0, 1, 2], [99, 3, 4]], dtype)
    pytorch.save(path, {f"layer.{n}": values for n in range(150)})
    file = TorchFile(path)
    assert len(file.shapes) == 150
    np.testing.assert_array_equal(file.read("layer.149"), values)


def test_views_of_one_storage_are_read_once(path, monkeypatch):
    storage = pytorch.Storage("0", np.arange(12, dtype="float32"))
    views = {str(n): pytorch.Tensor(storage, offset=n, shape=(2,), strides=(3,)) for n in range(8)}
    reads, ordinary = [], zipfile.ZipFile.read
    monkeypatch.setattr(
        zipfile.ZipFile, "read", lambda self, name: reads.append(name) or ordinary(self, name)
    )
    for archived in (True, False):
        pytorch.write(path, views, [storage], archived)
        file = TorchFile(path)
        for n in range(8):
            assert file.read(str(n)).tolist() == [n, n + 3]
    assert reads.count("archive/data/0") == 1


@pytest.mark.parametrize("name", ["new", "old"])
def test_damage_anywhere_is_an_error_or_another_value(name, path):
    """Changes and truncates the file in many places; nothing but a `ValueError` may come of it."""
    content, random_number = written(name), random.Random(1)
    refused = 0
    for trial in range(400):
        damaged = bytearray(content)
        if trial % 4:
            for _ in range(trial % 4):
                damaged[random_number.randrange(len(damaged))] = random_number.randrange(256)
        else:
            del damaged[random_number.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        try:
            file = TorchFile(path)
            for tensor in file.shapes:
                file.read(tensor)
        except ValueError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
            refused += 1
    assert 100 < refused < 400


DEEP = b")q\x00" + b"h\x00\x86q\x00" * 60  # a tuple of tuples, each of which is twice in the next
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
PAIRS = b"](" + b"X\x01\x00\x00\x00aX\x01\x00\x00\x00b\x86" * 3000 + b"eq\x01"
BOMBS = {
    "a key": (b"}" + DEEP + b"K\x01s.", "a key that is neither a text nor a number"),
    "a shape": (b"}X\x01\x00\x00\x00w" + REBUILD + b"(" + DEEP * 4 + b"tRs.", DESCRIBE),
    "a storage": (b"(" + DEEP * 5 + b"tQ.", "does not describe a storage as PyTorch does"),
    "pairs": (
        b"ccollections\nOrderedDict\nq\x02" + PAIRS + b"\x85q\x03" + b"h\x02h\x03R" * 3000 + b".",
        "does not describe a dictionary as PyTorch does",
    ),
}


@pytest.mark.parametrize("case", BOMBS)
def test_small_programs_neither_take_for_ever_nor_fill_the_memory(case, path, monkeypatch):
    program, message = BOMBS[case]
    monkeypatch.setattr(pytorch, "pickled", lambda value, archive=True: b"\x80\x02" + program)
    pytorch.write(path, {}, [])
    with pytest.raises(ValueError, match=message) as error:
        TorchFile(path)
    assert len(str(error.value)) < 1000


def test_long_names_are_shortened_in_messages(path, monkeypatch):
    program = b"\x80\x02cos\n" + b"x" * 10**6 + b"\n."
    monkeypatch.setattr(pytorch, "pickled", lambda value, archive=True: program)
    pytorch.write(path, {}, [])
    with pytest.raises(ValueError, match=r"its pickle names 'os\.xxx") as error:
        TorchFile(path)
    assert len(str(error.value)) < 1000


WRITE = """
import sys, torch
torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(6, 2, 10)
folder = sys.argv[1]
half = {name: values.to(torch.bfloat16) for name, values in layer.state_dict().items()}
flat = torch.randn(100)
views = {"a": flat[3:11].view(2, 4).t(), "b": flat[40:].view(5, 12)[:, ::3], "c": flat[:4]}
torch.save(views, f"{folder}/views.bin")
numpy_views = {name: values.numpy() for name, values in views.items()}
torch.save({"x": torch._neg_view(flat)}, f"{folder}/sign.bin")
torch.save(layer.state_dict(), f"{folder}/new.bin")
torch.save(layer.state_dict(), f"{folder}/old.bin", _use_new_zipfile_serialization=False)
torch.save(half, f"{folder}/half.bin")
numbers = {name: values.float().numpy() for name, values in layer.state_dict().items()}
import numpy
numpy.savez(f"{folder}/numbers.npz", **numbers)
numpy.savez(f"{folder}/views.npz", **numpy_views)
"""


@pytest.mark.slow
def test_files_of_the_installed_pytorch(tmp_path):
    """`KERAS_TRANSFORMER_TRANSFORMERS` names a Python with PyTorch."""
    python = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("PyTorch is missing: KERAS_TRANSFORMER_TRANSFORMERS names a Python with it")
    subprocess.run([python, "-c", WRITE, tmp_path], check=True)
    with np.load(tmp_path / "numbers.npz") as numbers:
        for name, close in (("new", 0), ("old", 0), ("half", 2**-8)):
            file = TorchFile(tmp_path / f"{name}.bin")
            assert {*file.shapes} == {*numbers}
            for key, values in numbers.items():
                np.testing.assert_allclose(file.read(key), values, rtol=close, atol=0)
    with np.load(tmp_path / "views.npz") as views:
        for key, values in views.items():
            np.testing.assert_array_equal(TorchFile(tmp_path / "views.bin").read(key), values)
    with pytest.raises(ValueError, match=DESCRIBE):
        TorchFile(tmp_path / "sign.bin")


def test_python_2_wrote_pairs(path, monkeypatch):
    """As in files of 2018: an ordered dictionary from a list of pairs, and PyTorch's older name."""
    tensors, storages = tensor()
    program = pytorch.pickled(tensors).replace(b"_rebuild_tensor_v2", b"_rebuild_tensor")
    inside = program.removeprefix(b"\x80\x02}q\x00").removesuffix(b"s.")
    pairs = b"\x80\x02ccollections\nOrderedDict\n]](" + inside + b"ea\x85R."
    assert program != inside != pairs
    monkeypatch.setattr(pytorch, "pickled", lambda value, archive=True: pairs)
    pytorch.write(path, collections.OrderedDict(tensors), storages)
    np.testing.assert_array_equal(TorchFile(path).read("weight"), ONE)
