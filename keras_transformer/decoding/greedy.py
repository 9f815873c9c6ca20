"""Greedy search with a key/value cache."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.search import Limited
from keras_transformer.decoding.single import search_single


@dataclasses.dataclass(frozen=True)
class Greedy(Limited):
    """Takes the most probable token at each step, until every sentence has ended.

    Args:
        max_length: Maximum number of new tokens, `eos_id` included: integer, or tensor, scalar or
            `[B]`. The tokens with which an output begins do not count: its prompt, those of the
            model's `prompt_ids`, and a `forced_bos_id` or a language. A `prefix` of `Constraints`
            counts. `None`: the length of the cache, which always limits an output.

    Raises:
        ValueError: If `max_length` is out of range. When called, see `Search`.

    Example:
        >>> from keras_transformer import Greedy, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Greedy(max_length=5)(model, [[7, 8, 3]]).tokens.shape
        TensorShape([1, 1, 5])
    """

    def chooser(self, predictor: Any, source: Any, length: int) -> Callable:
        """Returns the function `choose` of `search_single`.

        Args:
            predictor: The `Predictor`.
            source: Its inputs.
            length: Length of the result L.
        """
        return _most_probable

    def _run(self, predictor, source, length, options):
        choose = self.chooser(predictor, source, length)
        limit = self._limits(predictor, source, length)
        return search_single(predictor, source, choose, limit, length, options)

    def __str__(self) -> str:
        return "greedy"


def _most_probable(logits, index):
    values, tokens = logits.top_k(1)  # [B, 1]; one pass fewer than maximum and argmax
    return tf.squeeze(tokens, 1), tf.squeeze(values, 1)
