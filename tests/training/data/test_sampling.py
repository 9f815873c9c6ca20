"""Sampled epochs: different tokens, the same sentences, reproducible."""

import itertools

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_transformer.text.tokenizers.sentencepiece import SentencePieceTokenizer
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.data.stream import endless_batches
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining
from keras_transformer.training.vocabulary import learn_vocabulary

SYLLABLES = ("wal", "tal", "un", "der", "ov", "er", "king", "ked", "won", "thu", "ing", "ber")
WORDS = ["".join(parts) for parts in itertools.product(SYLLABLES, repeat=2)]
BATCH_TOKENS, MAX_LENGTH = 100, 40
SIDES = ("source", "target")


def make_pairs(count=40, seed=0):
    random = np.random.default_rng(seed)
    sides = [
        [" ".join(random.choice(WORDS, random.integers(1, 6))) for _ in range(count)]
        for _ in range(2)
    ]
    return tf.data.Dataset.from_tensor_slices(tuple(sides)), list(zip(*sides, strict=True))


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def parts(request):
    pairs, strings = make_pairs()
    text = [side.encode() for pair in strings for side in pair]
    vocabulary = VocabularySettings(size=60, model_type=request.param)
    tokenizer = SentencePieceTokenizer(learn_vocabulary(text, vocabulary))
    training = SourceToTargetTraining(tokenizer)
    return Corpus.from_rows(pairs, training, MAX_LENGTH, texts=SIDES), pairs, tokenizer, strings


def sampler(parts, alpha=0.3, seed=5, max_length=MAX_LENGTH, window=100):
    corpus, _, tokenizer, _ = parts
    training = SourceToTargetTraining(tokenizer)
    return SubwordSampler(corpus, training, max_length, alpha, seed, window)


def epoch(parts, number, **options):
    batches = sampler(parts, **options).epochs(BATCH_TOKENS).batches(number)
    return [(inputs["source"].numpy(), labels.numpy()) for inputs, labels in batches]


def sentences(parts, batches):
    """Returns the texts of the rows on both sides, and their ids."""
    model = sentencepiece.SentencePieceProcessor(model_proto=parts[2].model)
    rows = [
        tuple([token for token in side if token] for side in pair)
        for source, labels in batches
        for pair in zip(source.tolist(), labels.tolist(), strict=True)
    ]
    assert all(side[-1] == 3 and side.count(3) == 1 for pair in rows for side in pair)
    return [tuple(model.decode(side[:-1]) for side in pair) for pair in rows], rows


def test_the_sentences_stay_and_their_tokens_change(parts):
    strings = parts[3]
    ids = []
    for number in range(3):
        texts, rows = sentences(parts, epoch(parts, number))
        assert set(texts) <= set(strings)
        assert len(set(texts)) >= 0.8 * len(strings)  # the last batches may not fit
        ids.append({text: pieces for text, pieces in zip(texts, rows, strict=True)})
    common = set(ids[0]) & set(ids[1]) & set(ids[2])
    assert sum(ids[0][text] != ids[1][text] for text in common) > 0.5 * len(common)


def test_at_a_rate_of_almost_zero_the_tokens_are_those_of_the_vocabulary():
    pairs, strings = make_pairs()
    text = [side.encode() for pair in strings for side in pair]
    tokenizer = SentencePieceTokenizer(learn_vocabulary(text, VocabularySettings(size=60)))
    corpus = Corpus.from_rows(pairs, SourceToTargetTraining(tokenizer), MAX_LENGTH, texts=SIDES)
    parts = corpus, pairs, tokenizer, strings
    batches = epoch(parts, 0, alpha=1e-9)
    texts, rows = sentences(parts, batches)
    assert sorted(texts) == sorted(strings)
    for text, pieces in zip(texts, rows, strict=True):
        assert list(pieces) == tokenizer.encode(list(text)).to_list()
    assert len(batches) == corpus.steps(BATCH_TOKENS)


@pytest.mark.slow
def test_seed_and_epoch_determine_the_tokens(parts):
    def flat(batches):
        return [side.tolist() for batch in batches for side in batch]

    assert flat(epoch(parts, 1)) == flat(epoch(parts, 1))
    assert flat(epoch(parts, 1)) != flat(epoch(parts, 2))
    assert flat(epoch(parts, 1)) != flat(epoch(parts, 1, seed=6))


def test_no_batch_or_sentence_exceeds_its_limit(parts):
    corpus, pairs, tokenizer, _ = parts
    lengths = [
        len(ids)
        for side in zip(*parts[3], strict=True)
        for ids in tokenizer.encode(list(side)).to_list()
    ]
    limit = max(lengths)
    batches = epoch(parts, 0, alpha=0.9, max_length=limit)
    assert max(side.shape[1] for batch in batches for side in batch) <= limit
    assert max(side.size for batch in batches for side in batch) <= BATCH_TOKENS


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_stream_resumes_at_any_batch(parts, accumulate):
    def take(skip, count):
        updates = endless_batches(
            sampler(parts).epochs(BATCH_TOKENS), skip=skip, accumulate=accumulate
        )
        return [
            tensor.numpy().tolist()
            for update in updates.take(count)
            for tensor in tf.nest.flatten(update)
        ]

    steps = sampler(parts).epochs(BATCH_TOKENS).steps
    count = 2 * steps // accumulate
    whole = take(0, count)
    size = len(whole) // count
    for skip in (1, steps // accumulate, count - 1):
        assert take(skip, count - skip) == whole[size * skip :]


def test_windows_contain_all_examples_in_another_order_in_every_epoch(parts):
    """There are 4 windows of at most 11; each mixes all lengths anew."""
    windowed = sampler(parts, window=11)
    assert windowed.windows == 4
    epochs = [
        [windowed._numbers(epoch, window).tolist() for window in range(4)] for epoch in (0, 1)
    ]
    for windows in epochs:
        assert sorted(sum(windows, [])) == list(range(40)) and {len(w) for w in windows} == {10}
    assert epochs[0] != epochs[1]
    made = windowed.epochs(BATCH_TOKENS)
    batches = [(i["source"].numpy(), y.numpy()) for i, y in made.batches(1)]
    assert len(batches) == made.steps
    texts, _ = sentences(parts, batches)
    assert len(set(texts)) >= 0.6 * len(parts[3])  # the last batches of four windows may not fit
    rest = [(i["source"].numpy(), y.numpy()) for i, y in made.batches(1, skip=5)]
    for ours, theirs in zip(rest, batches[5:], strict=True):
        for one, two in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("parts", ["unigram"], indirect=["parts"])
def test_shapes_are_those_of_the_first_window(parts):
    made = sampler(parts, window=11)
    widths = {
        labels.shape[1] for epoch in range(5) for _, labels in made.epochs(999, 2).batches(epoch)
    }
    assert len(widths) <= 3  # two, and `max_length`
