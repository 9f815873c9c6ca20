"""A Transformer and how it learns, as `fit` and `evaluate` see it."""

import keras
import tensorflow as tf

from .distributed import DistributedModel
from .loss import global_sum
from .metrics import Perplexity, TokenAccuracy


class Learner(DistributedModel):
    """Wraps a `Transformer` for training; the model that is kept afterwards is `transformer`.

    `compile` and `fit` are Keras'. What is added: losses are averaged over tokens, not over
    batches; the tokens seen are counted; perplexity and accuracy, which need another pass over the
    logits, are computed in `evaluate` alone. Under a `tf.distribute` strategy create it in the
    strategy's scope.

    Args:
        transformer: Any model from `{"source": [B, S], "target": [B, T]}` to logits [B, T, V].
        pad_id: Label of positions that do not count.
        dtype: Dtype policy; under `"mixed_float16"` `compile` scales the loss.
        name: Name of the model.

    Call arguments:
        inputs: What the transformer takes.

    Returns:
        The transformer's logits, [B, T, V].
    """

    def __init__(self, transformer, pad_id=0, dtype=None, name="learner"):
        super().__init__(dtype=dtype, name=name)
        self.transformer = transformer
        self.pad_id = pad_id
        # Real target tokens over the whole training. A weight, so that checkpoints carry it.
        self.tokens_seen = self.add_weight(
            shape=(),
            dtype="int64",
            initializer="zeros",
            trainable=False,
            aggregation="only_first_replica",
            name="tokens_seen",
        )
        self.mean_loss = keras.metrics.Mean(name="loss")
        self.perplexity = Perplexity(pad_id)
        self.token_accuracy = TokenAccuracy(pad_id)

    @property
    def metrics(self):
        """What `fit` and `evaluate` reset at their start."""
        return [self.mean_loss, self.perplexity, self.token_accuracy]

    def call(self, inputs, training=None):
        return self.transformer(inputs, training=training)

    def train_step(self, data):
        """One update. Logs the loss since `mean_loss` was reset and the tokens seen so far."""
        inputs, labels = data
        with tf.GradientTape() as tape:
            logits = self(inputs, training=True)  # [B, T, V]
            loss = self.compute_loss(x=inputs, y=labels, y_pred=logits)
            scaled_loss = self.optimizer.scale_loss(loss)  # float16 needs it
        weights = self.trainable_weights
        gradients = tape.gradient(scaled_loss, weights)
        self.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        tokens = self._track_loss(loss, labels)
        self.tokens_seen.assign_add(tf.cast(tokens, "int64"))
        return {"loss": self.mean_loss.result(), "tokens": self.tokens_seen.value}

    def test_step(self, data):
        """Adds one batch to the loss, the perplexity and the accuracy."""
        inputs, labels = data
        logits = self(inputs, training=False)  # [B, T, V]
        self._track_loss(self.compute_loss(x=inputs, y=labels, y_pred=logits), labels)
        self.perplexity.update_state(labels, logits)
        self.token_accuracy.update_state(labels, logits)
        return self.get_metrics_result()

    def _track_loss(self, loss, labels):
        """Adds a batch to the mean loss per token; returns its tokens, over all replicas."""
        real = tf.reduce_sum(tf.cast(tf.not_equal(labels, self.pad_id), tf.float32))
        # `loss` is this replica's share of the mean over the tokens of all replicas.
        mean, tokens = global_sum([loss, real])
        self.mean_loss.update_state(mean, sample_weight=tokens)
        return tokens
