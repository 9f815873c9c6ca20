"""Best path of CTC as a value."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_transformer.decoding.ctc import check_no_prompt, ctc_decode
from keras_transformer.decoding.search.base import Found
from keras_transformer.decoding.search.limited import Limited
from keras_transformer.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class BestPath(Limited):
    """Takes the most probable label of CTC at each position of the encoder: see `ctc_decode`.

    Only for models that were trained with CTC (`training.ctc_weight`).

    Args:
        max_length: Maximum length of an output in tokens: integer, or tensor, scalar or `[B]`.
            `None`: that of the cache, which also limits larger values.

    Raises:
        ValueError: If `max_length` is out of range. When called, also raised if outputs of the
            model begin with a prompt, or `alignment` is requested.

    Example:
        >>> import numpy as np
        >>> from keras_transformer import BestPath, SpeechTransformer, SpeechTransformerConfig
        >>> model = SpeechTransformer(SpeechTransformerConfig.preset("tiny", vocab_size=100))
        >>> BestPath()(model, np.ones((2, 70, 80), "float32"), cache_length=9).tokens.shape
        TensorShape([2, 1, 9])
    """

    def __call__(  # noqa: D102
        self,
        model: Any,
        source: Tensor,
        n_best: int = 1,
        cache_length: int | None = None,
        alignment: tuple[int, int | None] | None = None,
        cache_stages: Sequence[int] | None = None,
        **options: Any,
    ) -> Found:
        if alignment is not None:
            raise ValueError(
                "`alignment` must be None with CTC, which does not use the decoder's attention. "
                f"Received: alignment={alignment!r}."
            )
        return super().__call__(model, source, n_best, cache_length, **options)

    def terms(self, tokens: Tensor, positions: Tensor) -> Tensor:  # noqa: D102
        return positions

    def check(self, vocabulary: Any, longest: int, n_best: int = 1) -> None:  # noqa: D102
        super().check(vocabulary, longest, n_best)
        check_no_prompt(vocabulary)

    def _decode(self, predictor, source, n_best, longest, options):
        return ctc_decode(predictor, source, self.limit(None, longest), longest, **options)

    def __str__(self) -> str:
        return "CTC, best path"
