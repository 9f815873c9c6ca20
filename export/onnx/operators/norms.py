"""Layer normalisation as one operator, where a graph computes it step by step."""

import numpy as np


def layer_norm(graph, scaled, offset):
    """Returns a `LayerNormalization` if a sum is one, otherwise `None`.

    Keras computes `x * scale + (-mean * scale + beta)` with
    `scale = gamma / sqrt(mean((x - mean)^2) + epsilon)`.

    Args:
        graph: The `Graph`.
        scaled, offset: The terms of the sum.
    """
    x, scale = _inputs(scaled, "Mul")
    shift, beta = _inputs(offset, "Add")
    negative, same = _inputs(shift, "Mul")
    (mean,) = _inputs(negative, "Neg", 1)
    if x is None or mean is None or same is not scale:
        return None
    inverse, gamma = _inputs(scale, "Mul")
    (root,) = _inputs(inverse, "Reciprocal", 1)
    (sum_,) = _inputs(root, "Sqrt", 1)
    variance, epsilon = _inputs(sum_, "Add")
    square, axes = _inputs(variance, "ReduceMean")
    deviation, other = _inputs(square, "Mul")
    start, center = _inputs(deviation, "Sub")
    averaged, axes_of_mean = _inputs(mean, "ReduceMean")
    matches = deviation is other and start is averaged is x and center is mean is not None
    if not matches or not all(
        value is not None and value.is_constant
        for value in (gamma, beta, epsilon, axes, axes_of_mean)
    ):
        return None
    width = x.dims[-1]
    last = [[x.rank - 1], [-1]]
    if axes.constant.tolist() not in last or axes_of_mean.constant.tolist() not in last:
        return None
    if any(value.dims[-1:] != (width,) or value.constant.size != width for value in (gamma, beta)):
        return None
    factors = [value.constant.reshape(width).astype(np.float32) for value in (gamma, beta)]
    epsilon = float(epsilon.constant.item())
    return graph.add("LayerNormalization", [x, *factors], x.dtype, x.dims, axis=-1, epsilon=epsilon)


def _inputs(value, kind, count=2):
    """Returns the inputs of the node that computes a value; `None`s if it is of another kind."""
    if value is None or value.made is None or value.made[0] != kind:
        return [None] * count
    return value.made[1]
