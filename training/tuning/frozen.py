"""Parts of a model that are not trained."""


def freeze_parts(model, names):
    """Excludes parts of a model from the training; call it before `compile`.

    Their variables have no gradients, no slots of the optimizer and no weight decay. A table that
    two parts share, such as tied output weights, is frozen with either of them. As with Keras's
    `trainable = False`, dropout in frozen parts is active in the training.

    Args:
        model: A `ConfiguredModel`.
        names: Names of the parts, from `PARTS`.
    """
    for name in names:
        for variable in model.parts.variables(name):
            variable.trainable = False


def trained_parameters(model):
    """Returns the number of parameters of a model that are trained."""
    return sum(variable.value.shape.num_elements() for variable in model.trainable_variables)
