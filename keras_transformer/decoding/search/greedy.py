"""Greedy search as a value."""

import dataclasses

from keras_transformer.decoding.greedy import greedy_decode
from keras_transformer.decoding.search.limited import Limited


@dataclasses.dataclass(frozen=True)
class Greedy(Limited):
    """Takes the most probable token at each step: see `greedy_decode`.

    Args:
        max_length: Maximum number of new tokens: integer, or tensor, scalar or `[B]`. The tokens
            with which an output begins do not count, see `greedy_decode`. `None`: the length of the
            cache, which always limits an output.

    Raises:
        ValueError: If `max_length` is out of range.

    Example:
        >>> from keras_transformer import Greedy, Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.preset("tiny", vocab_size=100))
        >>> Greedy(max_length=5)(model, [[7, 8, 3]], cache_length=9).tokens.shape
        TensorShape([1, 1, 9])
    """

    def _decode(self, predictor, source, n_best, longest, options):
        options = {"max_length": self.limit(None, longest), **options}
        return greedy_decode(predictor, source, cache_length=longest, **options)

    def __str__(self) -> str:
        return "greedy"
