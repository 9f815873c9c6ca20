"""The backend of Keras, which may be any for layers and models, and is TensorFlow for the rest."""

import keras


class BackendError(ValueError):
    """Error for something that only TensorFlow can do, with another backend of Keras."""


def require_tensorflow(what: str) -> None:
    """Requires TensorFlow as the backend of Keras.

    Args:
        what: What needs it, at the beginning of the error: a plural, such as `"searches"`.

    Raises:
        BackendError: If Keras uses another backend.
    """
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise BackendError(
            f"{what} need TensorFlow as the backend of Keras; only layers and models work on "
            f"{backend}. Set KERAS_BACKEND=tensorflow before Keras is imported; a saved model can "
            "be loaded there."
        )
