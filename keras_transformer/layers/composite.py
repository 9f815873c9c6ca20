"""A layer whose sublayers show in `model.summary()`, and whose call arguments are checked."""

import functools
import inspect

import keras

from keras_transformer.layers.kernels import DEFAULT
from keras_transformer.layers.masks import attached_mask, fitting_masks


class CompositeLayer(keras.Layer):
    """A layer made of named sublayers, all of which `model.summary()` lists.

    It takes part in Keras's masking: what it returns has the mask of its first argument.

    Args:
        kernels: The `Kernels` that it and its sublayers compute with.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.
    """

    def __init__(self, *, kernels=DEFAULT, **kwargs):
        policy, self._policies = split_policy(kwargs.pop("dtype", None))
        super().__init__(dtype=policy, **kwargs)
        self.kernels = kernels
        self.supports_masking = True

    def __call__(self, *args, **kwargs):
        """Calls the layer with arguments that `checked_arguments` has seen."""
        names = self.call_arguments()
        changed = self.checked_arguments({**dict(zip(names, args, strict=False)), **kwargs})
        by_place = [changed.pop(name, value) for name, value in zip(names, args, strict=False)]
        with fitting_masks():
            outputs = super().__call__(*by_place, *args[len(names) :], **{**kwargs, **changed})
        self._quantize_as_before()
        attached_mask(outputs[0] if isinstance(outputs, tuple) else outputs)  # is kept from now on
        return outputs

    def build_from_config(self, config):
        """Builds the layer as it was built before it was saved."""
        super().build_from_config(config)
        self._quantize_as_before()

    def _quantize_as_before(self):
        if self._policies and self.built:
            policies, self._policies = self._policies, None
            quantize_sublayers(self, policies)

    def get_config(self):
        """Returns the constructor's arguments."""
        policy = self._policies or policy_of(self, self.dtype_policy)
        return {**super().get_config(), "dtype": keras.dtype_policies.serialize(policy)}

    @classmethod
    @functools.cache
    def call_arguments(cls):
        """Returns the names of the arguments of `call`."""
        return tuple(inspect.signature(cls.call).parameters)[1:]

    def checked_arguments(self, given):
        """Refuses wrong arguments of a call; Keras would wrap an error of `call` into ten lines.

        Args:
            given: Dictionary of the arguments, by name.

        Returns:
            Dictionary of those to be replaced or added.
        """
        return {}

    def __getattr__(self, name):
        # `summary(expand_nested=True)` descends into whatever has `layers`. A property would do,
        # but the saver walks properties too and would file the weights under other keys.
        if name == "layers":
            return list(self.__dict__.get("_layers", ()))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


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
