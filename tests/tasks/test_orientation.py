"""The orientation of photographs, compared with Pillow's `exif_transpose`."""

import io
import struct

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
import tensorflow as tf

from keras_transformer.tasks.images import orientation as module
from keras_transformer.tasks.images.files import ImageSize
from keras_transformer.tasks.images.orientation import orientation

ORIENTATION, SHORT, LONG, BYTE = 0x0112, 3, 4, 1
read = tf.function(orientation, input_signature=[tf.TensorSpec([], tf.string)])


def photo(kind, exif=None, **options):
    """Returns the bytes of an image of 3 x 5 pixels, which differ."""
    pixels = np.random.default_rng(1).integers(0, 255, (3, 5, 3), "uint8")
    image, file = PIL.Image.fromarray(np.repeat(np.repeat(pixels, 8, 0), 8, 1)), io.BytesIO()
    options |= {} if exif is None else {"exif": exif}
    image.save(file, kind, **options)
    return file.getvalue()


def exif(entries, order="<", count=None, magic=42):
    """Returns Exif data with entries of a tag, a type and a value."""
    data = {"<": b"II", ">": b"MM"}[order] + struct.pack(f"{order}HI", magic, 8)
    data += struct.pack(f"{order}H", len(entries) if count is None else count)
    for tag, kind, value in entries:
        form = {SHORT: "HH", LONG: "I", BYTE: "BBH"}[kind]
        own = struct.pack(order + form, value, *(0,) * (len(form) - 1))
        data += struct.pack(f"{order}HHI", tag, kind, 1) + own
    return b"Exif\0\0" + data + bytes(4)


def expected(encoded):
    return np.array(PIL.ImageOps.exif_transpose(PIL.Image.open(io.BytesIO(encoded))))


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("number", range(1, 9))
def test_images_are_turned_as_in_pillow(kind, number):
    tags = PIL.Image.Exif()
    tags[ORIENTATION] = number
    tags[0x010F] = "a maker"
    encoded = photo(kind, tags.tobytes())
    image = ImageSize(interpolation="bilinear").from_bytes(encoded, "x")
    np.testing.assert_array_equal(image, expected(encoded))
    assert image.shape[:2] == ((24, 40) if number < 5 else (40, 24))
    assert int(read(encoded)) == number


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", [SHORT, LONG])
def test_both_orders_of_bytes_and_types_of_numbers(order, kind):
    entries = [(0x0100, LONG, 6), (ORIENTATION, kind, 6), (0x0128, SHORT, 3)]
    encoded = photo("JPEG", exif(entries, order))
    assert int(read(encoded)) == 6
    image = ImageSize().from_bytes(encoded, "x")
    assert image.shape == expected(encoded).shape == (40, 24, 3)


@pytest.mark.parametrize("comment", [b"", b"x" * 60_000])
def test_other_segments_may_come_before_exif_data(comment):
    encoded = photo("JPEG", exif([(ORIENTATION, SHORT, 8)]), comment=comment)
    place = encoded.index(b"\xff\xe1")
    before = b"\xff\xe1\x00\x08http:/" + b"\xff\xfe\x00\x04hi" + b"\xff\xff"  # a fill byte
    encoded = encoded[:place] + before + encoded[place + 1 :]
    assert int(read(encoded)) == 8
    assert expected(encoded).shape == (40, 24, 3)


UPRIGHT = {
    "without": None,
    "another tag": exif([(0x0128, SHORT, 3)]),
    "0": exif([(ORIENTATION, SHORT, 0)]),
    "9": exif([(ORIENTATION, SHORT, 9)]),
    "no entries": exif([]),
    "another header": exif([(ORIENTATION, SHORT, 6)], magic=43),
    "too short": exif([(ORIENTATION, SHORT, 6)])[:9],
}


@pytest.mark.parametrize("data", UPRIGHT.values(), ids=UPRIGHT)
def test_other_images_are_upright(data):
    for kind in ("JPEG", "PNG"):
        encoded = photo(kind, data)
        assert int(read(encoded)) == 1
        assert ImageSize().from_bytes(encoded, "x").shape == (24, 40, 3)


def test_damaged_data_neither_fail_nor_take_long():
    """Every cut and every changed byte of the beginning, and counts that are too large."""
    encoded = photo("JPEG", exif([(ORIENTATION, SHORT, 6)], count=60_000))
    assert int(read(encoded)) == 6
    random = np.random.default_rng(2)
    for kind in ("JPEG", "PNG"):
        whole = photo(kind, exif([(ORIENTATION, SHORT, 6)]))
        for place in range(120):
            assert 1 <= int(read(whole[:place])) <= 8
            changed = bytearray(whole)
            changed[place] = random.integers(256)
            assert 1 <= int(read(bytes(changed))) <= 8
    assert int(read(b"")) == int(read(b"\x89PNG")) == int(read(b"GIF89a")) == 1
    loop = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 2**32 - 12) + b"IDAT" + bytes(40)
    assert int(read(loop)) == 1


def test_files_without_exif_data_take_no_loop(monkeypatch):
    """A large PNG file without Exif data has thousands of chunks."""
    monkeypatch.setattr(tf, "while_loop", None)
    for kind in ("JPEG", "PNG"):
        for place in (None, 0, 1, 3, 5):
            assert int(orientation(photo(kind)[:place])) == 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_the_search_for_exif_data_ends(kind, monkeypatch):
    whole = photo(kind, exif([(ORIENTATION, SHORT, 6)]))
    place, unit = {"JPEG": (2, b"\xff"), "PNG": (8, bytes(4) + b"abCd" + bytes(4))}[kind]
    encoded = whole[:place] + 40 * unit + whole[place:]
    assert int(orientation(encoded)) == 6
    monkeypatch.setattr(module, "MOST", 39)
    assert int(orientation(encoded)) == 1


def test_graphs_turn_images_too():
    encoded = photo("JPEG", exif([(ORIENTATION, SHORT, 6)]))
    size = ImageSize(40, 24)
    decode = tf.function(size.decode, input_signature=[tf.TensorSpec([], tf.string)])
    np.testing.assert_array_equal(decode(encoded), size.from_bytes(encoded, "x"))
