"""Truncation: long sources are truncated but keep their end and example; targets never."""

import numpy as np
import pytest
import tensorflow as tf
from corpora import dataset, rows, text_pairs

from keras_transformer.fields import Tokens
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.encoding import Limits
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining
from keras_transformer.training.vocabulary import learn_vocabulary, strings

SIDES = ("source", "target")
PAIRS = [("ein zwei", "drei"), ("ein " * 20, "vier"), ("fünf", "sechs " * 20), ("acht " * 9, "elf")]


@pytest.fixture(scope="module")
def tokenizer():
    texts = strings(dataset(text_pairs()), (0, 1))
    return SentencePieceTokenizer(learn_vocabulary(texts, VocabularySettings(size=60)))


def test_truncated_texts_are_beginnings_with_an_end(tokenizer):
    truncate = Tokens(tokenizer).truncate
    texts = tf.ragged.constant([[5, 3], [3], [5, 6, 7, 8, 3], [5, 6, 7, 3], [5, 6, 3]])
    assert truncate(texts, 4).to_list() == [[5, 3], [3], [5, 6, 7, 3], [5, 6, 7, 3], [5, 6, 3]]
    assert truncate(texts, 2).to_list() == [[5, 3], [3], [5, 3], [5, 3], [5, 3]]
    assert truncate(texts, 1).to_list() == [[3]] * 5
    assert truncate(texts, 9).to_list() == texts.to_list()


@pytest.fixture(scope="module")
def training(tokenizer):
    return SourceToTargetTraining(tokenizer)


def test_long_sources_are_kept_and_counted(training):
    limit = 12
    whole = [training.tokenizers.source.encode([text]).to_list()[0] for text, _ in PAIRS]
    assert [len(ids) > limit for ids in whole] == [False, True, False, True]
    left_out = Corpus.from_rows(dataset(PAIRS), training, limit)
    assert (left_out.size, left_out.too_long, left_out.truncated) == (1, 3, 0)
    corpus = Corpus.from_rows(
        dataset(PAIRS), training, Limits(limit, truncate_source=True), texts=SIDES
    )
    assert (corpus.size, corpus.too_long, corpus.truncated) == (3, 1, 2)
    sources = sorted(source for source, _ in rows(corpus.batches(100)))
    expected = [(*ids[: limit - 1], 3) if len(ids) > limit else tuple(ids) for ids in whole]
    assert sources == sorted(expected[number] for number in (0, 1, 3))
    assert corpus.fingerprint != left_out.fingerprint


def test_sampled_tokens_are_truncated_as_well(training):
    limit = 12
    corpus = Corpus.from_rows(
        dataset(PAIRS), training, Limits(limit, truncate_source=True), texts=SIDES
    )
    sampler = SubwordSampler(corpus, training, limit, 0.5, 1)
    batches = sampler.epochs(100).batches(0)
    lengths = [np.count_nonzero(inputs["source"], axis=1) for inputs, _ in batches]
    assert sum(map(len, lengths)) == 3 and max(map(max, lengths)) == limit
