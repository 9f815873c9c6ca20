# Written by `make stubs`. Options are declared in the configurations, each once.

from typing import Any, Unpack

from keras_transformer.layers.kernels import Kernels
from keras_transformer.models.encoder import EncoderModel
from keras_transformer.tasks.multi_label_classification.config import (
    MultiLabelClassifierConfig,
    MultiLabelClassifierOptions,
)

class MultiLabelClassifier(EncoderModel):
    def __init__(
        self,
        config: MultiLabelClassifierConfig | str | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        kernels: Kernels = ...,
        trainable: bool = True,
        **options: Unpack[MultiLabelClassifierOptions],
    ) -> None: ...
