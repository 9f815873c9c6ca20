"""Base class of all layers here: visible sublayers, checked arguments, masking, quantisation."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import keras
from keras.dtype_policies import DTypePolicy, DTypePolicyMap

from keras_transformer.layers.kernels import DEFAULT, Kernels
from keras_transformer.layers.masks import attached_mask, fitting_masks
from keras_transformer.layers.rematerialization import recomputing


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
        policy: A dtype policy or the result of `policy_of`; either may be serialised.
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


class LayerGroup:
    """The layers of a model's input or head, made from its configuration.

    Args:
        config: The `ModelConfig`.
        policy: Dtype policy of the layers.
        kernels: The `Kernels` of the layers.
        **options: Further arguments of `make_layers`.

    Attributes:
        layers: The layers in order, by their attribute names in the model.
    """

    def __init__(self, config, policy, kernels, **options):
        self.config = config
        self.layers = self.make_layers(config, policy, kernels, **options)

    def make_layers(self, config, policy, kernels) -> dict[str, Any]:
        """Returns the layers in order, by their attribute names in the model."""
        raise NotImplementedError

    @property
    def roles(self) -> dict[str, Any]:
        """The layers by role: names that models of different kinds have in common."""
        return self.layers


class CompositeLayer(keras.Layer):
    """A layer made of named sublayers, all of which `model.summary()` lists.

    It supports Keras's masking: its output has the mask of its first argument.

    A subclass may define `call(self, x, *args, **kwargs)` and pass the arguments on: it then has
    the call arguments of its parent class, and Keras infers its output shape by a trace.

    Args:
        kernels: The `Kernels` used by the layer and its sublayers.
        **kwargs: `name`, `dtype` and `trainable` as in every Keras layer.
    """

    def __init__(self, *, kernels: Kernels = DEFAULT, **kwargs: Any):
        policy, self._policies = split_policy(kwargs.pop("dtype", None))
        super().__init__(dtype=policy, **kwargs)
        self.kernels = kernels
        self.supports_masking = True

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if "call" in vars(cls):
            _name_arguments(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer after `checked_arguments`, which may replace or add arguments."""
        names = self.call_arguments()
        self._check_names(kwargs)
        changed = self.checked_arguments({**dict(zip(names, args, strict=False)), **kwargs})
        positional = [changed.pop(name, value) for name, value in zip(names, args, strict=False)]
        with fitting_masks():
            outputs = super().__call__(*positional, *args[len(names) :], **{**kwargs, **changed})
        self._quantize_as_before()
        attached_mask(outputs[0] if isinstance(outputs, tuple) else outputs)  # remembers the mask
        return outputs

    def _check_names(self, given):
        """Raises `TypeError` for arguments that `call` does not have; `training` is Keras's own."""
        unknown = sorted({*given} - {*self.call_arguments(), "training"})
        parameters = inspect.signature(self.call).parameters.values() if unknown else ()
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            raise TypeError(
                f"`{type(self).__name__}` is called with {', '.join(self.call_arguments())}. "
                f"Received by {self.name!r}: {', '.join(unknown)}."
            )

    def rematerialized_call(self, layer_call: Callable, *args: Any, **kwargs: Any) -> Callable:
        """Returns the form of `call` in a `keras.RematScope`; see `recomputing`.

        The layer is recomputed as a whole, its sublayers not also on their own.
        """
        mode = self._remat_mode
        if mode is None or mode.mode == "activations":  # which sublayers have
            return layer_call
        if super().rematerialized_call(layer_call, *args, **kwargs) is layer_call:
            return layer_call
        for sublayer in self._flatten_layers(include_self=False):
            sublayer._remat_mode = None

        def again(*args, **kwargs):
            self._remat_mode = None
            try:
                with fitting_masks():
                    return keras.Layer.__call__(self, *args, **kwargs)
            finally:
                self._remat_mode = mode

        return recomputing(self, layer_call, again)

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Builds the layer with the shapes it had when it was saved, and quantises it again."""
        super().build_from_config(config)
        self._quantize_as_before()

    def _quantize_as_before(self):
        if self._policies and self.built:
            policies, self._policies = self._policies, None
            quantize_sublayers(self, policies)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        policy = self._policies or policy_of(self, self.dtype_policy)
        return {**super().get_config(), "dtype": keras.dtype_policies.serialize(policy)}

    @classmethod
    @functools.cache
    def call_arguments(cls) -> tuple[str, ...]:
        """Returns the names of the arguments of `call`."""
        return tuple(inspect.signature(cls.call).parameters)[1:]

    @classmethod
    @functools.cache
    def has_call_of_its_own(cls) -> bool:
        """Returns whether a user's subclass overrides `call` without stating its output shape."""
        for parent in cls.__mro__:
            if {"compute_output_shape", "compute_output_spec"} & set(vars(parent)):
                return False
            if "call" in vars(parent) and parent.__module__.split(".")[0] != "keras_transformer":
                return True
        return False

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the spec of the output, by a trace if a subclass has a `call` of its own."""
        if self.has_call_of_its_own():
            return keras.Operation.compute_output_spec(self, *args, **kwargs)
        return super().compute_output_spec(*args, **kwargs)

    def checked_arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """Checks the arguments of a call, before Keras can wrap an error into ten lines.

        Args:
            given: The arguments, by name.

        Returns:
            The arguments to replace or add, by name.
        """
        return {}

    def __getattr__(self, name) -> Any:
        # `summary(expand_nested=True)` descends into everything that has `layers`. With a property
        # of this name, Keras would also save the weights under its name.
        if name == "layers":
            return list(self.__dict__.get("_layers", ()))
        inherited = getattr(super(), "__getattr__", None)  # of PyTorch's modules
        if inherited is not None:
            return inherited(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _name_arguments(layer):
    """Gives a `call(self, x, *args, **kwargs)` the signature of the inherited `call`.

    Keras matches tensors, masks and shapes to arguments by name, so the names must be known.

    Raises:
        TypeError: If there is `*args` without `**kwargs`: Keras passes masks by name.
    """
    own, inherited = inspect.signature(layer.call), inspect.signature(super(layer, layer).call)
    args, kwargs = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    kinds, inherited_kinds = (
        {parameter.kind for parameter in signature.parameters.values()}
        for signature in (own, inherited)
    )
    if not kinds & {args, kwargs} or inherited_kinds & {args, kwargs}:
        return
    if kwargs not in kinds:
        raise TypeError(
            f"`{layer.__name__}.call` must take `**kwargs` if it takes `*args`, or name its "
            f"arguments: `def call{_untyped(inherited)}`. Received: `def call{_untyped(own)}`."
        )
    named = {p.name: p for p in own.parameters.values() if p.kind not in (args, kwargs)}
    more = [p for name, p in inherited.parameters.items() if name not in named]
    parameters, optional = [], False
    for parameter in (*named.values(), *more):
        required = parameter.default is parameter.empty
        optional = optional or not required
        if (required and optional) or (args not in kinds and parameter.name not in named):
            parameter = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters.append(parameter)
    parameters.sort(key=lambda parameter: parameter.kind)  # keyword-only parameters come last
    layer.call.__signature__ = own.replace(parameters=parameters)


def _untyped(signature):
    """Returns a signature without type hints, which make it hard to read in a message."""
    empty = inspect.Signature.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=empty)
