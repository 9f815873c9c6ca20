"""Parts of a model that are not trained."""

from keras_transformer.config.parts import PARTS


def freeze_parts(model, names, copied=None) -> None:
    """Excludes parts of a model from training; call it before `compile`.

    Their variables have no gradients, no slots of the optimizer and no weight decay. A table that
    two parts share, such as tied output weights, is frozen with either of them. As with Keras's
    `trainable = False`, dropout in frozen parts is active during training.

    Args:
        model: A `ConfiguredModel`.
        names: Names of the parts, from `PARTS`.
        copied: Names of the parts that begin with the weights of another run. `None`: all.

    Raises:
        ValueError: If a part shares a table with another one that begins with random weights.
    """
    for name in names:
        for variable in model.parts.variables(name):
            variable.trainable = False
    for name in PARTS if copied else ():
        own = model.parts.weights(name) or {}
        if name not in (copied or ()) and not all(variable.trainable for variable in own.values()):
            raise ValueError(
                f"`training.freeze` would freeze random weights of {name}, whose table "
                f"{' and '.join(names)} shares: add {name} to `model.parts`. Received: "
                f"training.freeze={list(names)}, model.parts={list(copied)}."
            )


def trained_parameters(model) -> int:
    """Returns the number of parameters of a model that are trained."""
    return sum(variable.value.shape.num_elements() for variable in model.trainable_variables)
