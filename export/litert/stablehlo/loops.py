"""Loops whose condition and body are functions, the only form in which a .tflite model has them.

LiteRT's passes leave the condition and the body inside of the loop, where they may read any value
of the function around them. Here both become functions of their own, and what they read from
outside becomes a part of the loop's state. TensorFlow's converter has a pass for this.
"""

import typing
from typing import Any

WHILE = "tfl.while"
CONSTANTS = {"arith.constant", "tfl.no_value", "tfl.pseudo_const"}
PARTS = ("condition", "body")  # the regions of a loop


def outline_loops(ir: Any, module: Any) -> None:
    """Changes a module so that the parts of its loops are functions.

    Args:
        ir: MLIR's module for programs.
        module: The MLIR module, in LiteRT's dialect.
    """
    loops = [op for op in operations_of(module.operation) if op.name == WHILE]
    for number, loop in enumerate(loops):  # the inner ones come first
        _outline(ir, module, loop, f"{WHILE.rpartition('.')[2]}_{number}")


def operations_of(operation: Any) -> typing.Iterator[Any]:
    """Yields all operations inside an operation, each after those inside of it."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                yield from operations_of(inner.operation)
                yield inner.operation


def _outline(ir, module, loop, name):
    for region in loop.regions:
        _copy_constants(ir, region)
    read = list(dict.fromkeys(value for region in loop.regions for value in _read(region)))
    state = [*loop.operands, *read]
    calls = [
        _as_function(ir, module, region, read, f"{name}_{part}", keeps=part == "body")
        for part, region in zip(PARTS, loop.regions, strict=True)
    ]
    types = [value.type for value in state]
    with ir.InsertionPoint(loop), loop.location:
        stateless = {"is_stateless": ir.BoolAttr.get(False)}
        outlined = ir.Operation.create(
            WHILE, results=types, operands=state, attributes=stateless, regions=len(PARTS)
        )
        for (function, results), region in zip(calls, outlined.regions, strict=True):
            block = region.blocks.append(*types)
            with ir.InsertionPoint(block):
                callee = {"callee": ir.FlatSymbolRefAttr.get(function)}
                call = ir.Operation.create(
                    "func.call", results=results, operands=list(block.arguments), attributes=callee
                )
                ir.Operation.create("tfl.yield", operands=list(call.results))
    for old, new in zip(loop.results, outlined.results, strict=False):
        old.replace_all_uses_with(new)
    loop.erase()


def _read(region):
    """Returns the values that operations of a region read from outside of it."""
    inside, read = set(), {}
    for block in region.blocks:
        inside |= set(block.arguments)
    operations = [op for block in region.blocks for op in _all_of(block)]
    for operation in operations:
        inside |= set(operation.results)
        for inner in operation.regions:
            for block in inner.blocks:
                inside |= set(block.arguments)
    for operation in operations:
        read |= dict.fromkeys(value for value in operation.operands if value not in inside)
    return list(read)


def _all_of(block):
    for operation in list(block.operations):
        yield from operations_of(operation.operation)
        yield operation.operation


def _copy_constants(ir, region):
    """Copies the constants that a region reads from outside into it."""
    for value in _read(region):
        owner = value.owner
        operation = owner if isinstance(owner, ir.Operation) else getattr(owner, "operation", None)
        if operation is not None and operation.name in CONSTANTS:
            with ir.InsertionPoint.at_block_begin(region.blocks[0]):
                copy = operation.clone()
            _replace(region, value, copy.results[0])


def _replace(region, old, new):
    """Lets the operations of a region read another value."""
    for block in region.blocks:
        for operation in _all_of(block):
            operation.replace_uses_of_with(old, new)


def _as_function(ir, module, region, read, name, keeps):
    """Moves a region into a new function.

    Args:
        ir, module: See `outline_loops`.
        region: A region of one block.
        read: List of values from outside that become further arguments.
        name: Name of the function.
        keeps: Whether the function also returns these arguments unchanged.

    Returns:
        The name, and the types of the results.
    """
    (block,) = region.blocks
    arguments = [block.add_argument(value.type, value.location) for value in read]
    for value, argument in zip(read, arguments, strict=True):
        _replace(region, value, argument)
    end = list(block.operations)[-1].operation
    results = [*end.operands, *(arguments if keeps else ())]
    types = [value.type for value in results]
    signature = ir.FunctionType.get([value.type for value in block.arguments], types)
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(signature),
        "sym_visibility": ir.StringAttr.get("private"),
    }
    with end.location:
        with ir.InsertionPoint(module.body):
            function = ir.Operation.create("func.func", attributes=attributes, regions=1)
        with ir.InsertionPoint(end):
            ir.Operation.create("func.return", operands=results)
    end.erase()
    block.append_to(function.regions[0])
    return name, types
