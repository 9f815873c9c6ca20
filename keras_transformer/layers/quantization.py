"""Sublayers quantised by `model.quantize`, in the saved configuration of a layer or model."""

from collections.abc import Iterator
from typing import Any

import keras
from keras.dtype_policies import DTypePolicy, DTypePolicyMap


def policy_of(layer: keras.Layer, policy: DTypePolicy) -> DTypePolicy:
    """Returns the dtype policy to store in the configuration of a layer.

    `model.quantize` gives sublayers their own policies, which are needed to load a saved model.

    Args:
        layer: A layer or a model.
        policy: Dtype policy of `layer` itself.

    Returns:
        `policy`; if sublayers are quantised, a `DTypePolicyMap` with `policy` as its default and
        the policies of these sublayers.
    """
    own = {name: sub.dtype_policy for name, sub in _sublayers(layer) if sub.quantization_mode}
    return keras.dtype_policies.DTypePolicyMap(policy, own) if own else policy


def split_policy(policy: Any) -> tuple[Any, DTypePolicyMap | None]:
    """Returns the dtype policy to build a layer with, and the map of quantised sublayers or `None`.

    Args:
        policy: A dtype policy or the result of `policy_of`; either may be serialized.
    """
    if isinstance(policy, dict):
        policy = keras.dtype_policies.get(policy)
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy.default_policy, policy
    return policy, None


def quantize_sublayers(layer: keras.Layer, policies: DTypePolicyMap) -> None:
    """Quantises the sublayers of a built layer with the policies that `policy_of` stored.

    Keras cannot be left to do this: when the model is saved again, it would take the default of the
    map as the policy of a `Dense`.
    """
    for name, sublayer in _sublayers(layer):
        if name in policies:
            sublayer.dtype_policy = policies[name]


def _sublayers(layer: keras.Layer) -> Iterator[tuple[str, keras.Layer]]:
    """Yields the path of each sublayer, relative to the layer, and the sublayer."""
    for sublayer in layer._flatten_layers(include_self=False):
        yield (sublayer.path or "").removeprefix(f"{layer.path}/"), sublayer
