"""A tiny translator for tests of what exports hold: its outputs differ, and nothing is trained."""

import functools
import io

import sentencepiece
from uncertain_models import talkative

from keras_transformer import Translator
from keras_transformer.tokenizers import SentencePieceTokenizer

SOURCES = ["in 3 days", "in 12 weeks", "days"]


@functools.cache
def translator(max_length=9):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["in 3 days", "in 12 weeks", "in 4 Tagen"] * 5),
        model_writer=model, vocab_size=25, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        minloglevel=2, model_type="bpe",
    )  # fmt: skip
    tokenizer = SentencePieceTokenizer(model.getvalue())
    return Translator(talkative(vocab_size=25), tokenizer, max_length)
