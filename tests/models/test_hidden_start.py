"""Language models whose texts begin with a token that later positions do not attend to."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from marks import slow, slow_except

from keras_transformer import Beam, Greedy, LanguageModel, MultiHeadSelfAttention, TransformerConfig
from keras_transformer.config.stack import StackConfig
from keras_transformer.decoding import SearchOptions, score
from keras_transformer.models import LanguageModelConfig
from keras_transformer.pipelines import TextGenerator
from keras_transformer.positions import Rotary
from keras_transformer.tasks.language_modelling.task import LanguageModellingTask
from keras_transformer.tasks.results import Score
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.loop.objectives import ProjectedObjective, RealLabels
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tasks.language_modelling import LanguageModellingTraining
from keras_transformer.training.vocabulary import learn_vocabulary

UNITS = ("days", "weeks")
WORDS = [f"{when} {n} {unit}" for when in ("in", "after") for n in (2, 17) for unit in UNITS]
BOS, EOS, PAD, SIZE = 2, 3, 0, 17
OPTIONS = {
    **{"vocab_size": SIZE, "num_layers": 2, "d_model": 12, "num_heads": 2, "d_ff": 14},
    **{"max_length": 9, "dropout": 0.0, "bos_id": BOS, "eos_id": EOS, "pad_id": PAD},
}
POSITIONS = {
    "rotary": {},
    "relative": {"position": {"kind": "relative", "distance": 3}},
    "alibi": {},
    "t5": {"position": {"kind": "t5", "buckets": 8, "distance": 6}},
    "none": {"window": 2},
}


def models(position="rotary", **options):
    """A model that hides the start, and one with the same weights that does not."""
    keras.utils.set_random_seed(3)
    options = {**OPTIONS, "position": position, **POSITIONS[position], **options}
    hidden = LanguageModel(LanguageModelConfig(**options, attends_to_start=False))
    seen = LanguageModel(LanguageModelConfig(**options))
    weights = [np.random.default_rng(0).normal(size=w.shape, scale=0.6) for w in hidden.weights]
    for model in (hidden, seen):
        model.set_weights(weights)
    return hidden, seen


def rows(count=2, length=8, seed=0):
    return np.random.default_rng(seed).integers(4, SIZE, (count, length))


def begun(ids):
    return np.pad(ids, [[0, 0], [1, 0]], constant_values=BOS)


def log_probabilities(logits):
    logits = np.asarray(logits, "float64")
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)


@pytest.mark.parametrize("position", slow_except(POSITIONS, "alibi"))
def test_a_text_is_computed_as_without_its_start(position):
    hidden, seen = models(position)
    ids = rows()
    ours, plain = hidden(begun(ids)).numpy(), seen(ids).numpy()
    np.testing.assert_allclose(ours[:, 1:], plain, rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours[:, 0], seen(begun(ids))[:, 0], rtol=0, atol=1e-5)
    assert np.abs(ours - seen(begun(ids)))[:, 1:].max() > 0.01
    copy = LanguageModel.from_config(hidden.get_config())
    copy.set_weights(hidden.get_weights())
    np.testing.assert_array_equal(copy(begun(ids)), ours)


def test_rows_of_several_texts():
    hidden, seen = models()
    one, other = rows(1, 3), rows(1, 4, 1)
    inputs = {
        "tokens": np.concatenate([begun(one), begun(other)], axis=1),
        "documents": np.array([[1] * 4 + [2] * 5]),
        "places": np.array([[*range(4), *range(5)]]),
    }
    states = hidden.hidden_states(inputs).numpy()
    for text, part in ((one, states[:, 1:4]), (other, states[:, 5:])):
        np.testing.assert_allclose(part, seen.hidden_states(text), rtol=0, atol=1e-5)


def prompts():
    lengths, ids = (1, 4, 2), rows(3, 4, 5)
    return [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]


def padded(texts):
    return tf.ragged.constant([[*text, EOS] for text in texts], dtype=tf.int32).to_tensor(PAD)


@pytest.mark.slow
def test_greedy_search_equals_a_loop_without_the_start():
    hidden, seen = models()
    found = Greedy()(hidden, padded(prompts())).tokens.numpy()[:, 0]
    for row, text in zip(found, prompts(), strict=True):
        text = [*text]
        while len(text) < OPTIONS["max_length"] and text[-1] != EOS:
            text.append(int(np.argmax(seen(np.array([text]))[0, -1])))
        assert [token for token in row if token != PAD] == text


@pytest.mark.slow
def test_the_score_of_a_beam_is_that_of_its_continuation(stages=(3, 5)):
    hidden, seen = models()
    source = padded(prompts())
    found = Beam(3, length_penalty=0.0)(
        hidden, source, SearchOptions(n_best=3, cache_stages=stages)
    )
    outputs = found.tokens.numpy()
    for best in range(3):
        sums = score(hidden, source, outputs[:, best])[1]
        np.testing.assert_allclose(found.scores[:, best], sums, rtol=0, atol=1e-4)
    for prompt, row, total in zip(prompts(), outputs[:, 0], found.scores[:, 0], strict=True):
        text = [int(token) for token in row if token != PAD]
        gains = log_probabilities(seen(np.array([text])))[0]
        expected = sum(gains[n - 1, text[n]] for n in range(len(prompt), len(text)))
        np.testing.assert_allclose(total, expected, rtol=0, atol=1e-4)


def test_a_text_is_scored_from_its_second_token_on():
    hidden, seen, tokenizer = with_tokenizer()
    texts = ["in 17 weeks", "2 days", ""]
    scores = TextGenerator(hidden, tokenizer).score(texts)
    for found, ids in zip(scores[:2], tokenizer.encode(texts).to_list(), strict=False):
        gains = log_probabilities(seen(np.array([ids])))[0]
        expected = sum(gains[n - 1, ids[n]] for n in range(1, len(ids)))
        np.testing.assert_allclose(found.score, expected, rtol=0, atol=1e-4)
        assert found.tokens == len(ids) - 1
    # An empty text has nothing but an end, which the model predicts from the start alone.
    gains = log_probabilities(seen(np.array([[tokenizer.bos_id]])))[0, 0]
    np.testing.assert_allclose(scores[2].score, gains[tokenizer.eos_id], rtol=0, atol=1e-4)
    assert scores[2].tokens == 1


@pytest.mark.parametrize("kind", ["hidden", slow("seen")])
def test_a_text_that_is_cut_to_nothing_has_no_tokens_to_score(kind):
    hidden, seen, tokenizer = with_tokenizer()
    model = hidden if kind == "hidden" else seen
    scores = TextGenerator(model, tokenizer, max_length=1).score(["in 17 weeks"])
    assert scores == [Score(0.0, 0, True)]


def with_tokenizer():
    """The models of `models` with a tokenizer of `WORDS`."""
    settings = types.SimpleNamespace(
        table=None, size=40, model_type="bpe", split_digits=True, character_coverage=1.0
    )
    tokenizer = SentencePieceTokenizer(learn_vocabulary(WORDS, settings))
    special = {name: getattr(tokenizer, name) for name in ("bos_id", "eos_id", "pad_id")}
    return *models(vocab_size=tokenizer.vocab_size, max_length=30, **special), tokenizer


@pytest.mark.slow
def test_the_order_of_an_ensemble_does_not_change_its_scores():
    hidden, seen, tokenizer = with_tokenizer()
    one, other = (
        TextGenerator(pair, tokenizer).score(["in 17 weeks"])[0]
        for pair in ([hidden, seen], [seen, hidden])
    )
    assert one.tokens == other.tokens == len(tokenizer.encode(["in 17 weeks"])[0]) - 1
    np.testing.assert_allclose(one.score, other.score, rtol=1e-5)


@pytest.mark.slow
def test_training_counts_the_tokens_that_a_score_counts(is_packed=True):
    """The sums of the losses and of the scores are equal, also for parts of a row."""
    hidden, _, tokenizer = with_tokenizer()
    texts = ["in 17 weeks", "2 days", "", "after 2 weeks"]
    scores = TextGenerator(hidden, tokenizer).score(texts)
    rows = tokenizer.encode(texts)
    if is_packed:
        rows = tf.RaggedTensor.from_row_lengths(
            rows.flat_values, [sum(map(len, rows[n : n + 2])) for n in (0, 2)]
        )
    training = LanguageModellingTraining(tokenizer, hidden.config, packed=is_packed)
    inputs, labels = training.assemble(text=rows.to_tensor(tokenizer.pad_id))
    objective = ProjectedObjective(
        hidden, LabelSmoothedCrossEntropy(0.0, tokenizer.pad_id), RealLabels(tokenizer.pad_id)
    )
    loss, count = objective.measure(inputs, labels, False)
    assert count == sum(score.tokens for score in scores)
    np.testing.assert_allclose(loss, -sum(score.score for score in scores), rtol=1e-5)


def test_the_perplexity_per_character_leaves_out_the_characters_of_the_first_token():
    hidden, seen, tokenizer = with_tokenizer()
    texts = ["in 17 weeks", "2 days"]
    whole = [len(text) + 1 for text in texts]
    assert TextGenerator(seen, tokenizer).scored_characters(texts) == whole
    pieces = [tokenizer.pieces(ids[:1])[0] for ids in tokenizer.encode(texts).to_list()]
    first = [len(piece.lstrip("▁")) for piece in pieces]
    generator = TextGenerator(hidden, tokenizer)
    expected = [count - length for count, length in zip(whole, first, strict=True)]
    assert sum(first) and generator.scored_characters(texts) == expected
    assert generator.scored_characters([]) == []
    results = LanguageModellingTask().evaluate(generator, [texts])
    total = sum(score.score for score in generator.score(texts))
    assert results["characters"] == sum(expected)
    assert results["perplexity_per_character"] == pytest.approx(np.exp(-total / sum(expected)))


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "binary"])
def test_positions_that_count_the_start_are_refused(position):
    with pytest.raises(ValueError, match="`attends_to_start` must be true unless `position`"):
        LanguageModelConfig(**OPTIONS, position=position, attends_to_start=False)


def test_a_recurrence_cannot_hide_the_start():
    with pytest.raises(ValueError, match=r"`attends_to_start` must be true with SSRU"):
        StackConfig.from_flat(mixer="ssru", position="none", attends_to_start=False)


def test_a_start_is_hidden_in_causal_attention_only():
    with pytest.raises(ValueError, match="`hides_start` must be false unless attention is causal"):
        MultiHeadSelfAttention(2, hides_start=True, position=Rotary())
    with pytest.raises((TypeError, ValueError), match="attends_to_start"):
        TransformerConfig(attends_to_start=False)
