"""A layer whose sublayers show in `model.summary()`."""

import keras


class CompositeLayer(keras.Layer):
    """A layer made of named sublayers, all of which `model.summary()` lists."""

    def __getattr__(self, name):
        # `summary(expand_nested=True)` descends into whatever has `layers`. A property would do,
        # but the saver walks properties too and would file the weights under other keys.
        if name == "layers":
            return list(self.__dict__.get("_layers", ()))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
