"""Gradients from activations that are computed again instead of kept: `keras.RematScope`."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.tensors import Tensor


def recomputing(layer: keras.Layer, call: Callable, again: Callable) -> Callable:
    """Returns a function like the `call` of a layer, of which only the inputs are kept.

    For the gradient, the layer is called again with the same state of its random numbers, so that
    dropout has the same masks. Keras draws others. It also accepts neither masks nor, in a graph,
    arguments by name.

    Args:
        layer: The layer, which is built.
        call: Its `call`.
        again: Its `__call__`, without rematerialisation.

    Reference: Chen et al. (2016), Training Deep Nets with Sublinear Memory Cost, section 4.
    """

    def rematerialized(*args, **kwargs):
        nest = args, kwargs
        leaves = keras.tree.flatten(nest)
        places = [place for place, leaf in enumerate(leaves) if _is_differentiable(leaf)]
        if not places:  # an embedding of tokens, which has nothing to keep
            return call(*args, **kwargs)
        seeds = [(seed, ops.copy(seed.value)) for seed in _seeds(layer)]
        calls, structure = [], []

        def compute(*inputs):
            """Returns a list of the outputs; the first time, also sets their `structure`."""
            given = dict(zip(places, inputs, strict=True))
            filled = [given.get(place, leaf) for place, leaf in enumerate(leaves)]
            args, kwargs = keras.tree.pack_sequence_as(nest, filled)
            calls.append(None)
            if len(calls) == 1:
                outputs = call(*args, **kwargs)
                structure.append(keras.tree.map_structure(lambda _: None, outputs))
            else:
                with keras.StatelessScope(state_mapping=seeds):
                    outputs = again(*args, **kwargs)
            return keras.tree.flatten(outputs)

        outputs = keras.remat(compute)(*(leaves[place] for place in places))
        return keras.tree.pack_sequence_as(structure[0], outputs)

    return rematerialized


def _is_differentiable(leaf: Any) -> bool:
    return ops.is_tensor(leaf) and keras.backend.is_float_dtype(
        keras.backend.standardize_dtype(leaf.dtype)
    )


def _seeds(layer) -> list[Tensor]:
    """Returns the states of the random numbers of a layer, the variables that are integers."""
    return [
        variable
        for variable in layer.non_trainable_variables
        if not keras.backend.is_float_dtype(variable.dtype)
    ]
