# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.labels import PooledLogits
from keras_transformer.tasks.scoring.config import PairScorerConfig, PairScorerOptions

class ScoreLogit(PooledLogits):
    def units(self, config) -> int: ...

class PairScorer(EncoderModel):
    def __init__(
        self,
        config: PairScorerConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[PairScorerOptions],
    ) -> None: ...
