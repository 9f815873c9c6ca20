"""A Transformer and how it learns, as `fit` and `evaluate` see it."""

import keras
import tensorflow as tf

from keras_transformer.training.devices.keras_patches import DistributedModel
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy, global_sum
from keras_transformer.training.losses.metrics import Perplexity, TokenAccuracy
from keras_transformer.training.losses.projected import projected_cross_entropy, projected_figures
from keras_transformer.training.losses.r_drop import twice


class Learner(DistributedModel):
    """Wraps a `Transformer` for training; the model that is kept afterwards is `transformer`.

    `compile` and `fit` are Keras'. What is added: losses are averaged over tokens, not over
    batches; the logits of a training batch are never in memory as a whole, and those of padding
    are not computed unless XLA compiles the update; an update can take several batches; the tokens
    seen are counted; perplexity and accuracy are computed in `evaluate` alone, there also without
    whole logits. Under a `tf.distribute` strategy create it in the strategy's scope.

    Args:
        transformer: A `Transformer`, or a model that has its `hidden_states`, `output_matrix` and
            `output_bias`.
        pad_id: Label of positions that do not count.
        accumulate: Batches of an update. Above 1, `fit` takes tuples of so many pairs (inputs,
            labels), each of any shape; the update is that of all their sentences in one batch.
        r_drop: How much it counts that two passes of a batch, made different by dropout, predict
            the same; 5 in R-Drop's paper, for translation. Above 0 an update costs twice as much,
            and the training's loss is the mean of both passes, with their disagreement.
        dtype: Dtype policy; under `"mixed_float16"` `compile` scales the loss.
        name: Name of the model.

    Call arguments:
        inputs: What the transformer takes.

    Returns:
        The transformer's logits, [B, T, V].

    Raises:
        TypeError: From `compile`, if the loss is not a `LabelSmoothedCrossEntropy`.
    """

    def __init__(self, transformer, pad_id=0, accumulate=1, r_drop=0.0, dtype=None, name="learner"):
        super().__init__(dtype=dtype, name=name)
        self.transformer = transformer
        self.pad_id = pad_id
        self.accumulate = accumulate
        self.r_drop = r_drop
        # Real target tokens over the whole training. A weight, so that checkpoints carry it.
        self.tokens_seen = self.add_weight(
            shape=(),
            dtype="int64",
            initializer="zeros",
            trainable=False,
            aggregation="only_first_replica",
            name="tokens_seen",
        )
        self.mean_loss = keras.metrics.Mean(name="loss")  # of the training
        self.evaluation_loss = keras.metrics.Mean(name="loss")
        self.perplexity = Perplexity(pad_id)
        self.token_accuracy = TokenAccuracy(pad_id)
        self._evaluates = False
        # Traced once for all batches of an update and all their widths.
        self._gradients = tf.function(self._loss_and_gradients, reduce_retracing=True)

    def compile(self, optimizer, loss, **options):
        """As in Keras, for a `LabelSmoothedCrossEntropy`."""
        if not isinstance(loss, LabelSmoothedCrossEntropy):
            raise TypeError(
                f"`loss` must be a LabelSmoothedCrossEntropy. Received: {type(loss).__name__}."
            )
        super().compile(optimizer, loss, **options)

    @property
    def metrics(self):
        """What `fit` resets at the start of an epoch, or `evaluate` at its start."""
        if self._evaluates:
            return [self.evaluation_loss, self.perplexity, self.token_accuracy]
        return [self.mean_loss]

    def evaluate(self, *args, **options):
        """As in Keras; what is known of the training's loss stays as it is."""
        self._evaluates = True
        try:
            return super().evaluate(*args, **options)
        finally:
            self._evaluates = False

    def call(self, inputs, training=None):
        return self.transformer(inputs, training=training)

    def train_step(self, data):
        """One update. Logs the loss since `mean_loss` was reset and the tokens seen so far."""
        batches = (data,) if self.accumulate == 1 else data
        own = tf.add_n([_count(labels, self.pad_id) for _, labels in batches])
        tokens = global_sum(own)
        loss, gradients = 0.0, None
        for inputs, labels in batches:
            part, of_part = self._gradients(inputs, labels, tokens)
            loss += part
            gradients = (
                of_part if gradients is None else tf.nest.map_structure(tf.add, gradients, of_part)
            )
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        self.mean_loss.update_state(global_sum(loss), sample_weight=tokens)
        self.tokens_seen.assign_add(tf.cast(tokens, "int64"))
        return {"loss": self.mean_loss.result(), "tokens": self.tokens_seen.value}

    def _loss_and_gradients(self, inputs, labels, tokens):
        """Returns a batch's summed loss over `tokens`, and its gradients, scaled for float16."""
        if self.r_drop:
            inputs, labels = twice((inputs, labels))
            tokens *= 2
        with tf.GradientTape() as tape:
            hidden, labels = self._hidden_states(inputs, labels, training=True)  # [N, D], [N]
            loss = projected_cross_entropy(
                hidden,
                tf.cast(self.transformer.output_matrix, hidden.dtype),
                labels,
                tf.math.divide_no_nan(_real(labels, self.pad_id), tokens),
                self.loss.label_smoothing,
                self.r_drop,
                _float32(self.transformer.output_bias),
            )
            scaled = self.optimizer.scale_loss(loss)
        return loss, tape.gradient(scaled, self.trainable_weights)

    def _hidden_states(self, inputs, labels, training):
        """The last hidden states and the labels of a batch, `[N, D]` and `[N]`.

        Those of real positions alone; of all, padding included, where shapes are static.
        """
        labels = tf.reshape(labels, [-1])  # [B * T]
        hidden = self.transformer.hidden_states(inputs, training=training)  # [B, T, D]
        hidden = tf.reshape(hidden, [-1, hidden.shape[-1]])  # [B * T, D]
        if self._has_static_shapes():
            return hidden, labels
        real = tf.where(tf.not_equal(labels, self.pad_id))[:, 0]  # [N]
        return tf.gather(hidden, real), tf.gather(labels, real)

    def _has_static_shapes(self):
        """Whether XLA compiles an update: the shape of a tensor may not depend on values."""
        return self.jit_compile or isinstance(self.distribute_strategy, tf.distribute.TPUStrategy)

    def test_step(self, data):
        """Adds one batch to the loss, the perplexity and the accuracy."""
        hidden, labels = self._hidden_states(*data, training=False)  # [N, D], [N]
        real = _real(labels, self.pad_id)  # [N]
        sums = projected_figures(
            hidden,
            tf.cast(self.transformer.output_matrix, hidden.dtype),
            labels,
            real,
            self.loss.label_smoothing,
            _float32(self.transformer.output_bias),
        )
        *sums, tokens = global_sum([*sums, tf.reduce_sum(real)])
        metrics = (self.evaluation_loss, self.perplexity, self.token_accuracy)
        for metric, total in zip(metrics, sums, strict=True):
            # Of `Mean`: the perplexity is the exponential of one.
            mean = tf.math.divide_no_nan(total, tokens)
            keras.metrics.Mean.update_state(metric, mean, sample_weight=tokens)
        return self.get_metrics_result()


def _float32(bias):
    return None if bias is None else tf.cast(bias, tf.float32)


def _real(labels, pad_id):
    return tf.cast(tf.not_equal(labels, pad_id), tf.float32)


def _count(labels, pad_id):
    return tf.reduce_sum(_real(labels, pad_id))
