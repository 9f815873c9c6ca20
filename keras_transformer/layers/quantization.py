"""Quantised sublayers, of `model.quantize`, in the configuration of a layer or a model."""

import keras


def policy_of(layer, policy):
    """Returns the dtype policy that the configuration of a layer keeps.

    `model.quantize` gives sublayers policies of their own, without which a file could not be read.

    Args:
        layer: A layer or a model.
        policy: Its own dtype policy.

    Returns:
        The policy; if sublayers are quantised, a `DTypePolicyMap` of it and theirs.
    """
    own = {name: sub.dtype_policy for name, sub in _sublayers(layer) if sub.quantization_mode}
    return keras.dtype_policies.DTypePolicyMap(policy, own) if own else policy


def split_policy(policy):
    """Returns the dtype policy to build a layer with, and the map of quantised sublayers or `None`.

    Args:
        policy: A dtype policy, or what `policy_of` returned, or either as plain values.
    """
    if isinstance(policy, dict):
        policy = keras.dtype_policies.get(policy)
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy.default_policy, policy
    return policy, None


def quantize_sublayers(layer, policies):
    """Quantises the sublayers of a layer that is built as `policy_of` found them.

    Not left to Keras, which takes the default of such a map for the policy of a `Dense` when that
    is saved once more.
    """
    for name, sublayer in _sublayers(layer):
        if name in policies:
            sublayer.dtype_policy = policies[name]


def _sublayers(layer):
    """Pairs of the path of every sublayer, from the layer on, and the sublayer."""
    for sublayer in layer._flatten_layers(include_self=False):
        yield (sublayer.path or "").removeprefix(f"{layer.path}/"), sublayer
