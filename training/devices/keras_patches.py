"""Patches for Keras 3 under `tf.distribute`; the one place that leans on its private methods.

- Under `MultiWorkerMirroredStrategy` `fit` fails (keras issue 20585): it averages a whole batch to
  learn its shape, and figures that are scalars along an axis that they do not have. A model that
  is built needs no shape, and figures that are the same on all replicas no average.
- Optimizers clip gradients, and look for overflows in float16, on each replica by itself, before
  the sum. One replica's share of a gradient shows little of the gradient: the sum comes first.
"""

import inspect

import keras
import tensorflow as tf

from keras_transformer.training.losses.cross_entropy import global_sum

# What is replaced below, and the arguments Keras calls it with, in Keras 3.13 to 3.15.
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
    """A `keras.Model` of which `fit` and `evaluate` are right under every strategy.

    A subclass that is created in a strategy's scope has all its weights before `fit`, and its
    `train_step` and `test_step` return figures that are the same on all replicas. Datasets are
    already distributed, see `cut_batches`, and `steps_per_execution` is 1.

    Raises:
        ValueError: If this version of Keras is not one that it fits.
    """

    def __init__(self, *args, **kwargs):
        check_methods(keras.Model, MODEL_METHODS)  # replaced without a strategy as well
        super().__init__(*args, **kwargs)

    def compile(self, *args, **kwargs):
        """As Keras', but gradients are summed over the replicas before the optimizer sees them."""
        super().compile(*args, **kwargs)
        if self.distribute_strategy.num_replicas_in_sync > 1:
            sum_gradients_first(self.optimizer)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Makes what is still missing; draws no batch to learn its shape from."""
        optimizer = getattr(self, "optimizer", None)  # none if it is only evaluated
        if optimizer is not None and not optimizer.built:
            with self.distribute_strategy.scope():
                optimizer.build(self.trainable_variables)

    def make_train_function(self, force=False):  # noqa: D102
        if not self._has_several_processes():
            return super().make_train_function(force)
        if self.train_function is None or force:
            self.train_function = self._on_all_replicas(self.train_step)

    def make_test_function(self, force=False):  # noqa: D102
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
            figures = strategy.run(step, args=(iterator.get_next(),))
            return {
                name: strategy.experimental_local_results(figure)[0]
                for name, figure in figures.items()
            }

        return one_step


def sum_gradients_first(optimizer):
    """Makes an optimizer sum the gradients of all replicas before it does anything else with them.

    Args:
        optimizer: A Keras optimizer; changed in place.

    Raises:
        ValueError: If this version of Keras is not one that it fits.
    """
    if "apply" in vars(optimizer):  # compiled a second time
        return
    inner = getattr(optimizer, "inner_optimizer", optimizer)  # float16: of a LossScaleOptimizer
    check_methods(type(inner), OPTIMIZER_METHODS)
    apply = optimizer.apply

    def apply_sums(grads, trainable_variables=None):
        return apply(global_sum(list(grads)), trainable_variables)

    optimizer.apply = apply_sums
    inner._all_reduce_sum_gradients = list  # (gradient, variable) pairs, as they are


def check_methods(owner, methods):
    """Refuses a version of Keras whose private methods are not those that are replaced here.

    Args:
        owner: A class.
        methods: The names of its methods, with those of their arguments.

    Raises:
        ValueError: With the versions, if a method is missing or takes other arguments.
    """
    for name, arguments in methods.items():
        method = getattr(owner, name, None)
        if method is None or list(inspect.signature(method).parameters) != arguments:
            raise ValueError(
                f"Keras {keras.__version__} with TensorFlow {tf.__version__} is not one that "
                f"training fits: {owner.__name__}.{name} is missing or has changed. Install Keras "
                "3.13 to 3.15 with TensorFlow 2.20 or 2.21."
            )
