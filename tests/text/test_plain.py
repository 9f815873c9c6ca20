"""Tokenizers in plain Python return the ids and texts of those in the graph, for hostile texts."""

import dataclasses
import io
import itertools
import random

import pytest
import sentencepiece
import tensorflow as tf
from hostile_texts import assert_equal, hostile
from test_wordpiece import LINES, vocabulary

from keras_transformer.tasks.strings import encode, encode_plain
from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.text.piece_table import with_table
from keras_transformer.text.sentencepiece_model import pieces_of
from keras_transformer.text.tokenizers import SentencePieceTokenizer, WordPieceTokenizer

TEXTS = [
    *LINES, *hostile(1500, 3), " " * 300 + "a dog", "é" * 333, "▁a ▁", "a\u2047b", "а Ж ☃",
    "жа☃a 😀",
]  # fmt: skip
MODELS = [
    {"model_type": "bpe"},
    {"model_type": "unigram"},
    {"model_type": "unigram", "byte_fallback": True, "vocab_size": 350},
    {"model_type": "bpe", "normalization_rule_name": "identity"},
    {"model_type": "unigram", "treat_whitespace_as_suffix": True},
]


def wordpiece(**options):
    ids = vocabulary(LINES, options.get("lowercase", True))
    return WordPieceTokenizer(list(ids), BertNormalizer(**options), longest_word=60)


def sentence_piece(vocab_size=90, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for line in LINES if len(line) < 80] * 3), model_writer=model,
        vocab_size=vocab_size, hard_vocab_limit=False, minloglevel=2, pad_id=0, unk_id=1, bos_id=2,
        eos_id=3, **options,
    )  # fmt: skip
    return SentencePieceTokenizer(model.getvalue())


def with_other_ids(starts_with_bos):
    """Ids in reverse, of which the model lacks some; letters that only the other side has."""
    model = sentence_piece(model_type="unigram").model
    pieces = pieces_of(model)
    ids = {piece: len(pieces) - place for place, piece in enumerate(pieces) if place % 7 != 6}
    names = {"unk_id": "<unk>", "bos_id": "<s>", "eos_id": "</s>", "pad_id": "<pad>"}
    special = {name: ids[piece] for name, piece in names.items()}
    ids |= {letter: len(pieces) + 1 + n for n, letter in enumerate("аЖ☃😀")}
    more, table = with_table(model, ids, len(pieces) + 9, **special)
    table = dataclasses.replace(table, starts_with_bos=starts_with_bos)
    return SentencePieceTokenizer(more, table)


@pytest.fixture(params=[
    lambda: with_other_ids(False), lambda: with_other_ids(True),
    lambda: wordpiece(), lambda: wordpiece(clean_text=False, handle_chinese_chars=False),
    lambda: wordpiece(lowercase=False), lambda: wordpiece(lowercase=False, strip_accents=True),
    *(lambda options=options: sentence_piece(**options) for options in MODELS),
])  # fmt: skip
def tokenizer(request):
    return request.param()


def test_ids_are_those_of_the_graph(tokenizer):
    theirs = tokenizer.encode(TEXTS).to_list()
    ours = tokenizer.plain.rows([text.encode() for text in TEXTS])
    assert_equal(TEXTS, ours, theirs)
    assert len({*itertools.chain(*ours)}) > 40, "an empty comparison"


@pytest.mark.parametrize("longest", [2, 5, 30])
def test_long_texts_are_cut_as_in_the_graph(tokenizer, longest):
    texts = [*TEXTS, *("".join(random.Random(9).choices(TEXTS, k=80)) for _ in range(9))]
    ids, truncated, empty = encode(tokenizer, tf.constant(texts), longest)
    ours = encode_plain(tokenizer, texts, longest)
    assert_equal(texts, ours[0], ids.to_list())
    assert ours[1].tolist() == truncated.numpy().tolist() and any(ours[1])
    assert ours[2].tolist() == empty.numpy().tolist() and any(ours[2])


def test_texts_are_those_of_the_graph(tokenizer):
    dice = random.Random(4)
    rows = [dice.choices(range(tokenizer.vocab_size), k=12) for _ in range(600)]
    theirs = [text.decode() for text in tokenizer.decode(tf.constant(rows)).numpy()]
    assert_equal(rows, [tokenizer.plain.decode(row) for row in rows], theirs)
