"""Activations by name: Keras's, the tanh form of GELU, and functions that a user has registered."""

# Known without Keras, whose import takes seconds.
COMMON = ("relu", "gelu", "gelu_tanh", "silu")


def gelu_tanh(x):
    """Returns GELU in its tanh form, as in GPT-2 and T5 1.1.

    `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, which differs from `"gelu"` by up to 5e-4.

    Reference: Hendrycks and Gimpel (2016), "Gaussian Error Linear Units", section 2.
    """
    import keras

    return keras.activations.gelu(x, approximate=True)


def get(name):
    """Returns the activation of a name.

    Args:
        name: That of one of Keras's, `"gelu_tanh"`, or that of a function which is registered by
            `keras.saving.register_keras_serializable`, such as `"my_package>my_function"`.

    Raises:
        ValueError: If there is none of that name.
    """
    import keras

    if name == "gelu_tanh":
        return gelu_tanh
    registered = keras.saving.get_registered_object(name)
    if registered is not None:
        return registered
    try:
        return keras.activations.get(name)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`activation` must be an activation of Keras, such as 'relu', 'gelu' or 'silu', "
            "'gelu_tanh', or a function that is registered with Keras. "
            f"Received: activation={name!r}."
        ) from error


def name_of(activation):
    """Returns the name by which `get` finds an activation.

    Args:
        activation: A function, or such a name; `None` is the linear one. Of several names that
            Keras has for a function the first is returned.

    Raises:
        TypeError: If it is neither a name nor a function.
        ValueError: If there is none of that name, or the function is not registered with Keras.
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

    name = getattr(activation, "__name__", None)
    if name is not None:
        for known in (keras.saving.get_registered_name(activation), name):
            if _is(known, activation):
                return known
    raise ValueError(
        "`activation` must be registered, so that a saved model finds it again: "
        "`@keras.saving.register_keras_serializable()`. "
        f"Received: activation={name or repr(activation)}."
    )


def _is(name, activation):
    try:
        return get(name) is activation
    except ValueError:
        return False
