"""KerasHub's layers, assembled as in its translation guide, with tied embeddings.

In contrast to the other peers it has a table of learned positions, `length` times D parameters.
"""

import keras
import keras_hub
from keras_training import compiled
from task import PAD_ID, Task


def make(order):
    """Builds and compiles the model."""
    task = Task(**order["task"])
    keras.utils.set_random_seed(1)
    return compiled(build(task, order["precision"]), task)


def build(task, policy):
    """Returns the model."""
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    source_real = source != PAD_ID  # [B, S]
    embedding = keras_hub.layers.TokenAndPositionEmbedding(
        task.vocab_size, task.length, task.d_model, dtype=policy
    )

    def block(layer):
        return layer(task.d_ff, task.num_heads, dropout=task.dropout, dtype=policy)

    def embedded(tokens):
        return keras.layers.Dropout(task.dropout, dtype=policy)(embedding(tokens))

    memory = embedded(source)  # [B, S, D]
    for _ in range(task.num_layers):
        memory = block(keras_hub.layers.TransformerEncoder)(memory, padding_mask=source_real)
    x = embedded(target)  # [B, T, D]
    for _ in range(task.num_layers):
        x = block(keras_hub.layers.TransformerDecoder)(
            x, memory, encoder_padding_mask=source_real
        )  # causal by default
    logits = embedding.token_embedding(x, reverse=True)  # [B, T, V]
    logits = keras.layers.Activation("linear", dtype="float32")(logits)
    return keras.Model({"source": source, "target": target}, logits)
