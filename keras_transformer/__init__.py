"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017) as Keras layers.

One key for shapes, in comments, docstrings and einsum strings throughout:

    B  batch                          D  d_model, the width of the model
    T  target or query length         F  d_ff, the width inside the feed-forward network
    S  source or key length           H  attention heads
    V  vocabulary                     K  size of a head (d_k; d_v where values differ)
    L  length of a key/value cache    N  beam or n-best

Masks are boolean tensors and `True` means "may attend".
"""

import importlib

from keras_transformer.attention import (
    MultiHeadCrossAttention,
    MultiHeadSelfAttention,
    dot_product_attention,
)
from keras_transformer.config import PRESETS, TransformerConfig
from keras_transformer.decoder import Decoder, DecoderBlock
from keras_transformer.decoding import greedy_decode
from keras_transformer.embedding import PositionalEmbedding, sinusoids
from keras_transformer.encoder import Encoder, EncoderBlock
from keras_transformer.feed_forward import FeedForward
from keras_transformer.masks import PaddingMask, causal_mask, padding_mask
from keras_transformer.model import Transformer

__version__ = "0.1.0"

# Loaded on first use: the layers alone need neither tensorflow-text nor a tokenizer.
_LAZY = {
    "Run": "keras_transformer.run",
    "Tokenizer": "keras_transformer.tokenizer",
    "Translator": "keras_transformer.translator",
}

__all__ = [
    "PRESETS",
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "MultiHeadCrossAttention",
    "MultiHeadSelfAttention",
    "PaddingMask",
    "PositionalEmbedding",
    "Run",
    "Tokenizer",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "causal_mask",
    "dot_product_attention",
    "greedy_decode",
    "padding_mask",
    "sinusoids",
]


def __getattr__(name):
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
