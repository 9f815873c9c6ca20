"""The protocol of epochs, with and without sampled tokens: skipping, sharing, whole examples."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.models import ClassifierConfig, LanguageModelConfig
from keras_transformer.tasks import TASKS
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.sampling import SubwordSampler
from keras_transformer.training.data.stream import endless_batches
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.tasks import training_class
from keras_transformer.training.vocabulary import learn_vocabulary

# These sample no tokens, or need a mask: their own tests of training test them.
OTHERS = (
    *("token_classification", "question_answering", "masked_language_modelling"),
    "speech_recognition",
)
KINDS = [name for name in TASKS if TASKS[name].texts and name not in OTHERS]
BATCH_TOKENS, MAX_LENGTH = 90, 30
WORDS = ["wal", "tal", "under", "over", "king", "walking", "talked", "undertaking"]
LABELS = ("few", "some", "many")
CLASSIFIER = ClassifierConfig(vocab_size=60, labels=LABELS)
CONFIGS = {"language_modelling": LanguageModelConfig(vocab_size=60)}
PAIRS = ("translation", "summarization")


def label_of(text):
    return LABELS[min(len(text.split()) // 2, 2)]


def make_rows(kind):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(40)]
    pairs = (texts, [text.upper() for text in texts])
    columns = {
        "translation": pairs,
        "summarization": pairs,
        "embedding": pairs,
        "classification": (texts, [label_of(text) for text in texts]),
        "language_modelling": (texts,),
    }[kind]
    return tf.data.Dataset.from_tensor_slices(columns), texts


@pytest.fixture(scope="module")
def tokenizer():
    texts = [text.encode() for text in make_rows("language_modelling")[1]]
    both = [*texts, *(text.upper() for text in texts)]
    return SentencePieceTokenizer(learn_vocabulary(both, VocabularySettings(size=60)))


@pytest.fixture(scope="module")
def epochs(tokenizer):
    """A function that takes a kind of task, and whether tokens are sampled; returns `Epochs`."""
    made = {}

    def make(kind, sampled):
        if (kind, sampled) not in made:
            rows, _ = make_rows(kind)
            training = training_class(TASKS[kind])(tokenizer, CONFIGS.get(kind, CLASSIFIER))
            corpus = Corpus.from_rows(rows, training, MAX_LENGTH, texts=tuple(training.texts))
            made[kind, sampled] = corpus.epochs(BATCH_TOKENS, seed=3)
            if sampled:
                sampler = SubwordSampler(corpus, training, MAX_LENGTH, 0.3, seed=3)
                made[kind, sampled] = sampler.epochs(BATCH_TOKENS)
        return made[kind, sampled]

    return make


def plain(batches):
    """Returns batches as nested lists, which can be compared."""
    return [[tensor.numpy().tolist() for tensor in tf.nest.flatten(batch)] for batch in batches]


each_kind = pytest.mark.parametrize("kind", KINDS)
each_way = pytest.mark.parametrize("sampled", [False, True], ids=["usual", "sampled"])


def test_every_epoch_has_as_many_batches_in_its_own_order(
    epochs, kind="language_modelling", sampled=True
):
    made = epochs(kind, sampled)
    orders = [plain(made.batches(epoch)) for epoch in (0, 1, 1, tf.constant(2, tf.int64))]
    assert {len(batches) for batches in orders} == {made.steps} and made.steps > 4
    assert orders[1] == orders[2]
    assert orders[0] != orders[1] != orders[3] != orders[0]


@pytest.mark.slow
def test_batches_are_skipped_and_shared_out(epochs, sampled=True):
    """Numbered over all epochs, every third batch goes to the same of three workers."""
    made = epochs("classification", sampled)
    whole = [plain(made.batches(epoch)) for epoch in range(2)]
    for skip in (0, 1, made.steps - 1, made.steps):
        assert plain(made.batches(1, skip)) == whole[1][skip:]
        assert plain(made.batches(1, tf.constant(skip))) == whole[1][skip:]
    for epoch, skip, turn in itertools.product(range(2), (0, 2), range(3)):
        expected = [
            batch
            for number, batch in enumerate(whole[epoch])
            if number >= skip and (epoch * made.steps + number) % 3 == turn
        ]
        assert plain(made.batches(epoch, skip, 3, turn)) == expected


@pytest.mark.long
@pytest.mark.slow
@each_way
def test_an_endless_stream_is_one_epoch_after_another(epochs, sampled):
    made = epochs("language_modelling", sampled)
    whole = [batch for epoch in range(3) for batch in plain(made.batches(epoch))]
    assert plain(endless_batches(made).take(len(whole))) == whole
    skip = made.steps + 1
    assert plain(endless_batches(made, skip=skip).take(3)) == whole[skip : skip + 3]
    (update,) = endless_batches(made, skip=2, accumulate=2).take(1)
    assert plain(update) == whole[4:6]


@pytest.mark.parametrize(
    ("kind", "sampled"),
    [("summarization", True), ("embedding", False), ("language_modelling", True)],
)
def test_the_columns_of_an_example_stay_together(epochs, tokenizer, kind, sampled):
    """In any order and with any tokens; the decoder's input is its labels, shifted."""
    texts = set(make_rows(kind)[1])
    seen = set()
    for inputs, labels in epochs(kind, sampled).batches(1):
        read = inputs["source"] if kind in PAIRS else inputs
        outputs = labels if kind != "classification" else None
        if kind == "language_modelling":
            read = labels
        strings = [text.decode() for text in tokenizer.decode(read).numpy()]
        if kind == "embedding":  # the first texts, then the second ones
            strings, others = strings[: len(strings) // 2], strings[len(strings) // 2 :]
            assert others == [text.upper() for text in strings]
        assert set(strings) <= texts
        seen |= set(strings)
        if kind == "embedding":
            continue
        if kind == "classification":
            assert [LABELS[number] for number in labels.numpy()] == list(map(label_of, strings))
            assert labels.dtype == tf.int32
            continue
        if kind in PAIRS:
            targets = [text.decode() for text in tokenizer.decode(labels).numpy()]
            assert targets == [text.upper() for text in strings]
        shifted = inputs["target"] if kind in PAIRS else inputs
        for row, label in zip(shifted.numpy(), outputs.numpy(), strict=True):
            length = np.count_nonzero(label)
            assert label[length - 1] == 3 and np.count_nonzero(row) == length
            assert row[:length].tolist() == [2, *label[: length - 1]]
    assert len(seen) >= 0.8 * len(texts)  # with sampled tokens the last batches may not fit


def test_an_unknown_label_is_reported_with_its_place(tokenizer):
    texts = ["wal"] * 1500
    labels = ["few"] * 1200 + ["none"] + ["few"] * 299
    rows = tf.data.Dataset.from_tensor_slices((texts, labels))
    training = training_class(TASKS["classification"])(tokenizer, CLASSIFIER)
    message = (
        "the train split of the data, example 1201: `label` must be one of the training data's "
        "labels, few, some, many. Received: 'none'.$"
    )
    with pytest.raises(ValueError, match=message):
        Corpus.from_rows(rows, training, MAX_LENGTH)


def test_long_and_empty_texts_are_dropped_with_their_labels(tokenizer):
    rows = [("wal", "few"), ("", "some"), (" ".join(WORDS * 5), "some"), ("over tal", "many")]
    dataset = tf.data.Dataset.from_tensor_slices(tuple(map(list, zip(*rows, strict=True))))
    training = training_class(TASKS["classification"])(
        tokenizer, ClassifierConfig(vocab_size=60, labels=LABELS)
    )
    corpus = Corpus.from_rows(dataset, training, MAX_LENGTH)
    assert (corpus.size, corpus.empty, corpus.too_long, len(corpus.tokens)) == (2, 1, 1, 1)
    examples = {
        (text.decode(), LABELS[label])
        for inputs, labels in corpus.batches(BATCH_TOKENS)
        for text, label in zip(tokenizer.decode(inputs).numpy(), labels.numpy(), strict=True)
    }
    assert examples == {("wal", "few"), ("over tal", "many")}
    other = Corpus.from_rows(
        dataset.map(lambda text, label: (text, tf.where(label == "many", "few", label))),
        training,
        MAX_LENGTH,
    )
    assert other.fingerprint != corpus.fingerprint, "a label is part of the data"
