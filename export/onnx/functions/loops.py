"""Loops and branches of TensorFlow as those of ONNX."""

import numpy as np
import tensorflow as tf
from onnx import helper

from keras_transformer.export.onnx.functions.needed import needed_by
from keras_transformer.export.onnx.graph.builder import Graph, info
from keras_transformer.export.onnx.graph.values import Reserved, Symbol, Value
from keras_transformer.export.onnx.operators.lists import zeros

BOOL = np.dtype("bool")


def loop(functions, graph, op, inputs, needed) -> list:
    """Returns the outputs of a while loop, `None` for those that nothing needs.

    A variable that the loop does not change is read from outside; one that nothing needs is left
    out.

    Args:
        functions: The `Functions`.
        graph: The `Graph` of the loop.
        op: The operation of TensorFlow.
        inputs: List of the initial `Value`s of its variables.
        needed: List with `True` for each variable whose last value is needed.
    """
    shapes = [tf.TensorShape(shape) for shape in op.get_attr("output_shapes")]
    shapes = shapes or [tensor.shape for tensor in op.inputs]
    condition, body = (functions.graph(op.get_attr(name).name, shapes) for name in ("cond", "body"))
    fixed = [
        _source(output) is argument
        for output, argument in zip(body.outputs, body.inputs, strict=True)
    ]
    read = _read(condition, condition.outputs) | {i for i, wanted in enumerate(needed) if wanted}
    while True:
        more = read | _read(body, [body.outputs[i] for i in read])
        if more == read:
            break
        read = more
    carried = [i for i in sorted(read) if not fixed[i]]
    inputs = _with_lists(functions, graph, body, inputs, carried, fixed)
    dims = {i: _common(shapes[i], inputs[i]) for i in carried}
    while True:
        inner = Graph(graph)
        arguments = {
            i: inner.input(inner.new_name("variable"), inputs[i].dtype, dims[i]) for i in carried
        }
        feeds = [arguments.get(i, value if fixed[i] else None) for i, value in enumerate(inputs)]
        results = functions.call(inner, body, feeds, [body.outputs[i] for i in carried])
        if _is_stable(dims, dict(zip(carried, results, strict=True))):
            break
    after = list(feeds)
    for i, value in zip(carried, results, strict=True):
        after[i] = value
    (goes_on,) = functions.call(inner, condition, after, condition.outputs)
    (begins,) = functions.call(graph, condition, inputs, condition.outputs)
    outputs = _own(inner, [goes_on, *results])
    count = inner.input(inner.new_name("iteration"), "int64", ())
    running = inner.input(inner.new_name("running"), BOOL, ())
    node = _body(inner, [count, running, *arguments.values()], outputs)
    names = ["", *(graph.name_of(value) for value in (begins, *(inputs[i] for i in carried)))]
    last = {
        i: graph.input(graph.new_name("loop"), value.dtype, tuple(dims[i]))
        for i, value in zip(carried, results, strict=True)
    }
    graph.nodes.append(
        helper.make_node("Loop", names, [value.name for value in last.values()], body=node)
    )
    return [
        last.get(i, value if fixed[i] else None) if needed[i] else None
        for i, value in enumerate(inputs)
    ]


def _with_lists(functions, graph, body, inputs, carried, fixed):
    """Returns the initial values with zeros for each `Reserved`, of the shape that the loop writes.

    For this the body is converted once, in a graph that is not used.
    """
    reserved = [i for i in carried if isinstance(inputs[i], Reserved)]
    if not reserved:
        return inputs
    inner = Graph(graph)
    feeds = [
        value
        if fixed[i] or i in reserved or value is None
        else inner.input(inner.new_name("variable"), value.dtype, value.dims)
        for i, value in enumerate(inputs)
    ]
    results = functions.call(inner, body, feeds, [body.outputs[i] for i in reserved])
    inputs = list(inputs)
    for i, result in zip(reserved, results, strict=True):
        inputs[i] = zeros(graph, inputs[i], result.dims[1:])
    return inputs


def branch(functions, graph, op, inputs) -> list[Value]:
    """Returns the outputs of a conditional, whose branches read their inputs from outside.

    Args:
        functions, graph, op: See `loop`.
        inputs: List of the `Value`s of the condition and of the inputs of both branches.
    """
    condition, *inputs = inputs
    shapes = [tensor.shape for tensor in op.inputs[1:]]
    names = "then_branch", "else_branch"
    branches = [functions.graph(op.get_attr(name).name, shapes) for name in names]
    if condition.is_constant:
        chosen = branches[0 if condition.constant else 1]
        return functions.call(graph, chosen, inputs, chosen.outputs)
    results, bodies = [], {}
    for name, function in zip(names, branches, strict=True):
        inner = Graph(graph, is_branch=True)
        results.append(functions.call(inner, function, inputs, function.outputs))
        bodies[name] = _body(inner, [], _own(inner, results[-1]))
    outputs = [
        graph.input(graph.new_name("if"), one.dtype, _merged(one.dims, other.dims))
        for one, other in zip(*results, strict=True)
    ]
    graph.nodes.append(
        helper.make_node(
            "If", [graph.name_of(condition)], [value.name for value in outputs], **bodies
        )
    )
    return outputs


def _source(tensor):
    """Returns the tensor that a tensor is the same as, through identities."""
    while tensor.op.type in ("Identity", "IdentityN", "StopGradient"):
        tensor = tensor.op.inputs[tensor.value_index]
    return tensor


def _read(function, outputs):
    """Returns the indices of the inputs of a function that some of its tensors depend on."""
    needed = needed_by(outputs, {})
    return {i for i, tensor in enumerate(function.inputs) if tensor.op in needed}


def _common(shape, value):
    """Returns the sizes of a variable that may be the same in all iterations, `None` for others."""
    is_known = shape.rank is not None and shape.rank == value.rank  # not that of a list
    sizes = shape.as_list() if is_known else value.dims
    return [
        size if size is not None else initial if isinstance(initial, Symbol) else None
        for size, initial in zip(sizes, value.dims, strict=True)
    ]


def _is_stable(dims, results):
    """Returns whether the sizes of all variables stay the same; forgets those that do not."""
    is_stable = True
    for i, sizes in dims.items():
        for axis, size in enumerate(sizes):
            if isinstance(size, Symbol) and results[i].dims[axis] is not size:
                sizes[axis], is_stable = None, False
    return is_stable


def _merged(one, other):
    """Returns the shape of the output of two branches."""
    return tuple(
        a if a is b or (isinstance(a, int) and isinstance(b, int) and a == b) else None
        for a, b in zip(one, other, strict=True)
    )


def _own(graph, values):
    """Returns values as outputs of a graph, each computed in it and only once."""
    seen, result = set(), []
    for value in values:
        if value.graph is not graph or value.made is None or value.name in seen:
            name = graph.new_name("output")
            graph.nodes.append(helper.make_node("Identity", [graph.name_of(value)], [name]))
            value = graph.input(name, value.dtype, value.dims)
        seen.add(value.name)
        result.append(value)
    return result


def _body(graph, inputs, outputs):
    """Returns the `GraphProto` of a graph."""
    return helper.make_graph(
        graph.nodes, graph.new_name("body"), list(map(info, inputs)), list(map(info, outputs))
    )
