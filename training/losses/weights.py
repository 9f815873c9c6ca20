"""Labels and sample weights, from the shapes in which Keras passes them."""

from keras import ops

from keras_transformer.tensors import Tensor


def labels_of(y_true, y_pred) -> Tensor:
    """Returns labels as `[B, T]`.

    Args:
        y_true: Labels, `[B, T]` or `[B, T, 1]`.
        y_pred: Logits, `[B, T, V]`.
    """
    labels = ops.convert_to_tensor(y_true)
    return ops.squeeze(labels, -1) if len(labels.shape) == len(y_pred.shape) else labels


def position_weights(sample_weight, positions) -> Tensor:
    """Returns sample weights in a shape that broadcasts to positions `[B, T]`.

    `fit(sample_weight=...)` passes `[B]` unchanged, which a product with `[B, T]` would treat as
    weights of the T positions.

    Args:
        sample_weight: `[B]` or `[B, 1]`, a weight for all positions of each example; or `[B, T]`
            or `[B, T, 1]`, a weight for each position.
        positions: Tensor `[B, T]`.

    Returns:
        float32 `[B, 1]` or `[B, T]`.

    Raises:
        ValueError: If `sample_weight` has another shape.
    """
    weights = ops.convert_to_tensor(sample_weight, "float32")
    if len(weights.shape) == 3 and weights.shape[-1] == 1:
        weights = ops.squeeze(weights, -1)  # [B, T]
    if len(weights.shape) == 1:
        weights = ops.expand_dims(weights, -1)  # [B, 1]
    batch, length = positions.shape
    fits = len(weights.shape) == 2 and all(
        None in (size, wanted) or size == wanted or (axis == 1 and size == 1)
        for axis, (size, wanted) in enumerate(zip(weights.shape, (batch, length), strict=True))
    )
    if not fits:
        shape = list(getattr(sample_weight, "shape", weights.shape))
        raise ValueError(
            f"`sample_weight` must be [{batch}], a weight for each example, or "
            f"[{batch}, {length}], a weight for each position. Received: shape={shape}."
        )
    return weights
