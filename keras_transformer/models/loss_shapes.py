"""Check that a loss of one's own has a value for each position, so that padding does not count."""

from typing import Any

import keras


def check_loss(loss: Any, y: Any, y_pred: Any) -> None:
    """Requires that a loss fits the mask that Keras attached to predictions.

    Keras multiplies the values of a loss by the mask. Values `[B]` would be an error of TensorFlow,
    or where B = T the values of positions.

    Args:
        loss: The `loss` that a model was compiled with. Names and nests of several losses are not
            checked.
        y: The labels.
        y_pred: The predictions `[B, T, ...]`. Without a mask `[B, T]`, nothing is checked.

    Raises:
        ValueError: If the loss has neither a value for each position nor a single one.
    """
    if isinstance(loss, (list, tuple)) and len(loss) == 1:
        (loss,) = loss
    mask = getattr(y_pred, "_keras_mask", None)
    values = _values_of(loss)
    if mask is None or len(mask.shape) != 2 or values is None or not hasattr(y, "shape"):
        return
    specs = [
        keras.KerasTensor(t.shape, keras.backend.standardize_dtype(t.dtype)) for t in (y, y_pred)
    ]
    try:
        shape = tuple(_Called(values).compute_output_spec(*specs).shape)
    except Exception:  # it needs values, which are not known here, or is wrong: its call says so
        return
    by_text = len(shape) == 2 and shape[1] == 1 and y_pred.shape[1] != 1
    if shape and (by_text or len(shape) != 2 and shape[2:] != (1,)):
        raise ValueError(
            "`loss` must return one value for each position, [B, T], from which padding is left "
            f"out, or a single number. Received: values of the shape {shape} for predictions of "
            f"the shape {tuple(y_pred.shape)}. A loss that computes a mean over positions can "
            "return the values before the mean."
        )


def _values_of(loss):
    """Returns the function of labels and predictions whose values Keras multiplies by a mask."""
    if isinstance(loss, keras.Loss):
        return loss.call if type(loss).__call__ is keras.Loss.__call__ else None
    return loss if callable(loss) else None


class _Called(keras.layers.Layer):
    """A function as a layer, of which Keras computes the shape of the output."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, y, y_pred):
        return self.function(y, y_pred)
