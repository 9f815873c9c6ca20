"""Check of the place of an .onnx file before any work."""

import pathlib

from keras_transformer.export.place_checks import check_place_of_file

IR_VERSION = 0x08  # first byte of an .onnx file: the tag of `ir_version`, its first field


def check_place_of_onnx(path) -> pathlib.Path:
    """Returns the path of an .onnx file to write.

    Raises:
        ExportError: If something other than an .onnx file is there.
        OSError: If nothing can be written there.
    """
    return check_place_of_file(path, _is_onnx, "an .onnx file")


def _is_onnx(path):
    with open(path, "rb") as file:
        return file.read(1) == bytes([IR_VERSION])
