"""KerasHub's layers, samplers and caches, assembled like its `Seq2SeqLM`.

The biases of its attention layers are zero here. With or without XLA, which its `generate` uses by
default.
"""

import pathlib

import keras_hub
import numpy as np
import tensorflow as tf
from decoding_task import BOS_ID, EOS_ID, WEIGHTS, Case, Model, without_end
from keras import ops

# Names in KerasHub and our names, for every block.
NAMES = {
    "self_attention_layer_norm": "self_attention_norm",
    "self_attention_layer": "self_attention",
    "cross_attention_layer_norm": "cross_attention_norm",
    "attention_output": "output",
    "feedforward_intermediate_dense": "feed_forward/inner",
    "feedforward_output_dense": "feed_forward/outer",
    "feedforward_layer_norm": "feed_forward_norm",
}


def make(order):
    """Builds the layers and fills in the weights."""
    task, case = Model(**order["model"]), Case(**order["case"])
    layers = Layers(task, np.load(pathlib.Path(order["folder"], WEIGHTS)))
    sampler = keras_hub.samplers.GreedySampler()
    if case.beam_size > 1:
        sampler = keras_hub.samplers.BeamSampler(num_beams=case.beam_size)
    return KerasHub(layers, sampler, case, task, order["jit_compile"])


class Layers:
    """The layers of an encoder and a decoder, and a step of the decoder."""

    def __init__(self, task, weights):
        self._d_model, self._head = task.d_model, (task.num_heads, task.d_model // task.num_heads)
        self._embedding = keras_hub.layers.ReversibleEmbedding(task.vocab_size, task.d_model)
        self._embedding.build()
        self._embedding.embeddings.assign(weights["embedding/table"])
        shape = (None, None, task.d_model)
        positions = weights["embedding/positions"]
        self._positions = keras_hub.layers.PositionEmbedding(len(positions))
        self._positions.build(shape)
        self._positions.weights[0].assign(positions)
        hub = keras_hub.layers
        self._encoder = [
            _filled(hub.TransformerEncoder, (shape,), task, weights, f"encoder/block_{number}")
            for number in range(task.num_layers)
        ]
        self._decoder = [
            _filled(
                hub.TransformerDecoder, (shape, shape), task, weights, f"decoder/block_{number}"
            )
            for number in range(task.num_layers)
        ]

    def _embed(self, tokens, start=0):
        x = self._embedding(tokens) * self._d_model**0.5  # [B, T, D]
        return x + self._positions(x, start_index=start)

    def encode(self, source):
        """Returns the memory `[B, S, D]`."""
        x = self._embed(source)
        for layer in self._encoder:
            x = layer(x)
        return x

    def caches(self, memory, length):
        """Returns an empty self-attention cache, and the filled cross-attention cache."""
        batch, source = ops.shape(memory)[:2]
        empty = [ops.zeros((batch, 2, length, *self._head)) for _ in self._decoder]
        cross = [ops.zeros((batch, 2, source, *self._head)) for _ in self._decoder]
        x = self._embed(ops.full((batch, 1), BOS_ID, "int32"))  # any token: only `filled` is used
        filled = []
        for layer, own, other in zip(self._decoder, empty, cross, strict=True):
            x, _, other = layer(
                x, memory, self_attention_cache=own, self_attention_cache_update_index=0,
                cross_attention_cache=other, cross_attention_cache_update_index=0,
            )  # fmt: skip
            filled.append(other)
        return ops.stack(empty, axis=1), ops.stack(filled, axis=1)  # [B, layers, 2, L, H, K]

    def step(self, tokens, cache, index, memory, cross):
        """Returns the logits `[B, V]` after the tokens `[B, 1]` at `index`, and the cache."""
        x, caches = self._embed(tokens, index), []
        for number, layer in enumerate(self._decoder):
            x, own, _ = layer(
                x, memory, self_attention_cache=cache[:, number],
                self_attention_cache_update_index=index, cross_attention_cache=cross[:, number],
            )  # fmt: skip
            caches.append(own)
        return self._embedding(x, reverse=True)[:, 0], ops.stack(caches, axis=1)


class KerasHub:
    """A compiled search and one batch."""

    def __init__(self, layers, sampler, case, task, jit_compile):
        sources = case.sources(task)

        def search(source):
            memory = layers.encode(source)
            length = task.max_length + 1
            cache, cross = layers.caches(memory, length)
            start = ops.full((case.batch_size, 1), BOS_ID, "int32")
            prompt = ops.pad(start, ((0, 0), (0, task.max_length)))

            def next_token(prompt, cache, index):
                beams = prompt.shape[0] // case.batch_size
                tokens = ops.slice(prompt, (0, index - 1), (prompt.shape[0], 1))
                logits, cache = layers.step(
                    tokens,
                    cache,
                    index - 1,
                    ops.repeat(memory, beams, 0),
                    ops.repeat(cross, beams, 0),
                )
                return logits, None, cache

            tokens = sampler(next_token, prompt, cache=cache, index=1, stop_token_ids=(EOS_ID,))
            return tokens[:, 1:]

        spec = tf.TensorSpec(sources.shape, tf.int32)
        self._search = tf.function(
            search, input_signature=[spec], jit_compile=jit_compile, autograph=False
        )
        self._sources = tf.constant(sources)
        self.metadata = {"tokens": without_end(self._search(self._sources).numpy().tolist())}

    def run(self, steps):
        """Decodes the batch `steps` times."""
        for _ in range(steps):
            self._search(self._sources).numpy()
        return {}


def _filled(layer_class, shapes, task, weights, ours):
    """Returns a layer with our weights, which only differ in shape from KerasHub's."""
    layer = layer_class(
        task.d_ff, task.num_heads, layer_norm_epsilon=1e-6, name=ours.replace("/", "_")
    )
    layer.build(*shapes)
    for weight in layer.weights:
        name = weight.path.removeprefix(f"{layer.name}/")
        for theirs, mine in NAMES.items():
            name = name.replace(theirs, mine)
        if f"{ours}/{name}" in weights:
            weight.assign(np.reshape(weights[f"{ours}/{name}"], weight.shape))
        elif not name.endswith("bias"):
            raise KeyError(f"{ours}/{name}: there is no such weight for {weight.path}")
    return layer
