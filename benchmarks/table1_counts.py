"""Sequential operations and multiplications of a graph, and how far a layer reaches, counted.

A graph of TensorFlow is a set of operations with their inputs, and a loop is one operation that
holds the graph of its body. The length of the longest chain of dependent operations is what Table 1
of Vaswani et al. (2017) calls sequential operations: with any number of processors, a computation
takes at least as many steps.
"""

import graphlib
import math

import numpy as np
import tensorflow as tf
from measurements import BenchmarkError

LOOPS = "While", "StatelessWhile"
CALLS = "PartitionedCall", "StatefulPartitionedCall"
# Operations that move or copy data, which add nothing to a chain. `TensorList...` do as well.
MOVES = {
    "BatchToSpaceND", "BroadcastTo", "Cast", "ConcatV2", "Const", "ExpandDims", "Fill",
    "GatherV2", "Identity", "IdentityN", "MirrorPad", "Pack", "Pad", "PadV2", "Placeholder",
    "ReadVariableOp", "Reshape", "ReverseV2", "Roll", "Slice", "SpaceToBatchND", "Split",
    "SplitV", "Squeeze", "StopGradient", "StridedSlice", "StridedSliceGrad", "Tile",
    "Transpose", "Unpack", "ZerosLike",
}  # fmt: skip
PRODUCTS = {"MatMul": "transpose_a", "BatchMatMul": "adj_x", "BatchMatMulV2": "adj_x"}
# The index of the kernel and of the output, among the inputs and then the outputs. The gradients
# of a convolution multiply as often as the convolution itself.
CONVOLUTIONS = {
    "Conv2D": (1, 2),
    "Conv2DBackpropInput": (1, 2),  # its third input is the gradient of the output
    "Conv2DBackpropFilter": (3, 2),  # its result has the shape of the kernel
}
VANISHED = 1e-30  # a float32 gradient below it continues below 1e-38, the smallest float32


class Counts:
    """Counts of one call of a function, whose loops run as in the call.

    Args:
        call: Function of a tensor, or of a nest of tensors, that returns a nest of tensors.
        x: The tensor or the nest.

    Attributes:
        operations: Length of the longest chain of operations that compute, each of which needs the
            result of the one before. Operations that only move data do not count.
        trips: Number of trips of the longest loop; 0 without a loop.
        multiplications: Number of multiplications in products of matrices and convolutions.

    Raises:
        BenchmarkError: If the graph has control flow that is not counted, such as a loop in a loop.
    """

    def __init__(self, call, x):
        @tf.function
        def traced(x):
            result, graph = call(x), tf.compat.v1.get_default_graph()
            counters = {loop.name: loop.outputs[0] for loop in _loops(graph)}
            shapes = {tensor.name: tf.shape(tensor) for tensor in _of_unknown_shape(graph)}
            return result, counters, shapes

        specs = tf.nest.map_structure(lambda tensor: tf.TensorSpec(tensor.shape, tensor.dtype), x)
        concrete = traced.get_concrete_function(specs)
        graph, (_, counters, shapes) = concrete.graph, concrete.structured_outputs
        if counters or shapes:  # otherwise the graph says it all
            _, counters, shapes = concrete(x)
        loops = {name: int(count) for name, count in counters.items()}
        shapes = {name: shape.numpy().tolist() for name, shape in shapes.items()}
        self.trips = max(loops.values(), default=0)
        chains = _chains(graph, graph.inputs, graph.outputs, loops)
        self.operations = int(chains.max())
        self.multiplications = _multiplications(graph, graph.outputs, loops, shapes)


def _loops(graph):
    return [operation for operation in graph.get_operations() if operation.type in LOOPS]


def _of_unknown_shape(graph):
    """Returns the tensors of products and convolutions whose shape is only known at run time."""
    return [
        tensor
        for operation in graph.get_operations()
        if operation.type in (*PRODUCTS, *CONVOLUTIONS, "Einsum")
        for tensor in (*operation.inputs, *operation.outputs)
        if not tensor.shape.is_fully_defined()
    ]


def _chains(graph, inputs, outputs, loops):
    """Returns the longest chain from each input (rows) to each output (columns).

    The last row is for chains that begin in the graph itself. `-inf`: there is no chain.
    """
    size = len(inputs) + 1
    longest = {}  # from a tensor's name to the chains that end in it, one for each input
    for number, tensor in enumerate(inputs):
        longest[tensor.name] = np.full(size, -np.inf)
        longest[tensor.name][number] = 0
    begin = np.full(size, -np.inf)
    begin[-1] = 0
    for operation in _needed(outputs):
        if operation.type in (*LOOPS, *CALLS):
            before = np.stack([*(longest[tensor.name] for tensor in operation.inputs), begin])
            after = _product(before.T, _inner_chains(graph, operation, loops)).T
        else:
            before = np.max([begin, *(longest[tensor.name] for tensor in operation.inputs)], axis=0)
            after = [before + _length(operation)] * len(operation.outputs)
        for tensor, chains in zip(operation.outputs, after, strict=True):
            longest.setdefault(tensor.name, chains)  # inputs of the graph have theirs
    return np.stack([longest[tensor.name] for tensor in outputs], axis=1)


def _needed(outputs):
    """Returns the operations that outputs depend on, each after those that it depends on.

    A graph may have others, which are not executed.
    """
    needed, waiting = {}, [tensor.op for tensor in outputs]
    while waiting:
        operation = waiting.pop()
        if operation not in needed:
            needed[operation] = {tensor.op for tensor in operation.inputs}
            waiting += needed[operation]
    return list(graphlib.TopologicalSorter(needed).static_order())


def _inner_chains(graph, operation, loops):
    """Returns the longest chains from the inputs of a loop or a call to its outputs."""
    body = _body(graph, operation)
    chains = _chains(body, body.inputs, body.outputs, {})  # the loops of a body are not counted
    if operation.type in CALLS:
        return chains
    # A further column, so that chains that begin in one trip continue in the next one.
    begin = np.full((len(chains), 1), -np.inf)
    begin[-1] = 0
    once, result = np.concatenate([chains, begin], axis=1), _identity(len(chains))
    for _ in range(_trips(operation, loops)):
        result = _product(result, once)
    return result[:, :-1]


def _identity(size):
    return np.where(np.eye(size, dtype=bool), 0.0, -np.inf)


def _product(first, second):
    """Returns the longest chains through two graphs: a product with maximum in place of sum."""
    return (first[:, :, None] + second[None]).max(axis=1)


def _length(operation):
    """Returns 1 for an operation that computes with floating-point numbers, otherwise 0."""
    moves = operation.type in MOVES or operation.type.startswith("TensorList")
    return int(not moves and any(tensor.dtype.is_floating for tensor in operation.outputs))


def _body(graph, operation):
    """Returns the graph that a loop or a call holds."""
    name = operation.get_attr("body" if operation.type in LOOPS else "f").name
    return graph._get_function(name).graph


def _trips(operation, loops):
    if operation.name not in loops:
        raise BenchmarkError(
            f"a loop inside of a loop or of a call cannot be counted. Received: {operation.name}."
        )
    return loops[operation.name]


def _multiplications(graph, outputs, loops, shapes):
    """Returns the multiplications in the products and convolutions of a graph.

    Args:
        graph: The graph.
        outputs: What it computes.
        loops: Number of trips of its loops, by name.
        shapes: Shapes of the tensors of `_of_unknown_shape`, by name.
    """
    total = 0
    for operation in _needed(outputs):
        if operation.type in (*LOOPS, *CALLS):
            times = _trips(operation, loops) if operation.type in LOOPS else 1
            body = _body(graph, operation)
            total += times * _multiplications(body, body.outputs, {}, {})
        elif operation.type in PRODUCTS:
            left, output = _shape(operation.inputs[0], shapes), _shape(operation.outputs[0], shapes)
            total += math.prod(output) * left[-2 if _is_transposed(operation) else -1]
        elif operation.type in CONVOLUTIONS:
            tensors = (*operation.inputs, *operation.outputs)
            kernel, output = (_shape(tensors[n], shapes) for n in CONVOLUTIONS[operation.type])
            total += math.prod(output) * math.prod(kernel[:-1])
        elif operation.type == "Einsum":
            total += _of_einsum(operation, shapes)
        elif "Conv" in operation.type:
            raise BenchmarkError(f"the multiplications of {operation.type} are not counted.")
    return total


def _of_einsum(operation, shapes):
    """Returns the multiplications of an `Einsum`, without an ellipsis: one for each set of indices.

    That of a single tensor, a sum or a transposition, has none.
    """
    if len(operation.inputs) == 1:
        return 0
    terms = operation.get_attr("equation").decode().partition("->")[0].split(",")
    sizes = {}
    for letters, tensor in zip(terms, operation.inputs, strict=True):
        sizes.update(zip(letters, _shape(tensor, shapes), strict=True))
    return math.prod(sizes.values())


def _is_transposed(operation):
    return operation.get_attr(PRODUCTS[operation.type])


def _shape(tensor, shapes):
    return shapes.get(tensor.name) or tensor.shape.as_list()


def gradient_sizes(layer, x, position):
    """Returns the largest gradient that an output position has at each input position, `[T]`.

    Args:
        layer: A layer from `[1, T, D]` to `[1, T, D]`.
        x: `[1, T, D]`.
        position: Index of the output position.
    """
    weights = np.random.default_rng(2).standard_normal(x.shape[-1]).astype("float32")
    layer.build(x.shape)

    @tf.function
    def sizes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.tensordot(layer(x)[0, position], weights, axes=1)
        return tf.reduce_max(tf.abs(tape.gradient(value, x)), axis=(0, 2))

    return sizes(x).numpy()


def vanishes(sizes):
    """Returns whether a gradient ends because it is too small, not because a layer ends there.

    Args:
        sizes: Result of `gradient_sizes`.
    """
    return bool(0 < sizes[sizes > 0].min() < VANISHED)
