"""TensorFlow's converter, `tf.lite`, in this process or, as a program, in one of its own."""

import contextlib
import pathlib
import re
import sys
import tempfile
from typing import Any

import tensorflow as tf

from keras_transformer.export import child_process
from keras_transformer.export.apart import LARGE
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.equal_numbers import without_equal_numbers
from keras_transformer.export.litert.merge import merge
from keras_transformer.export.litert.serialization import custom_operators
from keras_transformer.export.place import save
from keras_transformer.files import replacing
from keras_transformer.free_memory import return_free_memory

MODEL, RESULT, FAILURE = "model", "model.tflite", "failure.txt"  # names in the folder


def convert_within_tensorflow(functions, read, quantize, custom="", size=0) -> Any:
    """Returns the bytes of a .tflite model whose signatures are functions.

    Args:
        functions: Iterable of names and concrete functions.
        read: List of the variables that they read.
        quantize, custom: See `convert_functions`.
        size: Bytes of the weights that are left out of the functions. Large ones are converted in
            a process of their own, one after the other, which needs less memory.

    Raises:
        ExportError: See `convert_functions`.
    """
    if size < LARGE or custom:
        return convert_functions(None, dict(functions), quantize, custom, read)
    return_free_memory()  # that of the weights that were copied
    return merge(_converted_apart(functions, quantize, read))


def _converted_apart(functions, quantize, read):
    """Yields the bytes of a .tflite model for each of the functions.

    Args:
        functions: Iterable of names and concrete functions.
        quantize, read: See `convert_functions`.
    """
    with tempfile.TemporaryDirectory() as folder:
        folder, names = pathlib.Path(folder), []
        for name, function in functions:
            _save_functions({name: function}, read, folder / name / MODEL)
            names.append(name)
            del function  # its graph is not needed while the next one is traced
        return_free_memory()
        with _named_operators():
            convert_apart(folder, names, quantize)
        for name in names:
            yield (folder / name / RESULT).read_bytes()


def convert_functions(model, functions, quantize="none", custom="", read=None) -> bytes:
    """Returns the bytes of a .tflite model whose signatures are functions of a `Transformer`.

    Args:
        model: The `Transformer`.
        functions: Dictionary from the names of the signatures to concrete functions.
        quantize: `"none"`, `"float16"`, `"int8"`, or `"int8_static"`, whose result must be passed
            to `finish_static_int8`.
        custom: Prefix of the names of custom operators that are allowed. `""`: only builtin
            operators are allowed.
        read: List of the model's variables that the functions read. `None`: all.

    Raises:
        ExportError: If the model needs other operators. The message names them.
    """
    read = [v.value for v in model.variables] if read is None else read
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder, MODEL)
        _save_functions(functions, read, folder)
        with _named_operators():
            content = convert_saved_model(folder, list(functions), quantize, custom)
    if custom:
        foreign = [name for name in custom_operators(content) if not name.startswith(custom)]
        if foreign:
            raise _missing(foreign)
    return content


def _save_functions(functions, read, folder):
    """Writes a SavedModel for the converter.

    Args:
        functions: Dictionary from names to concrete functions.
        read: List of the model's variables that they read.
        folder: The folder to write.
    """
    # Tracks the variables but not the model: see `Translator`. Kernels may have further variables.
    module = tf.Module()
    module.weights = read
    module.others = [variable for function in functions.values() for variable in function.variables]
    save(module, folder, functions)


@contextlib.contextmanager
def _named_operators():
    """Replaces an error of the converter about missing operators by one that names them."""
    try:
        yield
    except Exception as error:
        matches = re.findall(r"(?:TF Select|Custom|Flex) ops: ([\w, ]+)", str(error))
        if not matches:
            raise
        raise _missing(name for names in matches for name in names.strip().split(", ")) from error


def _missing(names):
    return ExportError(f"LiteRT has no builtin operator for {', '.join(sorted(set(names)))}.")


def convert_saved_model(folder, names, quantize, custom="", large=False) -> bytes:
    """Returns the bytes of a .tflite model with the functions of a SavedModel.

    Args:
        folder: The folder of the SavedModel.
        names: Names of the signatures.
        quantize, custom: See `convert_functions`.
        large: Whether the constants may follow the model in the result: see `read_model`. Several
            copies of them are then not made.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder), signature_keys=names)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.allow_custom_ops = bool(custom)
    # Otherwise `tf.lite` reads and writes the whole model again in Python, once for each.
    converter.exclude_conversion_metadata = True
    converter._experimental_use_buffer_offset = large
    if quantize != "none":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    return converter.convert()


def convert_apart(folder: pathlib.Path, names: list[str], quantize: str) -> None:
    """Converts SavedModels in a process of its own, one after the other.

    The converter takes more than a gigabyte, and a part of that is not free when it has finished.
    The end of a process frees all. If this process is killed, the other one ends too.

    The models hold one number of each large constant of equal numbers: see `complete_constants`.

    Args:
        folder: Folder with a folder for each signature, which contains a SavedModel under `MODEL`.
            There the .tflite model is written under `RESULT`.
        names: Names of the signatures.
        quantize: See `convert_functions`.

    Raises:
        ExportError: If the process was killed or could not start.
        RuntimeError: If the converter fails; the message is the converter's.
    """
    command = child_process.program(__name__, str(folder), quantize, *names)
    ended = child_process.run(command, cwd=folder, env=child_process.environment())
    failure = folder / FAILURE
    if failure.exists():
        raise RuntimeError(failure.read_text(encoding="utf-8"))
    missing = [name for name in names if not (folder / name / RESULT).exists()]
    if missing:
        what = f"The process in which LiteRT's converter converted {missing[0]}"
        raise ExportError(child_process.failure(what, ended.returncode, ended.stderr))


def main(folder, quantize, *names) -> None:
    """Converts SavedModels for `convert_apart`."""
    child_process.end_with_parent()
    folder = pathlib.Path(folder)
    for name in names:
        try:
            model = convert_saved_model(folder / name / MODEL, [name], quantize, large=True)
            content = without_equal_numbers(model)
        except Exception as error:
            (folder / FAILURE).write_text(str(error), encoding="utf-8")
            raise
        with replacing(folder / name / RESULT) as draft:
            draft.write_bytes(content)
        del model, content
        return_free_memory()


if __name__ == "__main__":
    main(*sys.argv[1:])
