"""Sorts as selections of the largest values, the only form in which LiteRT has them."""

from typing import Any

import numpy as np

from keras_transformer.export.litert.stablehlo.loops import operations_of

SORT, TOP_K = "stablehlo.sort", "tfl.topk_v2"


def select_instead_of_sorting(ir: Any, module: Any) -> None:
    """Changes the sorts of a module that are in descending order, along the last axis.

    XLA makes them of `tf.math.top_k` if its indices are not used. Others are left.

    Args:
        ir: MLIR's module for programs.
        module: The MLIR module, in LiteRT's dialect except for its sorts.
    """
    for sort in [op for op in operations_of(module.operation) if op.name == SORT]:
        if _is_descending(ir, sort):
            _select(ir, sort)


def _is_descending(ir, sort):
    if len(sort.operands) != 1:
        return False
    shape = ir.RankedTensorType(sort.operands[0].type).shape
    if ir.IntegerAttr(sort.attributes["dimension"]).value != len(shape) - 1:
        return False
    first, *others = (operation.operation for operation in sort.regions[0].blocks[0].operations)
    compares = first.name == "tfl.greater" or (
        first.name == "stablehlo.compare" and "GT" in str(first.attributes["comparison_direction"])
    )
    arguments = list(sort.regions[0].blocks[0].arguments)
    return compares and list(first.operands) == arguments and len(others) == 1


def _select(ir, sort):
    (values,) = sort.operands
    shape = ir.RankedTensorType(values.type).shape
    with ir.InsertionPoint(sort), sort.location:
        scalar = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
        number = ir.DenseElementsAttr.get(np.array(shape[-1], np.int32), type=scalar)
        count = ir.Operation.create("arith.constant", [scalar], attributes={"value": number})
        places = ir.RankedTensorType.get(shape, scalar.element_type)
        operands = [values, count.results[0]]
        top = ir.Operation.create(TOP_K, results=[values.type, places], operands=operands)
    sort.results[0].replace_all_uses_with(top.results[0])
    sort.erase()
