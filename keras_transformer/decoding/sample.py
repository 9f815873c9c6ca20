"""Sampling from the model's distribution, optionally restricted to the most probable tokens."""

import dataclasses
from collections.abc import Callable
from typing import Any

from keras_transformer.decoding.blocks import top_k as top_k_of
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.predictor import NEVER
from keras_transformer.decoding.repetition import Repetition
from keras_transformer.decoding.search import Search
from keras_transformer.decoding.single import search_single
from keras_transformer.decoding.threefry import uniforms
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.search_settings import SampleSettings, is_tensor
from keras_transformer.tensors import Tensor

# Smallest temperature in use: it already gives all probability to the most probable token.
COLDEST = 1e-6


@dataclasses.dataclass(frozen=True)
class Sample(SampleSettings, Search):
    """Draws tokens from the model's distribution, until all sentences have ended.

    The order is that of `transformers`: the logits of tokens that an output already contains get
    the `repetition_penalty`; constraints forbid tokens; all logits are divided by `temperature`.
    Three filters follow: `top_k` keeps that many of the most probable tokens; `top_p` keeps the
    smallest set of most probable tokens whose total probability is at least this; `min_p` keeps the
    tokens that are at least this many times as probable as the first one. `pad_id` and `bos_id` are
    never emitted. None of this affects the score: it is the one that `Greedy` would give to the
    same tokens without a penalty.

    An output depends on the seed and on the index of its sentence in the list or batch: if the
    same sentence occurs several times, its samples differ. It does not depend on the other
    sentences, and the random numbers are the same in every format for the same seed.

    Args:
        temperature: Divisor of the logits, at least 0, number or tensor, scalar or `[B]`. 0 is
            greedy search, which returns the first of equally probable tokens whatever the seed.
        top_k: Number of most probable tokens to draw from, integer or tensor, scalar or `[B]`. 0:
            all.
        top_p: Total probability of the most probable tokens to draw from, from 0 to 1, number or
            tensor, scalar or `[B]`. The most probable token is always kept. 1: all.
        seed: 32-bit integer; or int32 tensor `[B, 2]`, two integers for each sentence, or `[2]`,
            two for all sentences, of which equal ones get equal outputs.
        max_length, max_length_ratio, repetition_penalty: See `Greedy`.
        min_p: Smallest probability of a token to draw, as a share of that of the most probable
            token, from 0 to 1, number or tensor, scalar or `[B]`. 0: all.

    Raises:
        ValueError: If a setting is out of range, or a seed has the wrong shape. The values of
            tensors are not checked.

    Example:
        >>> from keras_transformer import Transformer, TransformerConfig
        >>> from keras_transformer.decoding import Sample
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Sample(temperature=0.7, seed=1, max_length=5)(model, [[7, 8, 3]]).scores.shape
        TensorShape([1, 1])

    Reference: Holtzman et al. (2020), "The Curious Case of Neural Text Degeneration", for `top_p`;
        Fan et al. (2018), "Hierarchical Neural Story Generation", for `top_k`; Nguyen et al.
        (2024), "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs", for
        `min_p`.
    """

    def values(self, numbers: Tensor) -> list[Tensor]:  # noqa: D102
        seeds = [(self.seed, number) for number in numbers]
        seeds = tf.constant(seeds, tf.int32, [len(seeds), 2])
        return dataclasses.replace(self, seed=seeds)._values()

    def chooser(self, predictor: Any, source: Any, length: int) -> Callable:  # noqa: D102
        draws = uniforms(self._seeds(predictor, source), length)  # [B or 1, L]

        def choose(logits, index):
            draw = tf.gather(draws, [index], axis=1)  # [B or 1, 1]
            values = logits.values
            token = self.draw(tf.cast(values, tf.float32), draw)
            return token, tf.gather(values, token, batch_dims=1)

        return choose

    def _run(self, predictor, source, length, options):
        choose = self.chooser(predictor, source, length)
        if options.constraints is None:  # never `pad_id` and `bos_id`
            options = dataclasses.replace(options, constraints=Constraints())
        limit = self._limits(predictor, source, length)
        repetition = Repetition.of(self, predictor.vocabulary)
        return search_single(predictor, source, choose, limit, length, options, repetition)

    def _seeds(self, predictor, source):
        """Returns one seed for each sentence or one for all, `[B or 1, 2]`."""
        if not is_tensor(self.seed):
            numbers = tf.range(predictor.sizes(source)[0])  # [B]
            return tf.stack([tf.fill(tf.shape(numbers), self.seed), numbers], axis=1)
        seed = tf.convert_to_tensor(self.seed)
        if seed.shape.rank not in (1, 2) or seed.shape[-1] != 2:
            raise ValueError(
                "`seed` must be an integer, two of them, or two for each sentence, [B, 2]. "
                f"Received: shape {seed.shape}."
            )
        return tf.reshape(tf.cast(seed, tf.int32), [-1, 2])

    def draw(self, logits: Tensor, draw: Tensor) -> Tensor:
        """Draws a token by inverting the cumulative distribution of the tokens that are kept.

        Args:
            logits: `[B, V]`, float32; `NEVER` for forbidden tokens.
            draw: Uniform random numbers in [0, 1), `[B, 1]` or `[1, 1]`.

        Returns:
            Tokens `[B]`, int32.
        """
        kept = logits > NEVER / 2  # [B, V]
        temperature = _column(self.temperature, tf.float32)
        best, most_probable = top_k_of(logits, 1)  # [B, 1]
        logits = tf.where(kept, (logits - best) / tf.maximum(temperature, COLDEST), NEVER)
        kept = tf.logical_and(kept, _most_probable(logits, self.top_k, self.top_p))
        # The most probable token has a logit of 0 here.
        kept = tf.logical_and(kept, tf.exp(logits) >= _column(self.min_p, tf.float32))
        cumulative = tf.cumsum(tf.nn.softmax(tf.where(kept, logits, NEVER)), axis=1)  # [B, V]
        reached = cumulative > draw * cumulative[:, -1:]
        # Choose the first kept token whose cumulative probability exceeds the draw, otherwise the
        # last kept one: rounding can raise the sum at a token that is not kept, or keep all sums
        # below the draw.
        size = logits.shape[1]
        places = tf.range(size)
        order = tf.where(kept, tf.where(reached, 2 * size - places, places), -1)
        drawn = tf.argmax(order, axis=1, output_type=tf.int32)
        return tf.where(temperature[:, 0] <= 0, tf.squeeze(most_probable, 1), drawn)

    def __str__(self) -> str:
        return f"sample, temperature {self.temperature:g}"


def _most_probable(logits, top_k, top_p):
    """Returns the mask of the tokens in `top_k` and `top_p`; ties go to the lower id."""
    size = logits.shape[1]
    values, tokens = tf.math.top_k(logits, size)  # [B, V], the most probable first
    ranks, top_k, top_p = tf.range(size), _column(top_k, tf.int32), _column(top_p, tf.float32)
    kept = tf.logical_or(tf.equal(top_k, 0), ranks < top_k)  # [B or 1, V]
    before = tf.cumsum(tf.nn.softmax(tf.where(kept, values, NEVER)), axis=1, exclusive=True)
    # With top_p = 1 keep all: the rounded sum can reach 1 before the last token.
    kept = tf.logical_and(kept, (before < top_p) | tf.equal(ranks, 0) | (top_p >= 1))
    last = tf.reduce_sum(tf.cast(kept, tf.int32), axis=1, keepdims=True) - 1  # [B, 1]
    value = tf.gather(values, last, batch_dims=1)
    token = tf.gather(tokens, last, batch_dims=1)
    return (logits > value) | (tf.equal(logits, value) & (ranks <= token))


def _column(control, dtype):
    return tf.reshape(tf.cast(control, dtype), [-1, 1])  # [B or 1, 1]
