"""LiteRT's converter, in this process or, as a program, in one of its own."""

import pathlib
import sys

import tensorflow as tf

from keras_transformer.export import child_process
from keras_transformer.export.errors import ExportError

MODEL, RESULT, FAILURE = "model", "model.tflite", "failure.txt"  # names in the folder


def convert_saved_model(folder, names, quantize, custom="") -> bytes:
    """Returns the bytes of a .tflite model with the functions of a SavedModel.

    Args:
        folder: The folder of the SavedModel.
        names: Names of the signatures.
        quantize, custom: See `convert_functions`.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder), signature_keys=names)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.allow_custom_ops = bool(custom)
    if quantize != "none":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    return converter.convert()


def convert_apart(folder: pathlib.Path, name: str, quantize: str) -> bytes:
    """Returns the bytes of a .tflite model, which a process of its own has converted.

    The converter takes several hundred megabytes, and a third of them are not free when it has
    finished. The end of a process frees all. If this process is killed, the other one ends too.

    Args:
        folder: Folder with the SavedModel under `MODEL`.
        name: Name of the signature.
        quantize: See `convert_functions`.

    Raises:
        ExportError: If the process was killed or could not start.
        RuntimeError: If the converter fails; the message is the converter's.
    """
    command = child_process.program(__name__, str(folder), name, quantize)
    ended = child_process.run(command, cwd=folder, env=child_process.environment())
    result, failure = folder / RESULT, folder / FAILURE
    if failure.exists():
        raise RuntimeError(failure.read_text(encoding="utf-8"))
    if ended.returncode or not result.exists():
        what = f"The process in which LiteRT's converter converted {name}"
        raise ExportError(child_process.failure(what, ended.returncode, ended.stderr))
    content = result.read_bytes()
    result.unlink()
    return content


def main(folder, name, quantize) -> None:
    """Converts a signature of a SavedModel for `convert_apart`."""
    child_process.end_with_parent()
    folder = pathlib.Path(folder)
    try:
        content = convert_saved_model(folder / MODEL, [name], quantize)
    except Exception as error:
        (folder / FAILURE).write_text(str(error), encoding="utf-8")
        raise
    (folder / RESULT).write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
