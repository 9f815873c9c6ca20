"""Counts of operations and variables in a program that TensorFlow hands to XLA."""

import math

from tensorflow.compiler.xla.service import hlo_pb2


class Counts:
    """Counts in a serialized `HloModuleProto`.

    A multiplication and an addition are two operations. Only products of matrices and convolutions
    are counted; XLA's own analysis has all operations, but counts the body of a loop once.

    Attributes:
        flops: Operations of the program. A loop that ends when a condition holds counts as none.
        steps: Operations of one step of each such loop, in the order of the program; not of loops
            that only repeat others.
        updated: Number of arguments that the program overwrites: variables and optimizer states.
    """

    def __init__(self, content):
        module = hlo_pb2.HloModuleProto.FromString(content)
        self._computations = {item.id: item for item in module.computations}
        self.steps = []
        self.flops = self._flops_of(module.entry_computation_id)
        self.updated = len(module.input_output_alias.entries)

    def _flops_of(self, computation):
        instructions = _by_id(self._computations[computation])
        return sum(self._flops(item, instructions) for item in instructions.values())

    def _flops(self, item, instructions):
        if item.opcode == "while":
            return self._loop(item, instructions)
        if item.opcode == "dot":
            left = instructions[item.operand_ids[0]].shape.dimensions
            summed = item.dot_dimension_numbers.lhs_contracting_dimensions
            return 2 * math.prod(item.shape.dimensions) * math.prod(left[axis] for axis in summed)
        if item.opcode == "convolution":
            kernel = instructions[item.operand_ids[1]].shape.dimensions
            outputs = kernel[item.convolution_dimension_numbers.kernel_output_feature_dimension]
            return 2 * math.prod(item.shape.dimensions) * math.prod(kernel) // outputs
        return sum(map(self._flops_of, item.called_computation_ids))

    def _loop(self, item, instructions):
        body, condition = item.called_computation_ids
        flops = self._flops_of(body)
        trips = self._trips(condition, instructions[item.operand_ids[0]], instructions)
        if trips is None:
            if flops:  # a loop around others has no products of its own
                self.steps.append(flops)
            return 0
        return trips * flops

    def _trips(self, condition, start, instructions):
        """Returns the number of steps of a loop `for number in range(start, stop)`, or `None`."""
        computation = self._computations[condition]
        inner = _by_id(computation)
        item = inner[computation.root_id]
        while item.opcode in ("get-tuple-element", "call", "reshape", "tuple"):
            if item.opcode == "call":
                computation = self._computations[item.called_computation_ids[0]]
                inner = _by_id(computation)
                item = inner[computation.root_id]
            elif len(item.operand_ids) == 1:
                item = inner[item.operand_ids[0]]
            else:
                return None
        if item.opcode != "compare" or item.comparison_direction != "LT":
            return None
        number, stop = (inner[operand] for operand in item.operand_ids)
        if number.opcode != "get-tuple-element" or stop.opcode != "constant":
            return None
        first = instructions[start.operand_ids[number.tuple_index]]
        return stop.literal.s32s[0] - first.literal.s32s[0] if first.opcode == "constant" else None


def _by_id(computation):
    return {item.id: item for item in computation.instructions}
