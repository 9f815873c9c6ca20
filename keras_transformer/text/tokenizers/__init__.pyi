"""Names of tokenizers and the modules that define them."""

# isort: off
from .byte_bpe import ByteBPETokenizer as ByteBPETokenizer
from .pair import Tokenizers as Tokenizers
from .sentencepiece import SentencePieceTokenizer as SentencePieceTokenizer
from .tokenizer import Tokenizer as Tokenizer
from .wordpiece import WordPieceTokenizer as WordPieceTokenizer
