"""The signature `search`: each sentence of a batch is searched with its own settings."""

import numpy as np
import pytest
import tensorflow as tf
from searching import by_beam, by_greedy
from uncertain_models import talkative

from keras_transformer import Beam, Translator
from keras_transformer.export.saved_model.buckets import BucketedSearch, Buckets
from keras_transformer.export.saved_model.signatures import make_endpoints

SENTENCES = ["in 17 weeks", "", "for 3 days and 5 hours", "before 4", "in 20 years", "after 9"]
SIZES = [1, 2, 3, 4, 4, 2]
PENALTIES = [0.0, 0.6, 2.0, 1.0, 0.0, 3.0]
LENGTHS = [12, 12, 5, 12, 3, 9]
LONGEST = 12


@pytest.fixture(scope="module")
def doubting(tokenizer):
    """A translator with random weights and several likely outputs."""
    return Translator(talkative("post", tokenizer.vocab_size), tokenizer, LONGEST)


@pytest.fixture(scope="module")
def endpoint(doubting):
    return {signature.name: signature for signature in make_endpoints(doubting, n_best=3)}["search"]


@pytest.fixture(scope="module")
def call(endpoint):
    def call(sentences=SENTENCES, sizes=SIZES, penalties=PENALTIES, lengths=LENGTHS):
        outputs = endpoint.function(
            tf.constant(sentences, tf.string, [len(sentences)]),
            tf.constant(sizes, tf.int32, [len(sizes)]),
            tf.constant(penalties, tf.float32, [len(penalties)]),
            tf.constant(lengths, tf.int32, [len(lengths)]),
        )
        return {name: value.numpy() for name, value in outputs.items()}

    return call


@pytest.fixture(scope="module")
def answer(call):
    return call()


@pytest.mark.slow
def test_each_sentence_gets_the_result_of_a_beam_with_its_settings(answer, doubting):
    assert answer["translation"].shape == answer["score"].shape == (6, 3)
    source = doubting.encode(tf.constant(SENTENCES))[0]
    for row, (size, penalty, length) in enumerate(zip(SIZES, PENALTIES, LENGTHS, strict=True)):
        count = min(size, 3)
        tokens, scores = by_beam(
            doubting.model, source[row : row + 1], size, count, penalty, max_length=length
        )
        texts = doubting.source_tokenizer.decode(tokens[0]).numpy()
        if not SENTENCES[row]:
            assert not any(answer["translation"][row]) and not any(answer["score"][row])
            continue
        assert answer["translation"][row, :count].tolist() == texts.tolist()
        np.testing.assert_allclose(answer["score"][row, :count], scores[0], atol=1e-4)
        assert answer["translation"][row, count:].tolist() == [b""] * (3 - count)
        assert answer["score"][row, count:].tolist() == [-1e9] * (3 - count)


def test_a_sentence_alone_gets_the_same_as_in_a_batch(answer, call):
    for row in (0, 2, 4):
        alone = call(*(values[row : row + 1] for values in (SENTENCES, SIZES, PENALTIES, LENGTHS)))
        assert alone["translation"].tolist() == answer["translation"][row : row + 1].tolist()
        np.testing.assert_allclose(alone["score"], answer["score"][row : row + 1], atol=1e-4)


@pytest.mark.slow
def test_it_equals_the_result_of_a_translator(call, doubting):
    beam = Beam(4, length_penalty=1.5, extra_length=None)
    ours = doubting.answer_batch(SENTENCES, beam)
    answer = call(sizes=[4] * 6, penalties=[1.5] * 6, lengths=[LONGEST] * 6)
    assert [text.decode("utf-8", "replace") for text in answer["translation"][:, 0]] == [
        output.text for output in ours
    ]
    np.testing.assert_allclose(answer["score"][:, 0], [output.score for output in ours], atol=1e-4)
    assert answer["truncated"].tolist() == [output.truncated for output in ours]


@pytest.mark.slow
def test_one_hypothesis_is_greedy_search(call, doubting):
    source = doubting.encode(tf.constant(SENTENCES))[0]
    tokens, scores = by_greedy(doubting.model, source, LONGEST)
    answer = call(sizes=[1] * 6, penalties=[0.0] * 6, lengths=[LONGEST] * 6)
    spoken = np.array([bool(sentence) for sentence in SENTENCES])
    texts = doubting.source_tokenizer.decode(tokens).numpy()
    assert answer["translation"][spoken, 0].tolist() == texts[spoken].tolist()
    np.testing.assert_allclose(answer["score"][spoken, 0], scores[spoken], atol=1e-4)


def test_an_empty_batch(call):
    assert call([], [], [], [])["score"].shape == (0, 3)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("sizes", [1, 2, 0, 4, 4, 2], "`beam_size` must be from 1 to 4"),
        ("sizes", [1, 2, 3, 4, 5, 2], "`beam_size` must be from 1 to 4"),
        ("penalties", [0, 0, 0, -0.1, 0, 0], "`length_penalty` must be at least 0 and finite"),
        ("penalties", [0, np.nan, 0, 0, 0, 0], "`length_penalty` must be at least 0 and finite"),
        ("penalties", [0, np.inf, 0, 0, 0, 0], "`length_penalty` must be at least 0 and finite"),
        ("lengths", [12, 12, 0, 12, 3, 9], "`max_length` must be from 1 to 12"),
        ("lengths", [12, 12, 13, 12, 3, 9], "`max_length` must be from 1 to 12"),
        ("sizes", [2], "`beam_size` must have one number for each of `sentences`"),
        ("penalties", [0.6] * 5, "`length_penalty` must have one number for each of `sentences`"),
        ("lengths", [9] * 7, "`max_length` must have one number for each of `sentences`"),
    ],
)
def test_settings_out_of_range_are_an_error(call, name, values, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call(**{name: values})


@pytest.mark.slow
def test_the_least_max_length_is_the_minimum_length(doubting):
    endpoints = make_endpoints(doubting, Beam(2, min_length=4))
    endpoint = {signature.name: signature for signature in endpoints}["search"]
    example = endpoint.example(SENTENCES)
    assert int(tf.reduce_min(example["max_length"])) >= 4
    example["max_length"] = tf.fill([6], 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`max_length` must be from 4 to 12"):
        endpoint.function(**example)


def test_an_example_has_settings_of_every_kind_for_any_batch_size(endpoint):
    sentences = ["x" * count for count in range(12)]
    example = endpoint.example(sentences)
    assert set(example["beam_size"].numpy()) == {1, 2, 3, 4}
    assert len(set(example["length_penalty"].numpy())) == 3
    assert len(set(example["max_length"].numpy())) == 12
    alone = endpoint.example(sentences[7:8])
    for name, values in example.items():
        assert values[7] == alone[name][0]


def test_each_answer_is_compared_under_its_own_settings(endpoint):
    example, beams = endpoint.example(SENTENCES), endpoint.searches(SENTENCES)
    assert [beam.length_penalty for beam in beams] == example["length_penalty"].numpy().tolist()
    assert [beam.max_length for beam in beams] == example["max_length"].numpy().tolist()
    assert {(type(beam), beam.normalization, beam.extra_length) for beam in beams} == {
        (Beam, "gnmt", None)
    }


def test_settings_stay_with_their_sentences_in_a_compiled_batch():
    """Uses a fake search that returns its arguments."""
    inputs = (
        tf.TensorSpec([None, None], tf.int32),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None], tf.float32),
    )

    def search(source, sizes, penalties):
        return {"first": source[:, 0], "size": sizes + 0, "penalty": penalties + 0}

    run = tf.function(
        BucketedSearch(search, Buckets((2, 4), (5,)), 0, 3, inputs=inputs), input_signature=inputs
    )
    for batch in (0, 1, 3, 4, 9):
        numbers = np.arange(batch, dtype="int32")
        outputs = run(np.stack([numbers + 1] * 3, axis=1), numbers + 10, numbers / np.float32(2))
        np.testing.assert_array_equal(outputs["first"], numbers + 1)
        np.testing.assert_array_equal(outputs["size"], numbers + 10)
        np.testing.assert_array_equal(outputs["penalty"], numbers / 2)
