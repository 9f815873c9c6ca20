"""Sampling as a value, with its settings and their checks."""

import dataclasses
import typing

import tensorflow as tf

from keras_transformer.decoding.loop import smaller
from keras_transformer.decoding.sampling import sample_decode
from keras_transformer.decoding.search.base import Search, inputs_of
from keras_transformer.search_settings import UNLIMITED, SampleSettings
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Sample(SampleSettings, Search):
    """Draws tokens at random: see `sample_decode`.

    An output depends on the seed and on the index of its sentence in the list or batch: if the
    same sentence occurs several times, its samples differ.

    Args:
        temperature: Divisor of the logits, at least 0. 0 is greedy search.
        top_k: Number of most probable tokens to draw from. 0: all.
        top_p: Total probability of the most probable tokens to draw from, from 0 to 1. 1: all.
        seed: 32-bit integer, or tensor `[B, 2]`: two integers for each sentence.
        max_length: See `Greedy`.

    Raises:
        ValueError: If a setting is out of range.

    Example:
        >>> from keras_transformer import Sample, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Sample(temperature=0.7, seed=1)(model, [[7, 8, 3]], cache_length=5).scores.shape
        TensorShape([1, 1])
    """

    inputs: typing.ClassVar[tuple] = inputs_of(SampleSettings)

    def values(self, numbers: Tensor) -> list[Tensor]:  # noqa: D102
        seeds = [(self.seed, number) for number in numbers]
        seeds = tf.constant(seeds, tf.int32, [len(seeds), 2])
        *controls, _, max_length = super().values(numbers)
        return [*controls, seeds, UNLIMITED if max_length is None else min(max_length, UNLIMITED)]

    def limit(self, source_length: Tensor, longest: Tensor) -> Tensor:  # noqa: D102
        return smaller(self.max_length, longest)

    def _decode(self, predictor, source, n_best, longest, options):
        seed = self.seed
        if not tf.is_tensor(seed):
            numbers = tf.range(predictor.sizes(source)[0])  # [B]
            seed = tf.stack([tf.fill(tf.shape(numbers), seed), numbers], axis=1)  # [B, 2]
        controls = self.temperature, self.top_k, self.top_p, seed, self.limit(None, longest)
        return sample_decode(predictor, source, *controls, cache_length=longest, **options)

    def __str__(self) -> str:
        return f"sample, temperature {self.temperature:g}"
