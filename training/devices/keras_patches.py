"""Patches for Keras 3 under `tf.distribute`; the only module that uses its private methods.

- Under `MultiWorkerMirroredStrategy` `fit` fails (keras issue 20585): it averages a whole batch to
  learn its shape, and averages scalar logs along an axis that they do not have. A built model does
  not need the shape, and logs that are the same on all replicas do not need an average.
- Optimizers clip gradients, and detect overflows in float16, on each replica separately, before the
  gradients are summed. The gradient of one replica says little about the sum, so gradients are
  summed first.
"""

import inspect
from typing import Any

import keras
import tensorflow as tf

from keras_transformer.training.losses.cross_entropy import global_sum

# The methods that are replaced below, with the names of their arguments in Keras 3.13 to 3.15.
MODEL_METHODS = {
    "_maybe_symbolic_build": ["self", "iterator", "data_batch"],
    "make_train_function": ["self", "force"],
    "make_test_function": ["self", "force"],
}
OPTIMIZER_METHODS = {
    "apply": ["self", "grads", "trainable_variables"],
    "_all_reduce_sum_gradients": ["self", "grads_and_vars"],
}


class DistributedModel(keras.Model):
    """A `keras.Model` whose `fit` and `evaluate` are correct under every strategy.

    A subclass must be created in the scope of the strategy and have all its weights before `fit`.
    Its `train_step` and `test_step` must return logs that are the same on all replicas. Datasets
    must already be distributed, see `cut_batches`, and `steps_per_execution` must be 1.

    Raises:
        ValueError: If this version of Keras is not supported.
    """

    def __init__(self, *args, **kwargs):
        check_methods(keras.Model, MODEL_METHODS)  # they are replaced even without a strategy
        super().__init__(*args, **kwargs)

    def compile(self, *args, **kwargs) -> None:
        """Configures training as Keras does; the optimizer receives summed gradients."""
        super().compile(*args, **kwargs)
        if self.distribute_strategy.num_replicas_in_sync > 1:
            sum_gradients_first(self.optimizer)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Builds the optimizer if needed, without drawing a batch to learn its shape."""
        optimizer = getattr(self, "optimizer", None)  # `None` if the model is only evaluated
        if optimizer is not None and not optimizer.built:
            with self.distribute_strategy.scope():
                optimizer.build(self.trainable_variables)

    def make_train_function(self, force=False) -> Any:  # noqa: D102
        if not self._has_several_processes():
            return super().make_train_function(force)
        if self.train_function is None or force:
            self.train_function = self._on_all_replicas(self.train_step)

    def make_test_function(self, force=False) -> Any:  # noqa: D102
        if not self._has_several_processes():
            return super().make_test_function(force)
        if self.test_function is None or force:
            self.test_function = self._on_all_replicas(self.test_step)

    def _has_several_processes(self):
        return isinstance(self.distribute_strategy, tf.distribute.MultiWorkerMirroredStrategy)

    def _on_all_replicas(self, step):
        strategy = self.distribute_strategy

        @tf.function(reduce_retracing=True, autograph=False)
        def one_step(iterator):
            logs = strategy.run(step, args=(iterator.get_next(),))
            return {
                name: strategy.experimental_local_results(value)[0] for name, value in logs.items()
            }

        return one_step


def sum_gradients_first(optimizer) -> None:
    """Makes an optimizer sum the gradients of all replicas before it clips or applies them.

    Args:
        optimizer: A Keras optimizer; changed in place.

    Raises:
        ValueError: If this version of Keras is not supported.
    """
    if "apply" in vars(optimizer):  # changed already, by an earlier `compile`
        return
    inner = getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer, in float16
    check_methods(type(inner), OPTIMIZER_METHODS)
    apply = optimizer.apply

    def apply_sums(grads, trainable_variables=None):
        return apply(global_sum(list(grads)), trainable_variables)

    optimizer.apply = apply_sums
    inner._all_reduce_sum_gradients = list  # (gradient, variable) pairs, as they are


def check_methods(owner, methods) -> None:
    """Checks that this version of Keras has the private methods that are replaced here.

    Args:
        owner: A class.
        methods: Dictionary from the names of its methods to lists of the names of their arguments.

    Raises:
        ValueError: If a method is missing or has other arguments. The message names the versions.
    """
    for name, arguments in methods.items():
        method = getattr(owner, name, None)
        if method is None or list(inspect.signature(method).parameters) != arguments:
            raise ValueError(
                f"Keras {keras.__version__} with TensorFlow {tf.__version__} is not supported for "
                f"training: {owner.__name__}.{name} is missing or has changed. Install Keras "
                "3.13 to 3.15 with TensorFlow 2.20 or 2.21."
            )
