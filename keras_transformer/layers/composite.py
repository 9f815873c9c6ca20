"""A layer whose sublayers show in `model.summary()`, and whose call arguments are checked."""

import functools
import inspect

import keras

from keras_transformer.layers.kernels import DEFAULT
from keras_transformer.layers.masks import attached_mask, fitting_masks
from keras_transformer.layers.quantization import policy_of, quantize_sublayers, split_policy


class CompositeLayer(keras.Layer):
    """A layer made of named sublayers, all of which `model.summary()` lists.

    It takes part in Keras's masking: what it returns has the mask of its first argument.

    A subclass may take the arguments of `call` as `*args, **kwargs` and pass them on: it has those
    of the class that it extends. What such a `call` returns Keras finds out by a trace.

    Args:
        kernels: The `Kernels` that it and its sublayers compute with.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.
    """

    def __init__(self, *, kernels=DEFAULT, **kwargs):
        policy, self._policies = split_policy(kwargs.pop("dtype", None))
        super().__init__(dtype=policy, **kwargs)
        self.kernels = kernels
        self.supports_masking = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "call" in vars(cls):
            _name_arguments(cls)

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

    @classmethod
    @functools.cache
    def has_call_of_its_own(cls):
        """Returns whether a subclass of a user has its own `call` but does not state its shape."""
        for parent in cls.__mro__:
            if {"compute_output_shape", "compute_output_spec"} & set(vars(parent)):
                return False
            if "call" in vars(parent) and parent.__module__.split(".")[0] != "keras_transformer":
                return True
        return False

    def compute_output_spec(self, *args, **kwargs):
        """The output of a call, from `compute_output_shape` or, where it may differ, by a trace."""
        if self.has_call_of_its_own():
            return keras.Operation.compute_output_spec(self, *args, **kwargs)
        return super().compute_output_spec(*args, **kwargs)

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


def _name_arguments(layer):
    """Gives a `call(self, x, *args, **kwargs)` the signature of what it passes its arguments to.

    Keras binds tensors, masks and shapes to arguments by their names.

    Raises:
        TypeError: If there is `*args` without `**kwargs`, in which Keras passes masks.
    """
    own, inherited = inspect.signature(layer.call), inspect.signature(super(layer, layer).call)
    by_place, by_name = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    kinds, inherited_kinds = (
        {parameter.kind for parameter in signature.parameters.values()}
        for signature in (own, inherited)
    )
    if not kinds & {by_place, by_name} or inherited_kinds & {by_place, by_name}:
        return
    if by_name not in kinds:
        raise TypeError(
            f"`{layer.__name__}.call` must take `**kwargs` if it takes `*args`, or name its "
            f"arguments: `def call{inherited}`. Received: `def call{own}`."
        )
    named = {p.name: p for p in own.parameters.values() if p.kind not in (by_place, by_name)}
    more = [p for name, p in inherited.parameters.items() if name not in named]
    parameters, optional = [], False
    for parameter in (*named.values(), *more):
        required = parameter.default is parameter.empty
        optional = optional or not required
        if (required and optional) or (by_place not in kinds and parameter.name not in named):
            parameter = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters.append(parameter)
    parameters.sort(key=lambda parameter: parameter.kind)  # those by name alone come last
    layer.call.__signature__ = own.replace(parameters=parameters)
