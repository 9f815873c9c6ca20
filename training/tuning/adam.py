"""Adam as one operation for each variable."""

from typing import TYPE_CHECKING

import keras
import tensorflow as tf

_Base = keras.optimizers.Adam if TYPE_CHECKING else object


class FusedUpdates(_Base):
    """Mixin of Keras's Adam that updates a variable and both its moments in one pass.

    Keras composes the same update of a dozen operations, each of which reads or writes the whole
    variable. Under a `tf.distribute` strategy, with `amsgrad`, or for sparse gradients the update
    is Keras's own.

    Reference: Kingma and Ba (2015), "Adam: A Method for Stochastic Optimization", Algorithm 1, in
        the form given at the end of section 2.
    """

    def update_step(self, gradient, variable, learning_rate) -> None:
        """Updates one variable."""
        if tf.distribute.has_strategy() or self.amsgrad or isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        if isinstance(variable, keras.Variable):
            variable = variable.value
        index, dtype = self._get_variable_index(variable), variable.dtype
        step = tf.cast(self.iterations + 1, dtype)
        beta_1, beta_2 = tf.cast(self.beta_1, dtype), tf.cast(self.beta_2, dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=beta_1**step,
            beta2_power=beta_2**step,
            lr=tf.cast(learning_rate, dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.cast(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )


@keras.saving.register_keras_serializable(package="keras_transformer")
class Adam(FusedUpdates, keras.optimizers.Adam):
    """`keras.optimizers.Adam`, with one operation for each variable."""


@keras.saving.register_keras_serializable(package="keras_transformer")
class AdamW(FusedUpdates, keras.optimizers.AdamW):
    """`keras.optimizers.AdamW`, with one operation for each variable besides its decay."""
