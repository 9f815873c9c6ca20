"""Greedy search with a key/value cache."""

import dataclasses
from collections.abc import Callable
from typing import Any

from keras_transformer.decoding.repetition import Repetition
from keras_transformer.decoding.search import Search
from keras_transformer.decoding.single import search_single
from keras_transformer.lazy_tensorflow import tf
from keras_transformer.search_settings import GreedySettings


@dataclasses.dataclass(frozen=True)
class Greedy(GreedySettings, Search):
    """Takes the most probable token at each step, until every sentence has ended.

    Args:
        max_length: Maximum number of new tokens, `eos_id` included: integer, or tensor, scalar or
            `[B]`. The tokens with which an output begins do not count: its prompt, those of the
            model's `prompt_ids`, and a `forced_bos_id` or a language. A `prefix` of `Constraints`
            counts. `None`: the length of the cache, which always limits an output.
        max_length_ratio: Maximum number of new tokens over the number of tokens of the source, its
            end included; the product is rounded up. At least 0.1. `None`: the `max_length_ratio` of
            the model alone, see `OutputRules`, which always limits outputs.
        repetition_penalty: Divisor of the positive logits, and factor of the negative ones, of all
            tokens that the decoder has read: those of an output and of its prompt, and the token
            that begins it. A number above 0, or tensor, scalar or `[B]`. Above 1, repetitions
            become less likely; 1: no penalty. Scores remain the model's own.

    Raises:
        ValueError: If a setting is out of range. When called, see `Search`.

    Example:
        >>> from keras_transformer import Greedy, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Greedy(max_length=5)(model, [[7, 8, 3]]).tokens.shape
        TensorShape([1, 1, 5])

    Reference: Keskar et al. (2019), "CTRL: A Conditional Transformer Language Model for
        Controllable Generation", section 4.1, for `repetition_penalty`.
    """

    @classmethod
    def like(cls, search: Any) -> "Greedy":
        """Returns greedy search with the settings that it shares with another search."""
        return cls(**shared_settings(search))

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
        repetition = Repetition.of(self, predictor.vocabulary)
        return search_single(predictor, source, choose, limit, length, options, repetition)

    def __str__(self) -> str:
        penalty = self.repetition_penalty
        return "greedy" if penalty == 1 else f"greedy, repetition penalty {penalty:g}"


def shared_settings(search) -> dict[str, Any]:
    """Returns the settings of a search that searches of every kind have, by name."""
    names = ("max_length", "max_length_ratio", "repetition_penalty")
    return {name: getattr(search, name) for name in names if hasattr(search, name)}


def _most_probable(logits, index):
    values, tokens = logits.top_k(1)  # [B, 1]; one pass fewer than maximum and argmax
    return tf.squeeze(tokens, 1), tf.squeeze(values, 1)
