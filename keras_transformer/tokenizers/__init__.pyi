"""Public names and the modules that define them."""

# isort: off
from ..text.bert_normalizer import BertNormalizer as BertNormalizer
from ..text.tokenizers import (
    ByteBPETokenizer as ByteBPETokenizer,
    SentencePieceTokenizer as SentencePieceTokenizer,
    Tokenizer as Tokenizer,
    WordPieceTokenizer as WordPieceTokenizer,
)
