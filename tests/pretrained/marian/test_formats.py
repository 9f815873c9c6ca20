"""Marian's `.npz` and `.bin`: files are read and written unchanged; damage is reported."""

import io
import struct
import zipfile

import numpy as np
import pytest

from keras_transformer.pretrained.files.marian.arrays import Quantized, check_multipliers, in_floats
from keras_transformer.pretrained.files.marian.binary import read_bin, write_bin
from keras_transformer.pretrained.files.marian.npz import read_npz, write_npz
from keras_transformer.pretrained.files.marian.settings import read_settings, settings_array
from keras_transformer.pretrained.files.marian.weights import read

WRITERS = {".npz": write_npz, ".bin": write_bin}


def floats(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "Wemb": rng.normal(size=(11, 4)).astype("float32"),
        "encoder_l1_self_Wq": rng.normal(size=(4, 7)).astype("float32"),
        "encoder_l1_self_bq": rng.normal(size=(1, 7)).astype("float32"),
        "special:model.yml": settings_array({"type": "transformer", "dim-vocabs": [11, 11]}),
    }


def quantized():
    arrays = floats()
    arrays["Wemb"] = Quantized.of(arrays["Wemb"])
    arrays["encoder_l1_self_Wq"] = Quantized.of(arrays["encoder_l1_self_Wq"])
    arrays["encoder_l1_self_Wq_QuantMultA"] = np.array([[3.5]], "float32")
    arrays["Wemb_QuantMultA"] = Quantized.of(np.array([[30.0]], "float32"))
    arrays["none_QuantMultA"] = np.array([[30.0]], "float32")
    return arrays


def same(ours, theirs):
    assert sorted(ours) == sorted(theirs)
    for name, array in ours.items():
        if isinstance(array, Quantized):
            np.testing.assert_array_equal(array.values, theirs[name].values)
            assert array.multiplier == theirs[name].multiplier
        else:
            assert array.dtype == theirs[name].dtype
            np.testing.assert_array_equal(array, theirs[name])


@pytest.mark.parametrize("suffix", [".npz", ".bin"])
def test_a_file_is_read_and_written_again_byte_by_byte(tmp_path, suffix):
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    WRITERS[suffix](first, floats())
    same(floats(), read(first))
    WRITERS[suffix](second, read(first))
    assert first.read_bytes() == second.read_bytes()


def test_arrays_of_a_quantised_file_are_aligned_to_256_bytes(tmp_path):
    first, second = tmp_path / "a.bin", tmp_path / "b.bin"
    write_bin(first, quantized())
    same(quantized(), read_bin(first))
    write_bin(second, read_bin(first))
    assert first.read_bytes() == second.read_bytes()
    content = first.read_bytes()
    needle = Quantized.of(floats()["encoder_l1_self_Wq"])
    assert content.index(needle.values.T.tobytes()) % 256 == 0  # stored [out, in]
    table = content.index(Quantized.of(floats()["Wemb"]).values.tobytes())
    assert table % 256 == 0
    assert (
        struct.unpack_from("<f", content, table + 44)[0]
        == Quantized.of(floats()["Wemb"]).multiplier
    )


def test_marians_own_type_number_is_also_read(tmp_path):
    path = tmp_path / "a.bin"
    write_bin(path, quantized())
    path.write_bytes(
        path.read_bytes().replace(struct.pack("<Q", 0x4101), struct.pack("<Q", 0x10001))
    )
    same(quantized(), read_bin(path))


def test_a_quantised_matrix_is_off_by_at_most_half_a_step():
    matrix = floats()["encoder_l1_self_Wq"]
    step = np.abs(matrix).max() / 127
    assert np.abs(Quantized.of(matrix).floats() - matrix).max() <= step * 0.501
    assert Quantized.of(np.zeros((2, 3), "float32")).floats().any() == False  # noqa: E712


def test_weights_in_floats_have_no_multipliers_and_no_settings():
    weights = in_floats(quantized(), "a.bin")
    assert sorted(weights) == ["Wemb", "encoder_l1_self_Wq", "encoder_l1_self_bq"]
    np.testing.assert_allclose(weights["Wemb"], floats()["Wemb"], atol=0.02)


@pytest.mark.parametrize("name", ["encoder_l1_self_Wq_QuantMultA", "none_QuantMultA"])
def test_a_missing_multiplier_is_reported(name):
    arrays = quantized()
    del arrays[name]
    with pytest.raises(ValueError, match=f"a.bin: the multiplier {name} is missing"):
        check_multipliers(arrays, "a.bin")
    arrays[name] = np.array([[-1]], "float32")
    with pytest.raises(ValueError, match=f"{name} must be one number above 0"):
        check_multipliers(arrays, "a.bin")


def test_a_file_with_dynamic_ranges_has_no_multipliers():
    arrays = {name: array for name, array in quantized().items() if "QuantMultA" not in name}
    check_multipliers(arrays, "a.bin")


def test_values_that_are_not_finite_are_reported():
    arrays = floats()
    arrays["Wemb"] = np.full((11, 4), np.nan, "float32")
    with pytest.raises(ValueError, match="Wemb contains NaN or infinite"):
        in_floats(arrays, "a.npz")


@pytest.mark.parametrize("arrays", [floats, quantized])
def test_a_bin_file_truncated_anywhere_is_reported_in_one_line(tmp_path, arrays):
    path = tmp_path / "a.bin"
    write_bin(path, arrays())
    content = path.read_bytes()
    for end in range(0, len(content), 37):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match=r"a\.bin .*(damaged|no \.bin)") as error:
            read_bin(path)
        assert "\n" not in str(error.value)


def changed(content, place, form, number):
    return content[:place] + struct.pack(form, number) + content[place + struct.calcsize(form) :]


@pytest.mark.parametrize(
    ("place", "number", "message"),
    [
        (0, 2, "not a .bin file of Marian of version 1"),
        (8, 2**60, "its table has 1152921504606846976 entries"),
        (16, 2**62, "a name ends at byte"),
        (24, 0x402, r"Wemb must be one of float32 \(0x404\).* Received: type 0x402"),
        (32, 2**61, "its table has"),
        (40, 2**63, "Wemb ends at byte"),
        (40, 4, "Wemb has 4 bytes. Received: shape \\(11, 4\\), float32, which needs 176"),
    ],
)
def test_a_hostile_table_is_refused_before_anything_is_read(tmp_path, place, number, message):
    path = tmp_path / "a.bin"
    write_bin(path, floats())
    path.write_bytes(changed(path.read_bytes(), place, "<Q", number))
    with pytest.raises(ValueError, match=message):
        read_bin(path)


def test_a_too_large_or_negative_shape_is_reported(tmp_path):
    path = tmp_path / "a.bin"
    write_bin(path, floats())
    content = path.read_bytes()
    shape = content.index(struct.pack("<2i", 11, 4))
    for number in (2**31 - 1, -11, 0):
        path.write_bytes(changed(content, shape, "<i", number))
        with pytest.raises(ValueError, match="Wemb has 256 bytes"):
            read_bin(path)


def test_a_multiplier_after_a_matrix_must_be_a_number(tmp_path):
    path = tmp_path / "a.bin"
    arrays = quantized()
    arrays["Wemb"] = arrays["Wemb"]._replace(multiplier=np.float32("nan"))
    write_bin(path, arrays)
    with pytest.raises(ValueError, match="Wemb must be a matrix with a multiplier above 0"):
        read_bin(path)


def test_a_truncated_or_wrong_npz_file_is_reported_in_one_line(tmp_path):
    path = tmp_path / "a.npz"
    write_npz(path, floats())
    content = path.read_bytes()
    for end in range(0, len(content), 101):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match=r"a\.npz is damaged or not a \.npz file of Marian"):
            read_npz(path)
    place = content.index(floats()["Wemb"].tobytes())
    path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
    with pytest.raises(ValueError, match="Bad CRC-32"):
        read_npz(path)


def npz(path, array, compression=zipfile.ZIP_STORED, header=None):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    content = buffer.getvalue()
    if header:
        content = content.replace(*header)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("Wemb.npy", content)


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (np.zeros((2, 3)), {}, "Wemb must be float32 or int8. Received: float64"),
        (np.array([{}], object), {}, "Wemb must be float32 or int8. Received: object"),
        (
            np.zeros((20, 30), "float32"),
            {"compression": zipfile.ZIP_DEFLATED},
            "must not be compressed",
        ),
        (
            np.zeros((2, 3), "float32"),
            {"header": (b"(2, 3), }   ", b"(2, 3000), }")},
            r"Wemb must have 24 bytes by rows. Received: shape \(2, 3000\)",
        ),
        (np.zeros((2, 3), "float32").T, {}, "by rows"),
        (np.zeros((2, 3), "float32"), {"header": (b"NUMPY", b"NIMPY")}, "damaged: Wemb"),
    ],
)
def test_an_array_of_another_type_is_reported(tmp_path, array, options, message):
    path = tmp_path / "a.npz"
    npz(path, array, **options)
    with pytest.raises(ValueError, match=message):
        read_npz(path)


def test_other_files_are_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="`path` must end in .npz or .bin"):
        read(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "it has no special:model.yml"),
        (b"a: [", "is not YAML"),
        (b"!!python/object/apply:os.getcwd []", "is not YAML"),
        (b"- 1", "must contain settings by name"),
        (b"\xff\xfe", "is not YAML"),
    ],
)
def test_unreadable_settings_are_reported(content, message):
    arrays = {} if content is None else {"special:model.yml": np.frombuffer(content, "int8")}
    with pytest.raises(ValueError, match=message):
        read_settings(arrays, "a.npz")


def test_settings_are_read_as_they_were_written():
    settings = {"type": "transformer", "transformer-preprocess": "", "dim-vocabs": [5, 7]}
    array = settings_array(settings)
    assert array.dtype == np.int8
    assert array[-1] == 0
    assert read_settings({"special:model.yml": array}, "a.npz") == settings


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [1, 2]\ntype: *a",  # a few more of these turn few bytes into billions of values
        "type: 2001-99-99",
        "type: !!int ''",
        "type: !!bool abc",
        "type: " + "[" * 2000,
        "type: " + "9" * 5000,
        "type: " + "x" * 2**16,
        "type: !!python/object/apply:os.getcwd []",
    ],
)
def test_malicious_settings_are_reported_in_one_line(text):
    arrays = {"special:model.yml": np.frombuffer(text.encode() + b"\0", "int8")}
    with pytest.raises(ValueError, match="file.npz is damaged: special:model.yml") as error:
        read_settings(arrays, "file.npz")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("shape", ["(-2, -4)", "(True,)", "(1,) * 2", f"({'1,' * 70})"])
def test_impossible_shapes_of_an_npz_file_are_reported(shape, tmp_path):
    content = b"x" * {"(-2, -4)": 32}.get(shape, 4)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        start = b"\x93NUMPY\1\0" + struct.pack("<H", len(header))
        archive.writestr("name.npy", start + header + content)
    with pytest.raises(ValueError, match="a.npz is damaged: name"):
        read_npz(tmp_path / "a.npz")


def test_an_array_with_too_many_axes_in_a_bin_file_is_reported(tmp_path):
    header = struct.pack("<2Q4Q", 1, 1, 1, 0x404, 100, 400) + b"a"
    (tmp_path / "a.bin").write_bytes(header + struct.pack("<100iQ", *[1] * 100, 0) + bytes(400))
    with pytest.raises(ValueError, match="a.bin is damaged: a has 100 axes, at most .* Copy"):
        read_bin(tmp_path / "a.bin")
