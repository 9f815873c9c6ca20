"""Binary tensors of strings in version 2 of KServe's protocol: a length before each string."""

import struct

from keras_transformer.serving.refusal import Refusal

LENGTH = struct.Struct("<I")


def read_strings(content: bytes, size: object) -> list[bytes]:
    """Returns the strings of a tensor.

    Args:
        content: The bytes after the JSON of a body.
        size: Number of the bytes that the tensor has, by the JSON.

    Raises:
        Refusal: If the content has another size, or a length reaches beyond it.
    """
    if type(size) is not int or size != len(content):
        raise Refusal(400, f"`binary_data_size` is {size!r}, but {len(content)} bytes follow.")
    strings, place = [], 0
    while place < len(content):
        end = place + LENGTH.size
        end += LENGTH.unpack_from(content, place)[0] if end <= len(content) else 0
        if end > len(content):
            raise Refusal(400, "a string of a binary tensor ends after its bytes.")
        strings.append(content[place + LENGTH.size : end])
        place = end
    return strings


def write_strings(strings: list[str]) -> bytes:
    """Returns the bytes of a tensor of strings."""
    encoded = [string.encode() for string in strings]
    return b"".join(LENGTH.pack(len(string)) + string for string in encoded)
