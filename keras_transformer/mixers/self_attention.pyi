# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any

from keras_transformer.mixers.attention import AttentionHeads
from keras_transformer.mixers.mixer import Mixer
from keras_transformer.mixers.window import AttentionWindow
from keras_transformer.norms.norm import Norm
from keras_transformer.scores.score import AttentionScore
from keras_transformer.variants import declared

@declared
class SelfAttention(AttentionHeads, Mixer):
    window: AttentionWindow | None = ...
    def __init__(
        self,
        num_heads: int = 8,
        num_key_value_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        use_bias: bool | list[str] = False,
        query_key_norm: Norm | str | dict[str, Any] | None = None,
        score: AttentionScore | str | dict[str, Any] = "scaled_dot_product",
        window: AttentionWindow | str | dict[str, Any] | int | None = None,
    ) -> None: ...
    def at(self, number: int) -> SelfAttention: ...
