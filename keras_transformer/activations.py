"""Activations by name: Keras's own, two of this package, and functions registered by users."""

from collections.abc import Callable

from keras_transformer.tensors import Tensor

# Accepted without importing Keras, which takes seconds.
COMMON = ("relu", "gelu", "gelu_tanh", "silu", "tanh")


def gelu_tanh(x: Tensor) -> Tensor:
    """Returns GELU in its tanh form, as used by GPT-2 and T5 1.1.

    `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`; differs from `"gelu"` by at most 5e-4.

    Reference: Hendrycks and Gimpel (2016), "Gaussian Error Linear Units", section 2.
    """
    import keras

    return keras.activations.gelu(x, approximate=True)


def silu(x: Tensor) -> Tensor:
    """Returns SiLU, `x sigmoid(x)`.

    TensorFlow's function, which Keras uses, registers a gradient in every graph. The graph, with
    all its operations, then exists until the process ends, even if nothing else needs it.
    """
    import keras

    return x * keras.ops.sigmoid(x)


def get(name: str) -> Callable:
    """Returns the activation function with the given name.

    Args:
        name: Name of a Keras activation, `"gelu_tanh"`, or the name of a function registered with
            `keras.saving.register_keras_serializable`, such as `"my_package>my_function"`.

    Raises:
        ValueError: If no activation has this name.
    """
    import keras

    if name == "gelu_tanh":
        return gelu_tanh
    registered = keras.saving.get_registered_object(name)
    if registered is not None:
        return registered
    try:
        return _own(keras.activations.get(name))
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`activation` must be a Keras activation, such as 'relu', 'gelu' or 'silu', "
            "'gelu_tanh', or a function registered with Keras. "
            f"Received: activation={name!r}."
        ) from error


def name_of(activation: str | Callable | None) -> str:
    """Returns the name under which `get` finds an activation.

    Args:
        activation: A name or a function; `None` means linear. A function that Keras knows by
            several names, such as silu and swish, gets the name it was defined with.

    Raises:
        TypeError: If `activation` is neither a name nor a function.
        ValueError: If the name is unknown or the function is not registered with Keras.
    """
    if activation is None:
        return "linear"
    if isinstance(activation, str):
        get(activation)
        return activation
    if not callable(activation):
        raise TypeError(
            "`activation` must be the name of an activation or a function. "
            f"Received: activation={activation!r}."
        )
    import keras

    activation = _own(activation)
    name = getattr(activation, "__name__", None)
    if name is not None:
        for known in (keras.saving.get_registered_name(activation), name):
            if _is(known, activation):
                return known
    raise ValueError(
        "`activation` must be registered, so that a saved model can be loaded again: decorate it "
        "with `@keras.saving.register_keras_serializable()`. "
        f"Received: activation={name or repr(activation)}."
    )


def _own(activation):
    """Returns the function of this package that takes the place of one of Keras, or this one."""
    import keras

    return silu if activation is keras.activations.silu else activation


def _is(name, activation):
    try:
        return get(name) is activation
    except ValueError:
        return False
