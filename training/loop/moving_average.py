"""The model with averaged weights, while the training keeps its own."""

import contextlib

import numpy as np


@contextlib.contextmanager
def averaged_weights(learner):
    """Puts the moving average of the weights into the model for the length of a block.

    `average = momentum * average + (1 - momentum) * weights` after every update, beginning with the
    weights after the first one; `[optimizer] ema_momentum` switches it on. The average is the
    optimizer's, so checkpoints carry it. Without one the block sees the weights as they are.

    Keras does the same for good at the end of `fit`: what has to be saved of the weights that were
    trained is saved by a callback.

    Args:
        learner: A compiled `Learner` after at least one update. Its trained weights come back bit
            for bit when the block ends, by an exception or otherwise.

    Differs from the paper: section 6.1 averages checkpoints; see `averaging.py`.
    """
    optimizer = learner.optimizer
    # LossScaleOptimizer, around the other one under mixed_float16, has a `use_ema` of its own.
    if not getattr(optimizer, "inner_optimizer", optimizer).use_ema:
        yield
        return
    weights = learner.trainable_variables
    # Copies: on a CPU `numpy()` may be a view of the very memory that is overwritten next.
    trained = [np.array(weight.value.numpy(), copy=True) for weight in weights]
    optimizer.finalize_variable_values(weights)
    try:
        yield
    finally:
        for weight, value in zip(weights, trained, strict=True):
            weight.assign(value)
