"""TensorFlow's tutorial "Neural machine translation with a Transformer and Keras", corrected.

The classes and names are those of the tutorial, with these differences:

- `key_dim` is D / H. In the tutorial it is D for every head, with H times the work and parameters.
- Masks are arguments. The tutorial relies on Keras's implicit masks, which `MultiHeadAttention`
  removes from its inputs, so that all decoder layers but the first attend to padding.
- One table serves both embeddings and the logits, instead of three matrices.
- Dropout is on the output of every sublayer, as in the other peers. In the tutorial it is only
  after the feed-forward network.
- Attention scores are not stored for plots.
- The model's `call` has the argument `training`. Without it, as in the tutorial, Keras never
  enables dropout in `fit`.
"""

import keras
import numpy as np
from keras import ops
from keras_training import compiled
from task import PAD_ID, Task


def make(order):
    """Builds and compiles the model."""
    task = Task(**order["task"])
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(order["precision"])
    return compiled(Transformer(task), task)


def positional_encoding(length, depth):
    """Returns sinusoids `[length, depth]`, sines in the first half and cosines in the second."""
    depth = depth / 2
    positions = np.arange(length)[:, np.newaxis]  # [T, 1]
    depths = np.arange(depth)[np.newaxis, :] / depth  # [1, D / 2]
    angles = positions / 10_000**depths  # [T, D / 2]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype("float32")


class PositionalEmbedding(keras.layers.Layer):
    def __init__(self, task):
        super().__init__()
        self.d_model = task.d_model
        self.embedding = keras.layers.Embedding(task.vocab_size, task.d_model)
        self.dropout = keras.layers.Dropout(task.dropout)
        self.pos_encoding = positional_encoding(2048, task.d_model)

    def call(self, tokens):
        x = self.embedding(tokens) * self.d_model**0.5  # [B, T, D]
        x = x + ops.cast(self.pos_encoding[: tokens.shape[1]], x.dtype)
        return self.dropout(x)

    def logits(self, x):
        # One product over all positions, like the tutorial's Dense layer.
        flat = ops.reshape(x, (-1, self.d_model))  # [B * T, D]
        table = ops.cast(self.embedding.embeddings, x.dtype)
        logits = ops.matmul(flat, ops.transpose(table))  # [B * T, V]
        logits = ops.reshape(logits, (-1, x.shape[1], table.shape[0]))  # [B, T, V]
        return ops.cast(logits, "float32")


class BaseAttention(keras.layers.Layer):
    def __init__(self, task):
        super().__init__()
        key_dim = task.d_model // task.num_heads
        self.mha = keras.layers.MultiHeadAttention(task.num_heads, key_dim, dropout=task.dropout)
        self.dropout = keras.layers.Dropout(task.dropout)
        self.layernorm = keras.layers.LayerNormalization()
        self.add = keras.layers.Add()

    def join(self, x, attended):
        return self.layernorm(self.add([x, self.dropout(attended)]))


class CrossAttention(BaseAttention):
    def call(self, x, context, allowed):
        return self.join(x, self.mha(x, context, attention_mask=allowed))


class GlobalSelfAttention(BaseAttention):
    def call(self, x, allowed):
        return self.join(x, self.mha(x, x, attention_mask=allowed))


class CausalSelfAttention(BaseAttention):
    def call(self, x):
        return self.join(x, self.mha(x, x, use_causal_mask=True))


class FeedForward(keras.layers.Layer):
    def __init__(self, task):
        super().__init__()
        self.seq = keras.Sequential(
            [
                keras.layers.Dense(task.d_ff, activation="relu"),
                keras.layers.Dense(task.d_model),
                keras.layers.Dropout(task.dropout),
            ]
        )
        self.add = keras.layers.Add()
        self.layer_norm = keras.layers.LayerNormalization()

    def call(self, x):
        return self.layer_norm(self.add([x, self.seq(x)]))


class EncoderLayer(keras.layers.Layer):
    def __init__(self, task):
        super().__init__()
        self.self_attention = GlobalSelfAttention(task)
        self.ffn = FeedForward(task)

    def call(self, x, allowed):
        return self.ffn(self.self_attention(x, allowed))


class DecoderLayer(keras.layers.Layer):
    def __init__(self, task):
        super().__init__()
        self.causal_self_attention = CausalSelfAttention(task)
        self.cross_attention = CrossAttention(task)
        self.ffn = FeedForward(task)

    def call(self, x, context, allowed):
        return self.ffn(self.cross_attention(self.causal_self_attention(x), context, allowed))


class Transformer(keras.Model):
    """The tutorial's `Encoder`, `Decoder` and `Transformer` in one, as they share a table."""

    def __init__(self, task):
        super().__init__()
        self.pos_embedding = PositionalEmbedding(task)
        self.enc_layers = [EncoderLayer(task) for _ in range(task.num_layers)]
        self.dec_layers = [DecoderLayer(task) for _ in range(task.num_layers)]
        tokens = np.ones((1, task.length), "int32")
        self({"source": tokens, "target": tokens})  # creates the weights

    def call(self, inputs, training=None):  # Keras passes `training` on to all sublayers
        context, x = inputs["source"], inputs["target"]
        allowed = ops.expand_dims(context != PAD_ID, axis=1)  # [B, 1, S]
        context = self.pos_embedding(context)  # [B, S, D]
        for layer in self.enc_layers:
            context = layer(context, allowed)
        x = self.pos_embedding(x)  # [B, T, D]
        for layer in self.dec_layers:
            x = layer(x, context, allowed)
        return self.pos_embedding.logits(x)  # [B, T, V]
