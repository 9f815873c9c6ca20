"""Functions of TensorFlow as .tflite models, through StableHLO.

XLA translates a function to StableHLO, LiteRT's own compiler that to a model. TensorFlow's
converter, `tf.lite`, is to leave TensorFlow; this is the way that remains. It has no quantisation.
"""

import re
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from keras_transformer.export.errors import ExportError
from keras_transformer.export.litert.stablehlo.compiler import load_compiler
from keras_transformer.export.litert.stablehlo.loops import operations_of, outline_loops
from keras_transformer.export.litert.stablehlo.sorts import select_instead_of_sorting

BUILTIN = ("tfl", "func", "arith", "builtin", "quant")  # dialects that a model is written from


def convert_function(name: str, function: Any) -> bytes:
    """Returns the bytes of a .tflite model with one signature.

    Args:
        name: Name of the signature.
        function: A concrete function whose arguments are tensors of known shapes and which returns
            a dictionary of tensors. Its variables become constants.

    Raises:
        ExportError: If there is no translation of one of its operators.
        ValueError: If litert-converter is not installed.
    """
    ir, passes, litert = load_compiler()
    frozen: Any = convert_variables_to_constants_v2(function, lower_control_flow=False)
    program = _as_stablehlo(name, frozen)
    with ir.Context() as context, ir.Location.unknown():
        litert.prepare_mlir_context(context)
        module = ir.Module.parse(program)
        (main,) = (op for op in module.body.operations if op.sym_name.value == "main")
        inputs = [tensor.op.name for tensor in frozen.inputs]
        outputs = sorted(function.structured_outputs)
        litert.set_signature(main.operation, name, inputs, outputs)
        manager = passes.PassManager()
        litert.run_convert_to_tfl_passes(module, manager, litert.ConvertToTFLConfig())
        try:
            manager.run(module.operation)
            select_instead_of_sorting(ir, module)
            _check_operators(module)
            outline_loops(ir, module)
            return litert.export_flatbuffer_to_bytes(module.operation)
        except ir.MLIRError as error:
            raise ExportError(f"litert-converter cannot convert {name}: {_first(error)}") from error


def _as_stablehlo(name, frozen):
    """Returns a function without variables in StableHLO's binary form."""
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in frozen.inputs]
    compiled = tf.function(lambda *args: frozen(*args), jit_compile=True, autograph=False)
    try:
        return compiled.experimental_get_compiler_ir(*specs)(stage="stablehlo_serialized")
    except (tf.errors.OpError, ValueError) as error:
        raise ExportError(f"XLA cannot compile {name}: {_first(error)}") from error


def _check_operators(module):
    """Refuses operators that are not LiteRT's."""
    names = {operation.name for operation in operations_of(module.operation)}
    foreign = sorted(name for name in names if name.partition(".")[0] not in BUILTIN)
    if foreign:
        raise ExportError(f"LiteRT has no builtin operator for {', '.join(foreign)}.")


def _first(error):
    """Returns the first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if re.search(r"\w", line)]
    return said[0] if said else type(error).__name__
