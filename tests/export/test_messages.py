"""Messages between processes: arrays arrive as they were sent."""

import io

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.export.messages import NoMessageError, receive, send

ARRAYS = {
    "float32": np.array([[1.5, -0.0, np.nan], [np.inf, 1e-38, 3]], np.float32),
    "int32": np.arange(30, dtype=np.int32).reshape(2, 3, 5),
    "reversed": np.arange(7)[::-1],
    "boolean": np.array([True, False]),
    "a number": np.float32(0.1),
    "nothing": np.zeros((0, 5), np.int64),
    "strings": np.array([["", "Grüße"], ["a\0", "\n"]]),
    "bytes": np.array([b"\xff\0", b"", b"abc"], object),
    "a string": np.array("one", object),
    "no strings": np.zeros((2, 0), object),
}


def sent(fields, arrays):
    stream = io.BytesIO()
    send(stream, fields, arrays)
    return stream.getvalue()


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_arrives_as_it_was_sent(name):
    array = ARRAYS[name]
    _, arrays = receive(io.BytesIO(sent({}, {"x": array})))
    assert arrays["x"].shape == array.shape
    if array.dtype.kind in "OU":
        encoded = [s.encode() if isinstance(s, str) else s for s in array.ravel().tolist()]
        assert arrays["x"].dtype == object and arrays["x"].ravel().tolist() == encoded
    else:
        assert arrays["x"].dtype == array.dtype and arrays["x"].tobytes() == array.tobytes()


def test_messages_follow_each_other():
    fields, tensors = {"signature": "ä", "numbers": [1, None]}, {"s": tf.constant(["é", ""])}
    stream = io.BytesIO(sent(fields, {"b": np.ones(2), "a": np.zeros(3)}) + sent({}, tensors))
    received, arrays = receive(stream)
    assert received == fields and list(arrays) == ["b", "a"]
    assert receive(stream)[1]["s"].tolist() == ["é".encode(), b""]
    with pytest.raises(EOFError):
        receive(stream)


def test_a_message_that_is_cut_is_an_end():
    content = sent({"signature": "x"}, {"x": np.ones(4), "y": np.array(["text"])})
    for size in range(len(content)):
        with pytest.raises(EOFError):
            receive(io.BytesIO(content[:size]))


def test_a_message_contains_no_objects():
    with pytest.raises(TypeError):
        send(io.BytesIO(), {}, {"x": np.array([{}], object)})
    with pytest.raises(TypeError, match="numbers or strings. Received: bfloat16"):
        send(io.BytesIO(), {}, {"x": tf.ones([2], tf.bfloat16)})


def test_what_is_no_message_is_an_error_that_shows_it():
    with pytest.raises(NoMessageError, match="'INFO: something '"):
        receive(io.BytesIO(b"INFO: something else"))
