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
        super().__init__(**kwargs)
        self.kernels = kernels
        self.supports_masking = True

    def __call__(self, *args, **kwargs):
        """Calls the layer with arguments that `checked_arguments` has seen."""
        names = self.call_arguments()
        changed = self.checked_arguments({**dict(zip(names, args, strict=False)), **kwargs})
        by_place = [changed.pop(name, value) for name, value in zip(names, args, strict=False)]
        with fitting_masks():
            outputs = super().__call__(*by_place, *args[len(names) :], **{**kwargs, **changed})
        attached_mask(outputs[0] if isinstance(outputs, tuple) else outputs)  # is kept from now on
        return outputs

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
