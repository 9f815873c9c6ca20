"""Moving average of the weights, for validation and the final model."""

import contextlib
from collections.abc import Generator

import numpy as np


@contextlib.contextmanager
def averaged_weights(learner) -> Generator[None]:
    """Context manager that gives the model the moving average of its weights.

    `average = momentum * average + (1 - momentum) * weights` is computed after every update,
    beginning with the weights after the first one, if `[optimizer] ema_momentum` is set. The
    optimizer keeps the average, so that it is part of every checkpoint. Without an average, the
    weights do not change.

    At the end of `fit` Keras replaces the weights by the average permanently; a callback must save
    the trained weights before.

    Args:
        learner: A compiled `Learner` after at least one update. Its trained weights are restored
            bit for bit at the end of the block, even after an exception.

    Differs from the paper: section 6.1 averages checkpoints; see `averaging.py`.
    """
    optimizer = learner.optimizer
    # Under mixed_float16 a LossScaleOptimizer wraps the optimizer and has its own `use_ema`.
    if not getattr(optimizer, "inner_optimizer", optimizer).use_ema:
        yield
        return
    weights = learner.trainable_variables
    # Copies: on a CPU `numpy()` may return a view of the memory that is overwritten next.
    trained = [np.array(weight.value.numpy(), copy=True) for weight in weights]
    optimizer.finalize_variable_values(weights)
    try:
        yield
    finally:
        for weight, value in zip(weights, trained, strict=True):
            weight.assign(value)
