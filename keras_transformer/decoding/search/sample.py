"""Sampling as a value, with its settings and their checks."""

import dataclasses
import typing

import tensorflow as tf

from keras_transformer.checks import is_integer
from keras_transformer.decoding.sampling import check_sampling, sample_decode
from keras_transformer.decoding.search.base import Search, check_setting


@dataclasses.dataclass(frozen=True)
class Sample(Search):
    """Draws tokens at random: see `sample_decode`.

    What a sentence becomes depends on the seed and on the number of the sentence, which is its
    place in the list or the batch: the same sentence, several times in it, has several samples.

    Args:
        temperature: At least 0. 0 is greedy search.
        top_k: Tokens to draw from. 0: all.
        top_p: Probability of the tokens to draw from, from 0 to 1. 1: all.
        seed: Integer of 32 bits, or tensor `[B, 2]`: two for each sentence.

    Raises:
        ValueError: If a setting is out of range.

    Example:
        >>> from keras_transformer import Sample, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Sample(temperature=0.7, seed=1)(model, [[7, 8, 3]], cache_length=5).scores.shape
        TensorShape([1, 1])
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    inputs: typing.ClassVar[tuple] = (
        tf.TensorSpec([], tf.float32, name="temperature"),
        tf.TensorSpec([], tf.int32, name="top_k"),
        tf.TensorSpec([], tf.float32, name="top_p"),
        tf.TensorSpec([None, 2], tf.int32, name="seed"),
    )

    def __post_init__(self):
        check_sampling(self.temperature, self.top_k, self.top_p)
        right = is_integer(self.seed) and -(2**31) <= self.seed < 2**31
        check_setting("seed", self.seed, right, "an integer of 32 bits")

    def values(self, numbers):  # noqa: D102
        seeds = [(self.seed, number) for number in numbers]
        return [*super().values(numbers)[:-1], tf.constant(seeds, tf.int32, [len(seeds), 2])]

    def _decode(self, predictor, source, n_best, longest, options):
        seed = self.seed
        if not tf.is_tensor(seed):
            numbers = tf.range(predictor.sizes(source)[0])  # [B]
            seed = tf.stack([tf.fill(tf.shape(numbers), seed), numbers], axis=1)  # [B, 2]
        controls = self.temperature, self.top_k, self.top_p, seed
        return sample_decode(predictor, source, *controls, cache_length=longest, **options)

    def __str__(self):
        return f"sample, temperature {self.temperature:g}"
