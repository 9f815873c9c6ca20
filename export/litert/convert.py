"""Conversion of a model and its signatures to the bytes of a .tflite file."""

import contextlib
import functools
import pathlib
import re
import tempfile
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.loop import STAGES
from keras_transformer.export.apart import LARGE
from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert import converter, kernels
from keras_transformer.export.litert.calibration import FakeQuantized, keep_in_float
from keras_transformer.export.litert.compact import store_once
from keras_transformer.export.litert.int4 import Int4Rows, store_in_int4
from keras_transformer.export.litert.merge import merge
from keras_transformer.export.litert.serialization import read_model
from keras_transformer.export.litert.stand_ins import QUANTIZATIONS, StandIns
from keras_transformer.export.litert.static_int8 import finish_static_int8
from keras_transformer.export.litert.stored_weights import Unrecognized
from keras_transformer.export.place import save
from keras_transformer.free_memory import return_free_memory
from keras_transformer.layers.kernels import Kernels

TEXT = "TFText>"  # prefix of the names of TensorFlow Text's operators

# Kernels that read rows of weights, by quantisation.
ROWS = {"int8": kernels.Int8Rows, "int8_static": kernels.Int8Rows, "int4": Int4Rows}


def convert(pipeline, signatures, quantize, searches, ranges=None, strings: Any = None) -> bytes:
    """Returns the bytes of a .tflite model with the given signatures.

    Args:
        pipeline: A `Generator`, which is not changed.
        signatures: List of `FixedSignature`s that take token ids.
        quantize: `"none"`, `"float16"`, `"int8"`, `"int8_static"` or `"int4"`.
        searches: The `LoopSearches` or the `UnrolledSearches` of the signatures.
        ranges: Result of `calibrate`, for `"int8_static"`.
        strings: The `StringSignatures`. `None`: no signature takes strings.

    Raises:
        ExportError: If the model needs operators that LiteRT does not have, apart from those of
            TensorFlow Text for `strings`. The message names them.
    """
    grows = quantize != "int8_static"

    def functions_of(pipeline, within):
        for signature in signatures:
            yield from searches.functions(pipeline, signature, within)
        if strings is not None:
            yield from strings.functions(searches.find_of(pipeline), within)

    kernels_of = functools.partial(
        search_kernels, pipeline.model, quantize, ranges, grows, write=searches.write
    )
    custom = TEXT if strings else ""
    content = convert_copy(pipeline, quantize, kernels_of, functions_of, custom)
    if quantize == "int8_static":
        content = finish_static_int8(content)
    if quantize in ROWS and pipeline.shortlist is not None:
        content = kernels.multiply_in_int8(content)
    return finish(content, quantize)


def finish(content, quantize) -> bytes:
    """Returns a converted .tflite model in the form in which it is stored.

    Args:
        content: Result of `convert_copy`.
        quantize: See `convert`.

    Raises:
        ExportError: See `store_in_int4`.
    """
    if quantize == "int4":
        content = store_in_int4(content)
    return bytes(store_once(content) if quantize in ROWS else content)


def search_kernels(
    model, quantize, ranges, grows, code_of=lambda path: None, write=kernels.write
) -> Kernels:
    """Returns the `Kernels` of a model that a search calls.

    Args:
        model: The model.
        quantize, ranges: See `convert`.
        grows: Whether the cache grows in stages.
        code_of: See `Int8Rows`.
        write: See `Kernels`.
    """
    chosen = {
        "positions": kernels.Positions(),
        "log_sum_exp": kernels.log_sum_exp,
        "write": write,
        "cache_stages": STAGES,
    }
    if quantize in ROWS:
        tables = [layer.table for layer in model.embeddings]
        kernel = getattr(model.output_layer, "kernel", None)
        rows = ROWS[quantize](tables, kernel, model.output_bias, code_of)
        chosen.update(look_up=rows.look_up, restrict=rows.restrict, pick=rows.pick)
    if ranges is not None:
        chosen.update(dense=FakeQuantized(model, ranges), keep=keep_in_float)
    if grows:
        chosen.update(similarity=kernels.single_similarity)
    return Kernels(**chosen)


def convert_copy(pipeline, quantize, kernels_of, functions_of, custom="") -> bytes | bytearray:
    """Returns the bytes of a .tflite model whose signatures use a copy of a pipeline.

    Most weights are not in the graphs while they are converted: see `StandIns`.

    Args:
        pipeline: A `Pipeline`, which is not changed.
        quantize: See `convert`. For `"int4"` the result is in int8: see `store_in_int4`.
        custom: See `convert_functions`.
        kernels_of: Function that returns the `Kernels` of the copy. Its argument is the `code_of`
            of `Int8Rows`.
        functions_of: Function that yields the names of the signatures and concrete functions. Its
            arguments are the copy and a function, which must be applied to every function of the
            copy before it is traced.

    Raises:
        ExportError: See `convert_functions`.
    """
    quantize = "int8" if quantize == "int4" else quantize
    for kinds in (QUANTIZATIONS, ()):  # the second time with all weights in the graphs
        stand_ins = StandIns(pipeline.model, quantize, kinds)
        model = stand_ins.copy(pipeline.model, kernels_of(stand_ins.code_of))
        functions = _noted(functions_of(pipeline.with_model(model), stand_ins.within), stand_ins)
        if stand_ins.size < LARGE or custom:
            content = convert_functions(
                model, dict(functions), quantize, custom, stand_ins.read(model)
            )
        else:
            return_free_memory()  # that of the copy's weights
            content = merge(_converted_apart(functions, quantize, stand_ins.read(model)))
        del model, functions
        with contextlib.suppress(Unrecognized):
            return stand_ins.replace(content)
    raise AssertionError("Without stand-ins every weight is recognised.")


def _noted(functions, stand_ins):
    """Yields the names and functions, each after `StandIns` noted its constants."""
    for name, function in functions:
        stand_ins.note(function)
        yield name, function
        del function  # its graph is not needed while the next one is traced


def _converted_apart(functions, quantize, read):
    """Yields the bytes of a .tflite model for each of the functions.

    Args:
        functions: Iterable of names and concrete functions.
        quantize, read: See `convert_functions`.
    """
    for name, function in functions:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            _save_functions({name: function}, read, folder / converter.MODEL)
            del function
            return_free_memory()
            with _named_operators():
                content = converter.convert_apart(folder, name, quantize)
        yield content
        del content


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
        folder = pathlib.Path(folder, converter.MODEL)
        _save_functions(functions, read, folder)
        with _named_operators():
            content = converter.convert_saved_model(folder, list(functions), quantize, custom)
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


def custom_operators(content) -> list[str]:
    """Returns the names of the operators of a .tflite model that are not LiteRT's builtin ones.

    Args:
        content: The bytes of the model.
    """
    codes = read_model(content).operatorCodes
    return sorted(code.customCode.decode() for code in codes if code.customCode)
