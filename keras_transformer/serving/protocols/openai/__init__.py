"""The protocol of OpenAI's API, one file for each kind of request."""

from keras_transformer.serving.protocols.openai.chat import ChatCompletions
from keras_transformer.serving.protocols.openai.completions import Completions
from keras_transformer.serving.protocols.openai.embeddings import Embeddings
from keras_transformer.serving.protocols.openai.transcriptions import Transcriptions

__all__ = ["ChatCompletions", "Completions", "Embeddings", "Transcriptions"]
