# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

import keras

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.models.heads.labels import LabelLogits
from keras_transformer.models.inputs.tokens import EmbeddedTokens
from keras_transformer.models.model import FigureColumn
from keras_transformer.models.parts import Parts
from keras_transformer.tasks.story_questions.config import StoryReaderConfig, StoryReaderOptions
from keras_transformer.tensors import Tensor

class StoryTokens(EmbeddedTokens):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...

class AnswerLogits(LabelLogits):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    def __call__(self, hidden, inputs=None, padding_mask=None) -> Tensor: ...
    @property
    def drawn(self) -> tuple[keras.Layer, ...]: ...

class StoryReader(EncoderModel):
    def __init__(
        self,
        config: StoryReaderConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[StoryReaderOptions],
    ) -> None: ...
    def make_parts(self, config: Any, policy: Any, kernels: Any) -> Parts: ...
    def connect(self, parts: Any, inputs: Any) -> Tensor: ...
    @property
    def columns(self) -> tuple[FigureColumn, ...]: ...
    def attention_weights(self, inputs: Tensor) -> dict[str, Tensor]: ...
