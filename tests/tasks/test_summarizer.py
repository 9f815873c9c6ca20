"""Summarisation equals translation except for its metrics and names."""

import numpy as np
import pytest
from pipelines import tokenizer, with_larger_weights

from keras_transformer import Beam, Greedy, Transformer, TransformerConfig, Translator
from keras_transformer.decoding import Sample, SearchOptions, score
from keras_transformer.pipelines import Generated, Run, Summarizer, Summary
from keras_transformer.tasks import TASKS, open_run, pipeline_class_of

TASK = TASKS["summarization"]
LINES = ["a cat runs", "the big dog", "", "a dog and a cat and the big dog and the cat runs"]
CONFIG = '[task]\nkind = "{}"\n[data]\nsource = "text"\ntrain = "a"\nvalidation = "b"\n'


@pytest.fixture(scope="module")
def model():
    config = TransformerConfig(
        vocab_size=30, num_layers=1, d_model=16, d_ff=24, num_heads=2, max_length=11, dropout=0.0
    )
    return with_larger_weights(Transformer(config))


@pytest.fixture(scope="module")
def summarizer(model):
    return Summarizer(model, tokenizer())


def length(text):
    return len(tokenizer().encode([text]).to_list()[0])


@pytest.mark.long
@pytest.mark.slow
def test_it_generates_the_outputs_of_a_translator(model, summarizer):
    translator = Translator(model, tokenizer())
    for search in (Greedy(), Beam(3), Sample(temperature=2.0, seed=3)):
        assert summarizer(LINES, search) == translator(LINES, search)
    (first, *_), *_ = summarizer.n_best(LINES, 2, Beam(3))
    assert type(first) is Summary and isinstance(first, Generated)
    assert summarizer.score(LINES[:1], ["a dog"]) == translator.score(LINES[:1], ["a dog"])
    assert summarizer(LINES)[2] == "", "an empty text has an empty summary"


def test_truncated_texts_are_marked_and_counted(summarizer):
    results = [result for result, *_ in summarizer.n_best(LINES, 1, Greedy())]
    assert [result.truncated for result in results] == [False, False, False, True]
    assert summarizer.count_truncated(LINES) == 1
    assert summarizer.count_truncated(LINES, batch_size=1) == 1


def test_the_length_settings_of_a_beam_have_an_effect(summarizer, size=3):
    """For any weights: limits hold for every hypothesis, penalties order them."""
    texts = [line for line in LINES if line]
    for beam in (Beam(size, min_length=7, extra_length=None), Beam(size, max_length=4)):
        options = SearchOptions(n_best=size)
        tokens = beam(summarizer.model, summarizer.encode(texts)[0], options).tokens.numpy()
        lengths = (tokens != 0).sum(axis=-1)
        if beam.min_length == 7:
            assert lengths.min() >= 7
        else:
            assert lengths.max() <= 4


def test_a_score_is_divided_by_the_length_penalty(summarizer, penalty=2.0):
    source = summarizer.encode([line for line in LINES if line])[0]
    beam = Beam(4, length_penalty=penalty, extra_length=None)
    found = beam(summarizer.model, source)
    tokens = found.tokens[:, 0]
    _, scores = score(summarizer.model, source, tokens)
    lengths = np.count_nonzero(tokens, axis=1)
    expected = scores / ((5 + lengths) / 6) ** penalty
    np.testing.assert_allclose(found.scores[:, 0], expected, rtol=1e-4)


@pytest.mark.slow
def test_evaluation_prints_rouge(summarizer):
    pytest.importorskip("rouge_score")
    references = summarizer(LINES)
    results = TASK.evaluate(summarizer, (LINES, references))
    # An empty summary shares no word, even with an empty reference.
    rest = sum(1 for text in references if text) / len(LINES)
    assert results["rouge1"] == results["rougeL"] == pytest.approx(rest)
    assert (results["summaries"], results["truncated"], results["search"]) == (4, 1, "greedy")
    assert list(results)[:3] == ["rouge1", "rouge2", "rougeL"]
    results = TASK.evaluate(summarizer, (LINES, references), search=Beam(2))
    assert results["search"] == str(Beam(2))
    measured = TASK.measure(lambda texts: ["a b"] * len(texts), LINES[:2], ["a b", "c"])
    assert measured == {"rouge1": 0.5, "rouge2": 0.5, "rougeL": 0.5}
    assert set(measured) == {name for name, figure in TASK.metrics.items() if figure.of_answers}


def test_the_settings_of_a_run_name_the_task_of_its_model(
    summarizer, tmp_path, kind="translation", pipeline_class=Translator
):
    run = Run(tmp_path)
    run.write_tokenizers(summarizer.tokenizers)
    summarizer.model.save(run.model)
    assert type(open_run(tmp_path)) is Translator, "without settings"
    run.config.write_text(CONFIG.format(kind))
    assert type(open_run(tmp_path)) is pipeline_class
    run.config.write_text("[task\n")
    with pytest.raises(ValueError, match="config.toml is damaged"):
        open_run(tmp_path)


def test_a_task_of_other_models_is_ignored():
    assert pipeline_class_of(Transformer, "classification") is Translator
    assert pipeline_class_of(Transformer) is Translator


def test_validation_without_rouge_is_refused_before_training(monkeypatch):
    import sys
    from types import SimpleNamespace

    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    settings = SimpleNamespace(training=SimpleNamespace(validate_sentences=5))
    with pytest.raises(ValueError, match="ROUGE needs the package rouge-score"):
        TASK.require(settings)
    TASK.require(SimpleNamespace(training=SimpleNamespace(validate_sentences=0)))
