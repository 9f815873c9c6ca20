"""Tokenizers, which convert strings to token ids and back."""

from keras_transformer.text.tokenizers.byte_bpe import ByteBPETokenizer
from keras_transformer.text.tokenizers.pair import Tokenizers
from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer
from keras_transformer.text.tokenizers.tokenizer import Tokenizer
from keras_transformer.text.tokenizers.wordpiece import WordPieceTokenizer

__all__ = [
    "ByteBPETokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
    "Tokenizers",
    "WordPieceTokenizer",
]
