"""Conversion of a model and its signatures to the bytes of a .tflite file."""

import contextlib
import functools
from typing import Any

from keras_transformer.decoding.loop import STAGES
from keras_transformer.export.litert import kernels
from keras_transformer.export.litert.calibration import FakeQuantized, keep_in_float
from keras_transformer.export.litert.compact import store_once
from keras_transformer.export.litert.converters import TENSORFLOW
from keras_transformer.export.litert.int4 import Int4Rows, store_in_int4
from keras_transformer.export.litert.searches import LoopSearches
from keras_transformer.export.litert.stand_ins import StandIns
from keras_transformer.export.litert.static_int8 import finish_static_int8
from keras_transformer.export.litert.stored_weights import Unrecognized
from keras_transformer.layers.kernels import Kernels

TEXT = "TFText>"  # prefix of the names of TensorFlow Text's operators

# Kernels that read rows of weights, by quantisation.
ROWS = {"int8": kernels.Int8Rows, "int8_static": kernels.Int8Rows, "int4": Int4Rows}


def convert(
    pipeline,
    signatures,
    quantize,
    ranges=None,
    strings: Any = None,
    searches: Any = None,
    converter=TENSORFLOW,
) -> bytes | bytearray:
    """Returns the bytes of a .tflite model with the given signatures.

    Args:
        pipeline: A `Generator`, which is not changed.
        signatures: List of `FixedSignature`s that take token ids.
        quantize: `"none"`, `"float16"`, `"int8"`, `"int8_static"` or `"int4"`.
        ranges: Result of `calibrate`, for `"int8_static"`.
        strings: The `StringSignatures`. `None`: no signature takes strings.
        searches: The `LoopSearches` or the `UnrolledSearches` of the signatures. `None`: loops with
            the default settings of beams.
        converter: The `Converter`.

    Raises:
        ExportError: If the model needs operators that LiteRT does not have, apart from those of
            TensorFlow Text for `strings`. The message names them.
    """
    grows = quantize != "int8_static"
    searches = LoopSearches(grows=grows) if searches is None else searches

    def functions_of(pipeline, within):
        for signature in signatures:
            yield from searches.functions(pipeline, signature, within)
        if strings is not None:
            yield from strings.functions(searches.find_of(pipeline), within)

    kernels_of = functools.partial(
        search_kernels, pipeline.model, quantize, ranges, grows, write=searches.write
    )
    custom = TEXT if strings else ""
    content = convert_copy(converter, pipeline, quantize, kernels_of, functions_of, custom)
    if quantize == "int8_static":
        content = finish_static_int8(content)
    if quantize in ROWS and pipeline.shortlist is not None:
        content = kernels.multiply_in_int8(content)
    return finish(content, quantize)


def finish(content, quantize) -> bytes | bytearray:
    """Returns a converted .tflite model in the form in which it is stored.

    Args:
        content: Result of `convert_copy`.
        quantize: See `convert`.

    Raises:
        ExportError: See `store_in_int4`.
    """
    if quantize == "int4":
        content = store_in_int4(content)
    return store_once(content) if quantize in ROWS else content


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
        chosen.update(similarity=kernels.single_similarity, settle=kernels.settle)
    return Kernels(**chosen)


def convert_copy(
    converter, pipeline, quantize, kernels_of, functions_of, custom=""
) -> bytes | bytearray:
    """Returns the bytes of a .tflite model whose signatures use a copy of a pipeline.

    Most weights are not in the graphs while they are converted: see `StandIns`.

    Args:
        converter: The `Converter`.
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
    for kinds in converter.stand_ins:  # the last time with all weights in the graphs
        stand_ins = StandIns(pipeline.model, quantize, kinds)
        model = stand_ins.copy(pipeline.model, kernels_of(stand_ins.code_of))
        functions = _noted(functions_of(pipeline.with_model(model), stand_ins.within), stand_ins)
        content = converter.convert(
            functions, stand_ins.read(model), quantize, custom, stand_ins.size
        )
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
