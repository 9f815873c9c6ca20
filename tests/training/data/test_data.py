"""Batches: every pair once, reproducible, few shapes, little padding, and fast."""

import itertools
import time
import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from corpora import EMPTY, LONG, arrays, corpus_of, dataset, rows, same, text_pairs

from keras_transformer.fields import Tokens
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.data.batching import choose_widths, plan_batches
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.settings.sources import open_source
from keras_transformer.training.tasks.source_to_target import SourceToTargetTraining
from keras_transformer.training.vocabulary import learn_vocabulary, strings


@pytest.fixture(scope="module")
def tokenizer():
    settings = SimpleNamespace(size=60, model_type="bpe", split_digits=True, character_coverage=1.0)
    return SentencePieceTokenizer(
        learn_vocabulary(strings(dataset(text_pairs()), (0, 1)), settings)
    )


@pytest.fixture(scope="module")
def corpus(tokenizer):
    return corpus_of(text_pairs(), tokenizer)


@pytest.fixture(scope="module")
def expected(tokenizer):
    """The sentences that must arrive: ids of the kept pairs, from the `sentencepiece` package."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    pairs = [tuple((*pieces.encode(side), 3) for side in pair) for pair in text_pairs()]
    return [pair for pair in pairs if min(map(len, pair)) > 1 and max(map(len, pair)) <= 40]


# Widths and batches


@pytest.mark.parametrize("buckets", [1, 2, 3, 4, 9])
def test_the_chosen_widths_need_the_least_padding(buckets):
    """Compared with every possible choice."""
    rng = np.random.default_rng(buckets)
    lengths = rng.integers(1, 10, size=50) + rng.integers(0, 3, size=50)
    longest = lengths.max()

    def places(widths):
        return sum(min(w for w in widths if w >= length) for length in lengths)

    best = min(
        places((*others, longest))
        for count in range(min(buckets, longest))
        for others in itertools.combinations(range(1, longest), count)
    )
    widths = choose_widths(np.bincount(lengths), buckets)
    assert len(widths) <= buckets
    assert sorted(set(widths.tolist())) == widths.tolist()
    assert widths[-1] == longest
    assert places(widths.tolist()) == best


@pytest.mark.parametrize("batch_tokens, buckets", [(37, 5), (100, 1), (64, 40), (10_000, 7)])
def test_a_plan_contains_every_sentence_once_and_keeps_to_its_budget(batch_tokens, buckets):
    lengths = np.random.default_rng(0).integers(1, 38, size=501)
    counts = np.bincount(lengths)
    plan = plan_batches(counts, batch_tokens, choose_widths(counts, buckets))
    lengths.sort()
    batches = [
        (start + number * rows, rows, plan.widths[bucket])
        for count, start, rows, bucket in zip(
            plan.batches, plan.starts, plan.rows, plan.buckets, strict=True
        )
        for number in range(count)
    ]
    assert len(batches) == plan.steps
    starts, rows, widths = map(np.array, zip(*batches, strict=True))
    assert starts.tolist() == [0, *np.cumsum(rows)[:-1].tolist()]
    assert rows.sum() == plan.ends[-1] == 501
    assert (rows * widths <= batch_tokens).all()
    for start, count, width in batches:
        assert lengths[start : start + count].max() <= width
    full = batch_tokens // widths
    assert (rows[:-1] == full[:-1]).all()  # only the last batch may be smaller
    assert len(plan.widths) <= buckets and len(plan.batches) <= len(plan.widths) + 1
    np.testing.assert_array_equal(plan.ends, [(lengths <= width).sum() for width in plan.widths])


def test_widths_above_the_longest_sentence_are_left_out():
    counts = np.bincount([2, 3, 3, 5])
    plan = plan_batches(counts, 20, np.array([3, 8, 13]))
    assert plan.widths.tolist() == [3, 8] and plan.ends.tolist() == [3, 4]


def test_a_sentence_longer_than_a_batch_is_refused(corpus):
    match = "`batch_tokens`, or `batch_frames` .* must be at least .* example, 37. Received: 12"
    with pytest.raises(ValueError, match=match):
        plan_batches(np.bincount([3, 37]), 12, np.array([3, 37]))
    with pytest.raises(ValueError, match="`batch_tokens`, or `batch_frames`"):
        corpus.batches(12)


# Corpus


def test_empty_and_long_pairs_are_left_out_and_counted(corpus, expected):
    assert max(len(side) for pair in expected for side in pair) > 15
    assert (corpus.empty, corpus.too_long) == (EMPTY, LONG)
    assert corpus.size == len(expected) == 400
    assert corpus.tokens == tuple(sum(len(pair[side]) for pair in expected) for side in (0, 1))


def test_max_length_includes_the_end_token(tokenizer):
    pairs = [("ein", "ein"), ("ein ein", "ein")]
    lengths = tokenizer.encode(["ein", "ein ein"]).row_lengths().numpy().tolist()
    for limit, size in ((lengths[1], 2), (lengths[1] - 1, 1), (lengths[0], 1)):
        assert corpus_of(pairs, tokenizer, limit).size == size
    message = "Received: 0 empty and 2 longer examples, with max_length=1"
    with pytest.raises(ValueError, match=message):
        corpus_of(pairs, tokenizer, 1)


def test_a_corpus_without_pairs_is_refused(tokenizer):
    with pytest.raises(ValueError, match="The data must contain .*Received: 2 empty and 0 longer"):
        corpus_of([("", "ein"), ("ein", "")], tokenizer, max_length=10)


def test_a_vocabulary_beyond_16_bits_is_stored_correctly(expected):
    """Ids above 65,535 need more than two bytes."""

    class Words:
        vocab_size, pad_id, num_marks = 100_000, 0, 1

        def identity(self):
            return "words"

        def encode(self, strings):
            words = tf.fill([tf.size(strings)], 99_999)
            ends = tf.fill([tf.size(strings)], 3)
            return tf.RaggedTensor.from_tensor(tf.stack([words, ends], axis=1))

    class Wide(SourceToTargetTraining):
        bos_id, eos_id, pad_id = 2, 3, 0
        fields = dict.fromkeys(("source", "target"), Tokens(Words()))

        def __init__(self):
            pass

    corpus = Corpus.from_rows(dataset([("a", "b")]), Wide(), 5)
    assert list(rows(corpus.batches(10))) == [((99_999, 3), (99_999, 3))]


# Batches


def test_a_row_is_the_source_the_shifted_target_and_the_labels(corpus, expected):
    left = sorted(expected)
    for source, target, labels in arrays(corpus.batches(200)):
        widths = source.shape[1], target.shape[1]
        assert target.shape == labels.shape and len(source) == len(target)
        assert source.dtype == target.dtype == labels.dtype == np.int32
        for s, t, y in zip(source.tolist(), target.tolist(), labels.tolist(), strict=True):
            pair = tuple(s[: s.index(3) + 1]), tuple(y[: y.index(3) + 1])
            left.remove(pair)
            assert s == [*pair[0], *[0] * (widths[0] - len(pair[0]))]
            assert y == [*pair[1], *[0] * (widths[1] - len(pair[1]))]
            assert t == [2, *pair[1][:-1], *[0] * (widths[1] - len(pair[1]))]
    assert not left


def test_an_epoch_has_every_pair_once(corpus, expected, shuffle=True, batch_tokens=100000):
    batches = corpus.batches(batch_tokens, shuffle=shuffle, seed=1, epoch=4)
    assert sorted(rows(batches)) == sorted(expected)
    assert len(batches) == corpus.steps(batch_tokens)
    for source, _, _ in arrays(batches):
        assert source.size <= batch_tokens


def test_all_batches_but_one_have_one_of_few_shapes(corpus):
    shapes = [source.shape for source, _, _ in arrays(corpus.batches(200, buckets=6))]
    assert len(set(shapes)) <= 7
    assert sum(200 // width != count for count, width in shapes) <= 1


def test_padding_is_counted_correctly(corpus):
    for batch_tokens, buckets in ((200, 16), (200, 2), (1000, 5)):
        batches = arrays(corpus.batches(batch_tokens, buckets=buckets))
        pads = sum((source == 0).sum() + (labels == 0).sum() for source, _, labels in batches)
        places = sum(source.size + labels.size for source, _, labels in batches)
        assert corpus.padding(batch_tokens, buckets) == pytest.approx(pads / places)


@pytest.mark.slow
def test_seed_and_epoch_determine_the_order(corpus):
    def epoch(**options):
        return arrays(corpus.batches(200, **options))

    first = epoch(shuffle=True, seed=1, epoch=0)
    assert same(first, epoch(shuffle=True, seed=1, epoch=0))
    assert not same(first, epoch(shuffle=True, seed=1, epoch=1))
    assert not same(first, epoch(shuffle=True, seed=2, epoch=0))
    assert same(epoch(), epoch(seed=9, epoch=9))  # not shuffled
    # Pairs change their neighbours, and long batches do not come last.
    second = epoch(shuffle=True, seed=1, epoch=1)
    groups = [{frozenset(map(tuple, s.tolist())) for s, _, _ in one} for one in (first, second)]
    assert len(groups[0] & groups[1]) < len(groups[0]) / 4
    widths = [source.shape[1] for source, _, _ in first]
    assert widths != sorted(widths)


@pytest.mark.slow
def test_the_order_does_not_depend_on_other_readers(corpus, tokenizer):
    """Another corpus of the same pairs, read by another pipeline, as after a restart."""
    again = corpus_of(text_pairs(), tokenizer)
    options = {"shuffle": True, "seed": 3, "epoch": 2}
    assert same(arrays(corpus.batches(200, **options)), arrays(again.batches(200, **options)))
    assert corpus.fingerprint == again.fingerprint


def test_the_fingerprint_distinguishes_corpora(corpus, tokenizer):
    prints = {corpus.fingerprint}
    pairs = [("ein zwei", "drei"), ("vier", "fünf")]
    for changed in (
        pairs,
        pairs[::-1],  # another order
        [("ein", "drei"), ("zwei vier", "fünf")],  # the same tokens, split differently
        [(target, source) for source, target in pairs],
    ):
        prints.add(corpus_of(changed, tokenizer).fingerprint)
    assert len(prints) == 5


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("shuffle", [False, True])
def test_skipping_batches_leaves_the_rest_unchanged(corpus, shuffle):
    options = {"shuffle": shuffle, "seed": 7, "epoch": 3}
    whole = arrays(corpus.batches(200, **options))
    for skip in (0, 1, 5, len(whole) - 1, len(whole), len(whole) + 3):
        rest = arrays(corpus.batches(200, skip=skip, **options))
        assert same(rest, whole[skip:])


@pytest.mark.slow
def test_the_epochs_of_a_training_are_the_shuffled_batches(corpus):
    epochs = corpus.epochs(200, seed=5)
    assert epochs.steps == corpus.steps(200)
    for epoch, skip in ((6, 2), (0, 0)):
        options = {"shuffle": True, "seed": 5, "epoch": epoch, "skip": skip}
        assert same(arrays(epochs.batches(epoch, skip)), arrays(corpus.batches(200, **options)))


def test_every_epoch_has_one_element_spec(corpus):
    ids = tf.TensorSpec([None, None], tf.int32)
    for batches in (corpus.batches(200), corpus.batches(100_000, shuffle=True)):
        assert batches.element_spec == ({"source": ids, "target": ids}, ids)


def test_the_strings_are_the_columns_of_every_row():
    pairs = text_pairs()
    texts = list(strings(dataset(pairs), (0, 1)))
    assert sorted(texts) == sorted(side.encode() for pair in pairs for side in pair)
    for column in (0, 1):
        expected = [pair[column].encode() for pair in pairs]
        assert list(strings(dataset(pairs), [column])) == expected


# Real data


@pytest.fixture(scope="module")
def multi30k(data_dir):
    folder = data_dir / "multi30k"
    data = open_source(
        SimpleNamespace(
            source="text",
            train_source=folder / "train.en",
            train_target=folder / "train.de",
            validation_source=folder / "val.en",
            validation_target=folder / "val.de",
        )
    )
    settings = SimpleNamespace(
        size=8000, model_type="bpe", split_digits=False, character_coverage=1.0
    )
    tokenizer = SentencePieceTokenizer(
        learn_vocabulary(strings(data.rows("train"), (0, 1)), settings)
    )
    return data, tokenizer


@pytest.mark.long
@pytest.mark.slow
def test_padding_and_speed_on_real_sentences(multi30k):
    """Below 10 % of the tokens, and at least five times as fast as the fastest training here."""
    data, tokenizer = multi30k
    training = SourceToTargetTraining(tokenizer)
    corpus = Corpus.from_rows(data.rows("train"), training, 100)
    assert (corpus.size, corpus.empty, corpus.too_long) == (29_000, 0, 0)
    started = time.perf_counter()
    shapes = {tuple(labels.shape) for _, labels in corpus.batches(2048, shuffle=True)}
    speed = corpus.tokens[1] / (time.perf_counter() - started)
    padding = corpus.padding(2048)
    print(f"padding {padding:.1%}, {speed:,.0f} target tokens/s, {len(shapes)} shapes")  # noqa: T201
    assert padding < 0.10
    assert len(shapes) <= 17
    assert speed > 100_000


@pytest.mark.slow
def test_validation_drops_no_real_sentence(multi30k):
    data, tokenizer = multi30k
    training = SourceToTargetTraining(tokenizer)
    batches = Corpus.from_rows(data.rows("validation"), training, 2048).batches(2048)
    sentences = [
        line
        for inputs, labels in batches
        for line in zip(
            tokenizer.decode(inputs["source"]).numpy(),
            tokenizer.decode(labels).numpy(),
            strict=True,
        )
    ]

    def normalised(text):
        return " ".join(unicodedata.normalize("NFC", text.decode()).split()).encode()

    pairs = data.rows("validation").as_numpy_iterator()
    assert sorted(sentences) == sorted((normalised(a), normalised(b)) for a, b in pairs)
