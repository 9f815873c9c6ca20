"""Protocols of known clients, one file or folder for each."""

from keras_transformer.serving.protocol import Protocol
from keras_transformer.serving.protocols.kserve_v1 import KServeV1
from keras_transformer.serving.protocols.kserve_v2 import KServeV2
from keras_transformer.serving.protocols.libretranslate import LibreTranslate
from keras_transformer.serving.protocols.openai import (
    ChatCompletions,
    Completions,
    Embeddings,
    Transcriptions,
)

# Another protocol is a file or folder here and its entry here.
PROTOCOLS: tuple[type[Protocol], ...] = (
    LibreTranslate,
    Embeddings,
    Completions,
    ChatCompletions,
    Transcriptions,
    KServeV1,
    KServeV2,
)
