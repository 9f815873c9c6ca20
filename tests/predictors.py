"""Predictors of models other than `Transformer`, for the tests of the searches.

Each has `whole(inputs, tokens)`, which computes the logits `[B, T, V]` of whole outputs without
steps.
"""

import math
import typing

import numpy as np
import tensorflow as tf
from support import KV, D, F, H, K, normal, randomise
from uncertain_models import BOS, EOS, PAD

from keras_transformer.config.stack import StackConfig
from keras_transformer.decoding import Predictor, Step, Vocabulary
from keras_transformer.decoding.entries import Entries
from keras_transformer.layers.blocks.block import Block
from keras_transformer.layers.blocks.stack import Stack
from keras_transformer.layers.inputs.embedding import PositionalEmbedding

VOCABULARY = Vocabulary(19, PAD, BOS, EOS)
LONGEST = 12
UNITS = 7


def output_matrix(width, ends=1.5):
    """Returns `[width, V]`; greedy search never prefers padding or the start token."""
    matrix = 2 * normal(width, VOCABULARY.size, seed=4) / width**0.5
    matrix[:, [PAD, BOS]] = 0
    matrix[:, EOS] *= ends
    return matrix


class Recurrent(Predictor):
    """A gated recurrent unit that reads a source and continues with the output.

    Its state, `[B, N, UNITS]`, has the same size for any length of the output, and is gathered
    when hypotheses change places.
    """

    def __init__(self):
        super().__init__(VOCABULARY, LONGEST)
        self.table = 2 * normal(VOCABULARY.size, UNITS, seed=1)
        self.gates = normal(2 * UNITS, 2 * UNITS, seed=2)
        self.change = normal(2 * UNITS, UNITS, seed=3)
        self.output = 3 * output_matrix(UNITS)

    def advance(self, state, tokens):
        """Returns the state `[..., UNITS]` after tokens `[...]`."""
        x = tf.gather(self.table, tokens)
        gates = tf.sigmoid(tf.concat([x, state], -1) @ self.gates)
        update, reset = tf.split(gates, 2, axis=-1)
        change = tf.tanh(tf.concat([x, reset * state], -1) @ self.change)
        return update * state + (1 - update) * change

    def begin(self, inputs, length, width=1):
        state = tf.zeros([tf.shape(inputs)[0], UNITS])
        for token in tf.unstack(inputs, axis=1):
            real = tf.expand_dims(tf.not_equal(token, PAD), 1)
            state = tf.where(real, self.advance(state, token), state)
        return tf.repeat(tf.expand_dims(state, 1), width, axis=1)

    def step(self, tokens, state, index):
        state = self.advance(state, tokens)  # [B, N, UNITS]
        return Step(state @ self.output, state)

    def whole(self, inputs, tokens):
        """Computes in float64, one sentence and one token at a time."""
        logits = np.zeros((*tokens.shape, VOCABULARY.size))
        for b, (source, target) in enumerate(zip(inputs, tokens, strict=True)):
            words = [token for token in source if token != PAD]
            state = np.zeros(UNITS)
            for place, token in enumerate([*words, *target]):
                state = self._after(state, token)
                if place >= len(words):
                    logits[b, place - len(words)] = state @ self.output
        return logits

    def _after(self, state, token):
        x = self.table[token].astype("float64")
        gates = 1 / (1 + np.exp(-np.concatenate([x, state]) @ self.gates))
        update, reset = gates[:UNITS], gates[UNITS:]
        change = np.tanh(np.concatenate([x, reset * state]) @ self.change)
        return update * state + (1 - update) * change


class CausalBlock(Block):
    """A block of a decoder without an encoder."""

    causal = True

    def build(self, x_shape):
        self._build(x_shape)

    def call(self, x, return_attention_scores=False, training=None):
        return self._run(x, None, None, None, return_attention_scores, training, None, None)


class CausalStack(Stack):
    """Blocks that attend to earlier positions only."""

    block_class = CausalBlock
    causal = True

    def build(self, x_shape):
        self._build(x_shape)

    def call(self, x):
        return self._run(x, return_attention_scores=False)


class Cached(typing.NamedTuple):
    cache: tuple
    entries: Entries


class DecoderOnly(Predictor):
    """A causal stack that continues prompts `[B, P]`: the output comes after the prompt."""

    def __init__(self):
        super().__init__(VOCABULARY, LONGEST)
        self.embedding = PositionalEmbedding(VOCABULARY.size, D, "learned", max_length=20)
        config = StackConfig.from_flat(
            **{"num_layers": 2, "d_model": D, "num_heads": H, "d_ff": F, "d_k": K, "d_v": KV},
            **{"norm": "pre", "attention_bias": True, "dropout": 0.0},
        )
        self.stack = CausalStack(config)
        self.embedding.build()
        self.stack.build((None, None, D))
        for layer in (self.embedding, self.stack):
            randomise(layer)
        # Larger positions and queries: otherwise random weights repeat one token for ever.
        self.embedding.positions.assign(3 * math.sqrt(D) * self.embedding.positions)
        for block in self.stack.blocks:
            kernel = block.self_attention.query.kernel
            kernel.assign(4 * kernel)
        self.output = output_matrix(D)

    def begin(self, inputs, length, width=1):
        batch, positions = tf.shape(inputs)[0], inputs.shape[1]
        cache = self.stack.empty_cache(batch, positions + length, width)
        state = Cached(cache, Entries.none_yet(batch, positions + length, width))
        for place in range(positions):
            tokens = tf.repeat(inputs[:, place : place + 1], width, axis=1)  # [B, N]
            state = self._advance(tokens, state, tf.constant(place))[1]
        return state, tf.constant(positions)

    def _advance(self, tokens, state, position):
        """Returns hidden states `[B, N, D]` at a position, also of the prompt, and the state."""
        x = self.embedding(tf.reshape(tokens, [-1, 1]), start=position)  # [B * N, 1, D]
        x = tf.reshape(x, [-1, tokens.shape[1], D])  # [B, N, D]
        entries = state.entries.with_position(position)
        x, cache, weights = self.stack.step(
            x, state.cache, position, attention_mask=entries.attention_mask()
        )
        if weights is not None:
            raise ValueError("There is no memory to attend to.")
        return x, Cached(cache, entries)

    def step(self, tokens, state, index):
        state, positions = state
        x, state = self._advance(tokens, state, positions + index)
        return Step(x @ self.output, (state, positions))

    def extend(self, state, length):
        state, positions = state
        cache = self.stack.extended_cache(state.cache, length, state.entries.width)
        return Cached(cache, state.entries.extended(length)), positions

    def follow(self, state, parents):
        state, positions = state
        return state._replace(entries=state.entries.of_parents(parents)), positions

    def whole(self, inputs, tokens):
        """Runs the stack without a cache."""
        x = self.embedding(np.concatenate([inputs, tokens], axis=1))
        return (self.stack(x) @ self.output)[:, inputs.shape[1] :]


def prompts():
    return np.random.default_rng(5).integers(4, 19, (5, 3)).astype("int32")
