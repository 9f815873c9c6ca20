"""Weighted corpora: expected shares, even spreading, equal numbers of batches, exact resuming."""

import gzip
from fractions import Fraction

import numpy as np
import pytest
import tensorflow as tf
from corpora import arrays, corpus_of, dataset, rows, same, text_pairs
from small_runs import CONFIG, run_quietly, write_pairs

from keras_transformer.pipelines import Run
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.data.stream import endless_batches
from keras_transformer.training.data.weighting import WeightedEpochs
from keras_transformer.training.settings.toml import load_settings
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining
from keras_transformer.training.vocabulary import learn_vocabulary, strings


class OfPairs:
    """`WeightedEpochs` of pairs in any order, with groups counted here."""

    def __init__(self, weights, lengths):
        self.order = np.lexsort((weights, lengths))
        pairs = np.stack([lengths, weights], axis=1)
        groups, counts = np.unique(pairs, axis=0, return_counts=True)
        self.epochs = WeightedEpochs(groups[:, 0], groups[:, 1], counts)
        self.lengths = np.repeat(np.arange(len(self.epochs.counts)), self.epochs.counts)
        self.size = self.epochs.size

    def numbers(self, epoch):
        return self.order[self.epochs.numbers(np.arange(self.size), epoch).numpy()]


def counts(epochs, number, first=0):
    """Counts how often each pair is drawn in some epochs, [epochs, pairs]."""
    drawn = [epochs.numbers(epoch) for epoch in range(first, first + number)]
    return np.stack([np.bincount(numbers, minlength=PAIRS) for numbers in drawn])


PAIRS = 700
RNG = np.random.default_rng(5)
LENGTHS = RNG.integers(2, 30, PAIRS)
WEIGHTS = RNG.choice([1.0, 0.25, 2.5, 0.1], PAIRS)


def test_every_pair_is_drawn_as_often_as_its_weight_requires():
    """Within one draw per factor of ten, as the golden ratio spreads points."""
    drawn = counts(OfPairs(WEIGHTS, LENGTHS), 400)
    np.testing.assert_allclose(drawn.sum(axis=0), 400 * WEIGHTS, atol=4)
    whole = np.floor(WEIGHTS)
    assert (drawn >= whole - 1).all() and (drawn <= whole + 2).all()


def test_every_epoch_has_the_shares_of_the_weights():
    drawn = counts(OfPairs(WEIGHTS, LENGTHS), 50)
    assert (drawn.sum(axis=1) == round(WEIGHTS.sum())).all()
    for weight in set(WEIGHTS):
        mine = weight == WEIGHTS
        lengths = len(set(LENGTHS[mine]))
        shares = drawn[:, mine].sum(axis=1)
        assert np.abs(shares - weight * mine.sum()).max() <= lengths  # one for each length
        assert np.abs(shares.mean() - weight * mine.sum()) < 1


def test_a_quarter_of_a_corpus_changes_from_epoch_to_epoch():
    weights = np.where(np.arange(PAIRS) < 300, 1.0, 0.25)
    drawn = counts(OfPairs(weights, np.full(PAIRS, 9)), 4)
    assert (drawn[:, :300] == 1).all()
    assert (drawn[:, 300:].sum(axis=1) == 100).all()
    # Four equal distances would give exactly one each; the golden ratio comes close at every
    # length.
    assert (drawn[:, 300:].sum(axis=0) >= 1).mean() > 0.7
    eight = counts(OfPairs(weights, np.full(PAIRS, 9)), 8)
    assert (eight[:, 300:].sum(axis=0) >= 1).all()


def test_the_plan_of_lengths_holds_in_every_epoch():
    """No place holds a pair longer than its batch was planned for."""
    epochs = OfPairs(WEIGHTS, LENGTHS)
    assert (np.diff(epochs.lengths) >= 0).all() and len(epochs.lengths) == epochs.size
    slack = [epochs.lengths - LENGTHS[epochs.numbers(epoch)] for epoch in range(60)]
    assert np.min(slack) >= 0 and np.mean(slack) < 0.1


def test_numbers_equal_exact_arithmetic():
    """Repeats systematic sampling in fractions, one point at a time."""
    lengths, weights = [3, 1, 2, 2, 1], [1.0, 0.5, 2.0, 0.25, 0.25]
    order = sorted(range(5), key=lambda pair: (lengths[pair], weights[pair]))
    epochs = OfPairs(np.array(weights), np.array(lengths))
    for epoch in range(7):
        offset = (Fraction(1, 2) + epoch * Fraction(0.6180339887498949)) % 1
        expected = []
        for place in range(4):  # the sum of the weights
            left = place + offset
            for pair in order:
                left -= Fraction(weights[pair])
                if left < 0:
                    expected.append(pair)
                    break
        assert epochs.numbers(epoch).tolist() == expected
        assert epochs.numbers(tf.constant(epoch)).tolist() == expected


@pytest.fixture(scope="module")
def tokenizer():
    texts = strings(dataset(text_pairs()), (0, 1))
    return SentencePieceTokenizer(learn_vocabulary(texts, VocabularySettings(size=60)))


def corpus(tokenizer, weights):
    return corpus_of(text_pairs(), tokenizer, weights=weights, texts=("source", "target"))


def sampler_of(weighted, tokenizer, alpha):
    return SubwordSampler(weighted, SourceToTargetTraining(tokenizer), 40, alpha, seed=4)


def mixed():
    """Half of the pairs have a weight of a quarter; omitted pairs have weights of their own."""
    weights = np.ones(len(text_pairs()))
    weights[200:] = 0.25
    return weights


@pytest.mark.slow
def test_batches_contain_the_drawn_pairs(tokenizer):
    weighted = corpus(tokenizer, mixed())
    plain = list(rows(corpus(tokenizer, None).batches(10**6)))  # sorted by length, stable
    for epoch in range(3):
        batches = weighted.batches(200, shuffle=True, seed=1, epoch=epoch)
        assert len(arrays(batches)) == weighted.steps(200)
        seen = list(rows(batches))
        assert len(seen) == round(mixed()[:200].sum() - 8 + 0.25 * 208) == 244
        assert set(seen) <= set(plain)
        for source, _, _ in arrays(batches):
            assert source.size <= 200
    assert 0 < weighted.padding(200) < 0.5


@pytest.mark.slow
def test_weights_of_one_change_only_the_order(tokenizer):
    weighted, plain = corpus(tokenizer, np.ones(len(text_pairs()))), corpus(tokenizer, None)
    options = {"shuffle": True, "seed": 3, "epoch": 2}
    assert sorted(rows(weighted.batches(200, **options))) == sorted(
        rows(plain.batches(200, **options))
    )
    assert weighted.steps(200) == plain.steps(200)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
def test_a_training_resumes_with_the_next_batch(tokenizer, sampled):
    weighted = corpus(tokenizer, mixed())
    epochs = weighted.epochs(200, seed=4)
    if sampled:
        epochs = sampler_of(weighted, tokenizer, 0.2).epochs(200)
    steps = epochs.steps
    total = 2 * steps + 5

    def batches(skip):
        return arrays(endless_batches(epochs, skip=skip).take(total - skip))

    whole = batches(0)
    for skip in (1, steps, steps + 3):
        assert same(batches(skip), whole[skip:])


def test_sampled_tokens_are_those_of_the_drawn_pairs(tokenizer):
    weighted = corpus(tokenizer, mixed())
    sampler = sampler_of(weighted, tokenizer, 0.3)
    numbers = weighted.drawn(tf.range(weighted.drawn_size, dtype=tf.int64), 0).numpy()
    sides = [weighted.store.texts(name, numbers) for name in ("source", "target")]
    expected = sorted((a.decode(), b.decode()) for a, b in zip(*sides, strict=True))

    def text(ids):
        return tokenizer.decode(ids).numpy()

    drawn = [
        (source.decode(), target.decode())
        for inputs, labels in sampler.epochs(10**6).batches(0)
        for source, target in zip(text(inputs["source"]), text(labels), strict=True)
    ]
    assert sorted(drawn) == expected


def test_the_fingerprint_depends_on_the_weights(tokenizer):
    other = mixed()
    other[150:200] = 0.25
    prints = [corpus(tokenizer, weights).fingerprint for weights in (None, mixed(), other)]
    assert len(set(prints)) == 3
    assert corpus(tokenizer, mixed()).fingerprint == prints[1]


def test_there_must_be_as_many_weights_as_pairs(tokenizer):
    with pytest.raises(ValueError, match="`weights` must contain .* Received: 3 for 408"):
        corpus(tokenizer, np.ones(3))


@pytest.mark.long
@pytest.mark.slow
def test_a_training_sees_pairs_in_proportion_to_the_weights(tmp_path):
    """An update of one batch: all of the first file, and 10 of 40 equal pairs of the other."""
    write_pairs(tmp_path, "train", 40, seed=1)
    write_pairs(tmp_path, "validation", 7, seed=2)
    sides = [(tmp_path / f"train.{side}").read_text().split() for side in ("src", "tgt")]
    lines = [f"{source}\t{target}\n" for source, target in zip(*sides, strict=True)]
    (tmp_path / "a.tsv").write_text("".join(lines))
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b"1234\t4321\n" * 40))
    files = 'train_source = "train.src"\ntrain_target = "train.tgt"'
    assert files in CONFIG
    tables = 'train = ["a.tsv", "b.tsv.gz"]\ntrain_weights = [1, 0.25]'
    (tmp_path / "config.toml").write_text(CONFIG.replace(files, tables))
    overrides = ["training.updates=1", "data.batch_tokens=9999"]
    settings = load_settings(tmp_path / "config.toml", overrides)
    metrics, shown = run_quietly(settings, tmp_path / "run")
    assert "80 examples; 1 updates are an epoch of the weighted examples." in shown
    tokenizer = SentencePieceTokenizer.load(Run(tmp_path / "run").tokenizer)
    lengths = tokenizer.encode([*sides[1], "4321"]).row_lengths().numpy()
    assert metrics["tokens_seen"] == lengths[:-1].sum() + 10 * lengths[-1]
