"""Packing: texts share rows, every token has a place, and texts do not affect each other."""

import numpy as np
import pytest
import tensorflow as tf
from corpora import dataset, text_pairs
from marks import slow
from mixer_rows import MIXERS, mixer_of
from support import randomise, to_numpy, with_effect

from keras_transformer import LanguageModel
from keras_transformer.models import LanguageModelConfig
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.data.corpus import Corpus
from keras_transformer.training.data.encoding import Column
from keras_transformer.training.data.packing import best_fit, pack_texts
from keras_transformer.training.loop.objectives import ProjectedObjective, RealLabels
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.settings.vocabulary_section import VocabularySettings
from keras_transformer.training.tasks.language_modelling import (
    LanguageModellingTraining,
    unpacked,
)
from keras_transformer.training.vocabulary import learn_vocabulary, strings

PAD, BOS, EOS = 0, 2, 3
POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "none")


@pytest.fixture(scope="module")
def tokenizer():
    texts = strings(dataset(text_pairs()), (0, 1))
    return SentencePieceTokenizer(learn_vocabulary(texts, VocabularySettings(size=60)))


def drawn(count, longest, seed=0, shortest=1):
    """Returns texts of distinct lengths as ids, each with its end."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest + 1, count)
    return [[*rng.integers(4, 19, length - 1).tolist(), EOS] for length in lengths]


def packed(texts, max_length):
    """Packs lists of ids; returns a ragged tensor and the number of truncated texts."""
    lengths = np.array(list(map(len, texts)))
    rows, cut = pack_texts(Column(np.concatenate(texts), lengths), max_length)
    return tf.RaggedTensor.from_row_lengths(tf.cast(rows.values, tf.int32), rows.lengths), cut


def split(row):
    """Returns the texts of a row, each of which ends in `EOS`."""
    texts = [[]]
    for token in row:
        texts[-1].append(token)
        if token == EOS:
            texts.append([])
    return [text for text in texts if text]


def test_every_token_of_every_text_is_in_exactly_one_row():
    texts = drawn(211, 13)
    rows, cut = packed(texts, 13)
    assert cut == 0 and max(rows.row_lengths().numpy()) <= 13
    found = [text for row in rows.to_list() for text in split(row)]
    assert sorted(found) == sorted(texts)
    assert len(rows.to_list()) <= 1.05 * sum(map(len, texts)) / 13, "rows are full"


def test_longer_texts_are_split_into_parts_that_fit_a_row():
    texts = [[5, 6, 7, 8, 9, 10, 11, EOS], [12, EOS], [13, 14, 15, 16, 17, 18, 5, 6, EOS], [7, EOS]]
    rows, cut = packed(texts, 4)
    assert cut == 2
    assert sorted(rows.to_list()) == [
        [EOS],
        [5, 6, 7, 8],
        [9, 10, 11, EOS],
        [12, EOS, 7, EOS],
        [13, 14, 15, 16],
        [17, 18, 5, 6],
    ]


def test_rows_never_overflow_and_are_few():
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 30, 500)
    boxes = best_fit(sizes, 30)
    loads = np.bincount(boxes, weights=sizes)
    assert loads.max() <= 30 and len(loads) == boxes.max() + 1 and loads.min() > 0
    assert len(loads) <= np.ceil(sizes.sum() / 30 * 1.02)
    np.testing.assert_array_equal(best_fit(sizes, 30), boxes)
    assert best_fit(np.array([3, 7, 4, 6]), 10).tolist() == [0, 0, 1, 1]


def test_a_row_can_be_split_into_its_texts():
    labels = tf.constant([[5, 6, EOS, 7, EOS, EOS, PAD, PAD], [5, 6, 7, 8, 9, 10, 11, 12]])
    inputs = {name: value.numpy().tolist() for name, value in read(labels).items()}
    assert inputs == {
        "tokens": [[BOS, 5, 6, BOS, 7, BOS, PAD, PAD], [BOS, 5, 6, 7, 8, 9, 10, 11]],
        "documents": [[1, 1, 1, 2, 2, 3, 4, 4], [1] * 8],
        "places": [[0, 1, 2, 0, 1, 0, 0, 1], list(range(8))],
    }


def read(labels):
    return unpacked(labels, BOS, EOS, PAD)


def make(position, **changes):
    fields = {
        **{"vocab_size": 19, "num_layers": 2, "d_model": 12, "d_ff": 17, "num_heads": 3},
        **{"max_length": 13, "dropout": 0.0, "position": position, **changes},
    }
    fields = with_effect(LanguageModelConfig, **fields)
    return randomise(LanguageModel(LanguageModelConfig(**fields)))


def alone(texts):
    """Returns inputs and labels with each text in its own row, padded."""
    labels = tf.ragged.constant(texts).to_tensor(PAD)
    tokens = tf.concat([tf.fill([len(texts), 1], BOS), labels[:, :-1]], axis=1)
    return tf.where(tf.equal(tokens, EOS) | tf.equal(labels, PAD), PAD, tokens), labels


@pytest.mark.parametrize(
    ("position", "mixer"),
    [
        ("rotary", "self_attention"),
        ("none", "self_attention"),
        ("sinusoidal", mixer_of("lstm")),
        *(slow("sinusoidal", mixer_of(kind)) for kind in sorted({*MIXERS} - {"lstm"})),
    ],
)
def test_texts_of_a_row_do_not_see_each_other(position, mixer):
    """Hidden states, loss and gradients equal those of the separate texts."""
    model = make(position, mixer=mixer)
    texts = drawn(17, 11, seed=2)
    rows = packed(texts, 13)[0].to_tensor(PAD)
    assert len(rows) < 12
    inputs = read(rows)
    hidden = to_numpy(model.hidden_states(inputs))
    tokens, labels = alone(texts)
    expected = {
        tuple(text): states[: len(text)]
        for text, states in zip(texts, to_numpy(model.hidden_states(tokens)), strict=True)
    }
    compared = 0
    for row, states, documents in zip(
        rows.numpy(), hidden, inputs["documents"].numpy(), strict=True
    ):
        for number in range(1, documents.max() + 1):
            own = documents == number
            if row[own][0] != PAD:
                np.testing.assert_allclose(states[own], expected[tuple(row[own])], atol=2e-5)
                compared += 1
    assert compared == len(texts)
    objective = ProjectedObjective(model, LabelSmoothedCrossEntropy(0.1, PAD), RealLabels(PAD))
    loss, ours = gradients_of(model, objective, inputs, rows)
    other, theirs = gradients_of(model, objective, tokens, labels)
    np.testing.assert_allclose(loss, other, rtol=1e-5)
    for variable, one, two in zip(model.trainable_variables, ours, theirs, strict=True):
        np.testing.assert_allclose(one, two, atol=2e-4, err_msg=variable.path)
        assert np.abs(two).max() > 1e-3


def gradients_of(model, objective, inputs, labels):
    with tf.GradientTape() as tape:
        loss = objective.sum(inputs, labels, 1.0, False)
    gradients = tape.gradient(loss, model.trainable_variables)
    return loss.numpy(), [to_numpy(tf.convert_to_tensor(gradient)) for gradient in gradients]


def test_a_call_needs_more_than_the_tokens():
    with pytest.raises(TypeError, match="rows of several texts go through `hidden_states`"):
        make("none")(read(tf.constant([[5, EOS]])))


def test_a_changed_text_does_not_change_its_neighbours():
    model = make("sinusoidal")
    labels = np.array([[5, 6, EOS, 7, 8, 9, EOS, 10, EOS, PAD]], np.int32)
    before = to_numpy(model.hidden_states(read(tf.constant(labels))))
    labels[0, 1] = 17
    after = to_numpy(model.hidden_states(read(tf.constant(labels))))
    np.testing.assert_array_equal(after[0, 3:], before[0, 3:])
    assert np.abs(after[0, 2] - before[0, 2]).max() > 1e-3


def test_a_corpus_has_rows_and_counts_texts(tokenizer):
    texts = ["ein zwei", "drei", "", "vier " * 30, "fünf sechs"]
    training = LanguageModellingTraining(tokenizer, packed=True)
    rows = tf.data.Dataset.from_tensor_slices((texts,))
    corpus = Corpus.from_rows(rows, training, 20)
    assert (corpus.examples, corpus.truncated, corpus.too_long, corpus.empty) == (4, 1, 0, 1)
    batches = list(corpus.batches(60))
    assert sum(len(labels) for _, labels in batches) == corpus.size < 4
    whole = tokenizer.encode([text for text in texts if text])
    tokens = sum(int(tf.math.count_nonzero(labels)) for _, labels in batches)
    assert tokens == whole.flat_values.shape[0] == corpus.tokens[0]
    loose = Corpus.from_rows(rows, LanguageModellingTraining(tokenizer), 20)
    assert (loose.size, loose.examples, loose.too_long) == (3, 3, 1)
