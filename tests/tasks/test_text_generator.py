"""A language model in use: the results of the searches, and the probability of a text."""

import math

import numpy as np
import pytest
import reference
import tensorflow as tf
from pipelines import classifier, generator, tokenizer
from searching import by_beam, by_greedy, by_sample

from keras_transformer import Beam, Greedy
from keras_transformer.decoding import Sample
from keras_transformer.pipelines import Generated, Score, TextGenerator, Translation
from keras_transformer.tasks import TASKS, memory

PROMPTS = ["a cat", "the big", "", "dog", "a big cat and", "the the the"]
LONG = "the big dog and the cat and a dog and the big cat runs"
TASK = TASKS["language_modelling"]


def ids_of(text):
    ids = tokenizer().encode([text]).to_list()[0]
    return ids if len(ids) <= 11 else [*ids[:10], 3]


def text_of(tokens):
    return tokenizer().decode(tokens)[0].numpy().decode()


def log_probability(text):
    """Computes one text with one pass of the whole model in float64, its end included."""
    ids = ids_of(text)
    logits = generator().model(np.array([[2, *ids[:-1]]]))
    rows = reference.log_probabilities(logits)[0]
    return sum(row[token] for row, token in zip(rows, ids, strict=True))


def test_a_text_is_the_decoded_output_of_greedy_decoding():
    texts = generator()(PROMPTS)
    assert len(set(texts)) == len(PROMPTS)
    for prompt, text in zip(PROMPTS, texts, strict=True):
        tokens, _ = by_greedy(generator().model, np.array([ids_of(prompt)]))
        assert text == text_of(tokens)
        assert text.startswith(prompt)


def test_a_batch_has_as_many_texts_as_fit_into_memory_at_any_length(monkeypatch):
    sizes = []
    made = generator()
    one = memory.beam_memory(made.model.config, 1, 1, made.max_length)
    length = len(ids_of("dog")) - 1 + 3  # of the prompt and of the new tokens
    short = memory.beam_memory(made.model.config, 1, 1, length)
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 2.5 * one)

    def answer(texts, n, search, numbers):
        sizes.append(len(texts))
        return [["answer"]] * len(texts)

    monkeypatch.setattr(made, "n_best_batch", answer)
    made.n_best(PROMPTS, 1, Greedy())
    assert sizes == [2, 2, 2]
    sizes.clear()
    made.n_best(["dog"] * 6, 1, Greedy(3))
    assert sizes[0] == min(6, int(2.5 * one / short)) > 2, "the limit of the search"
    monkeypatch.setattr(memory, "available_memory", lambda: one / 10)
    sizes.clear()
    made.n_best(PROMPTS, 1, Greedy())
    assert sizes == [1] * len(PROMPTS)


def test_progress_moves_with_each_batch(monkeypatch):
    made, counts = generator(), []
    monkeypatch.setattr(made, "n_best_batch", lambda texts, *_: [["answer"]] * len(texts))
    made.n_best(PROMPTS, 1, Greedy(), batch_size=4, progress=counts.append)
    assert counts == [4, 6]


@pytest.mark.long
@pytest.mark.slow
def test_a_beam_equals_beam_decoding_and_continues_its_prompt():
    best = generator().n_best(PROMPTS, 3, Beam(3, normalization="none", extra_length=None))
    for prompt, outputs in zip(PROMPTS, best, strict=True):
        tokens, scores = by_beam(
            generator().model, np.array([ids_of(prompt)]), 3, 3, normalization="none"
        )
        assert outputs[0].text == text_of(tokens[:, 0])
        assert outputs[0].score == pytest.approx(float(scores[0, 0]), abs=1e-4)
        assert all(output.text.startswith(prompt) for output in outputs)
        assert all(type(output) is Generated for output in outputs)


@pytest.mark.slow
def test_samples_continue_their_prompts_for_any_batch_size():
    search = Sample(temperature=2.0, seed=3)
    drawn = generator()(PROMPTS, search)
    assert all(text.startswith(prompt) for prompt, text in zip(PROMPTS, drawn, strict=True))
    assert drawn == generator()(PROMPTS, search, batch_size=1)
    assert drawn != generator()(PROMPTS, Sample(temperature=2.0, seed=4))
    tokens, _ = by_sample(generator().model, np.array([ids_of("dog")]), 0.0)
    assert generator()(["dog"], Sample(temperature=0)) == [text_of(tokens)]


def test_an_empty_prompt_gets_a_text():
    """The translation of an empty sentence, in contrast, is empty."""
    assert not generator().blank
    tokens, scores = by_greedy(generator().model, np.array([[3]]))
    ((output,),) = generator().n_best([""], 1, Greedy())
    assert output.text == text_of(tokens) and output.score == pytest.approx(
        float(scores[0]), abs=1e-4
    )


def test_a_score_is_the_sum_of_the_log_probabilities():
    texts = ["a cat runs", "dog", "", "the big dog and"]
    for batch_size in (1, 64):
        scores = generator().score(texts, batch_size)
        for text, score in zip(texts, scores, strict=True):
            assert score == Score(score.score, len(ids_of(text)), False)
            assert score.score == pytest.approx(log_probability(text), abs=1e-4)
    assert generator().score([]) == []


def test_a_long_text_is_truncated_and_marked():
    assert len(tokenizer().encode([LONG])[0]) > 11
    (score,) = generator().score([LONG])
    assert (score.truncated, score.tokens) == (True, 10), "the end is not the text's"
    ids = np.array([[2, *tokenizer().encode([LONG])[0].numpy()[:10]]], "int32")
    logits = tf.nn.log_softmax(generator().model(ids[:, :-1]))
    expected = tf.reduce_sum(tf.gather(logits, ids[:, 1:], batch_dims=2))
    assert score.score == pytest.approx(float(expected), abs=1e-4)
    ((output,),) = generator().n_best([LONG], 1, Greedy())
    assert output.truncated


def test_wrong_texts_models_and_searches_are_refused():
    with pytest.raises(TypeError, match="`texts` must be a list of strings. Received: 'a'"):
        generator().score("a")
    with pytest.raises(TypeError, match="`sentences` must be a list of strings"):
        generator()(3)
    with pytest.raises(TypeError, match="must be a LanguageModel; `TextGenerator.from_run"):
        TextGenerator(classifier().model, tokenizer())
    with pytest.raises(ValueError, match="at most the vocabulary's number of tokens, 30.*size=31"):
        generator()(["dog"], Beam(31))
    assert not issubclass(Translation, TextGenerator) and not hasattr(generator(), "align")


# Task


class Fixed:
    """A fake generator with a table of the probabilities of texts."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, texts):
        return [self.scores[text] for text in texts]

    def scored_characters(self, texts):
        return [len(text) + 1 for text in texts]


def evaluate(scores, texts):
    results = TASK.evaluate(Fixed(scores), [texts])
    assert results.pop("seconds") >= 0
    return results


def test_metrics_follow_their_definitions():
    """10 nats for 5 tokens of 4 + 7 characters, ends included, without the truncated text."""
    scores = {
        "dog": Score(-3.0, 2, False),
        "a näht": Score(-7.0, 3, False),
        "long": Score(-99.0, 11, True),
    }
    assert evaluate(scores, ["dog", "", "a näht", "long", "  "]) == {
        "perplexity": pytest.approx(math.exp(10 / 5)),
        "perplexity_per_character": pytest.approx(math.exp(10 / 11)),
        "tokens": 5,
        "characters": 11,
        "texts": 3,
        "truncated": 1,
    }


def test_the_perplexity_is_that_of_the_model():
    texts = ["a cat runs", "dog", "the big dog and"]
    results = TASK.evaluate(generator(), [texts])
    total, tokens = sum(map(log_probability, texts)), sum(len(ids_of(text)) for text in texts)
    assert results["perplexity"] == pytest.approx(math.exp(-total / tokens), rel=1e-5)


def test_no_texts_are_reported_in_one_line():
    with pytest.raises(ValueError, match="at least one text that is not empty. Received: none"):
        evaluate({}, ["", " "])
    with pytest.raises(ValueError, match="Every text is longer than the model's limit"):
        evaluate({"long": Score(-1.0, 11, True)}, ["long"])
