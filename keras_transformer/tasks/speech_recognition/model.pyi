# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.inputs.model_input import ModelInput
from keras_transformer.models.transformer import EncoderDecoderModel
from keras_transformer.tasks.speech_recognition.config import (
    SpeechTransformerConfig,
    SpeechTransformerOptions,
)
from keras_transformer.tensors import Tensor

class EmbeddedFrames(ModelInput):
    def make_layers(self, config, policy, kernels) -> dict[str, Any]: ...
    @property
    def roles(self) -> dict[str, Any]: ...
    def symbol(self) -> Tensor: ...
    def check(self, inputs, model) -> None: ...
    def positions(self, inputs) -> Tensor: ...
    def padding_mask(self, inputs) -> Tensor: ...
    def __call__(self, inputs, training=None, cutoff=None) -> Tensor: ...

class SpeechTransformer(EncoderDecoderModel):
    def __init__(
        self,
        config: SpeechTransformerConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[SpeechTransformerOptions],
    ) -> None: ...
    def make_input(self, config: Any, policy: Any, kernels: Any) -> EmbeddedFrames: ...
