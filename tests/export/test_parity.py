import dataclasses
import math

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf
from support import small_config

from keras_transformer import Transformer, Translator
from keras_transformer.export import MarianOptions
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.parity import (
    compare,
    copy_model,
    in_float32,
    require_identical,
)
from keras_transformer.tasks.results import Translation
from keras_transformer.tasks.strings import check_samples
from keras_transformer.text.quality import score

SENTENCES = [f"sentence {number}" for number in range(10)]
OURS = [Translation(f"in {number} weeks", -1.5 - number, False) for number in range(10)]


def changed(numbers, **fields):
    return [
        dataclasses.replace(translation, **fields) if number in numbers else translation
        for number, translation in enumerate(OURS)
    ]


def test_equal_translations_agree(tokenizer):
    parity = compare(SENTENCES, OURS, list(OURS), tokenizer)
    require_identical(parity, "it")
    assert parity == {
        "sentences": 10,
        "identical": 10,
        "agreement": 1.0,
        "token_agreement": 1.0,
        "score_difference": 0.0,
        "differences": [],
    }


def test_a_single_difference_is_counted_and_shown(tokenizer):
    parity = compare(SENTENCES, OURS, changed({4}, text="in 4 days"), tokenizer)
    assert (parity["identical"], parity["agreement"]) == (9, 0.9)
    assert parity["differences"] == [
        {"sentence": "sentence 4", "expected": "in 4 weeks", "found": "in 4 days"}
    ]
    with pytest.raises(
        ExportError,
        match="1 of 10 .* differ.*First: 'sentence 4' became 'in 4 days', not 'in 4 weeks'",
    ):
        require_identical(parity, "model.tflite")


def test_the_agreement_of_tokens_is_counted_position_by_position(tokenizer):
    expected = [Translation("in 4 weeks", 0.0, False), Translation("in 17 weeks", 0.0, False)]
    exported = [Translation("in 5 weeks", 0.0, False), Translation("", 0.0, False)]
    lengths = [len(tokenizer.encode([translation.text])[0]) for translation in expected]
    parity = compare(["a", "b"], expected, exported, tokenizer)
    # The first output differs in one token; the second shares no token, not even its end.
    assert parity["token_agreement"] == pytest.approx((lengths[0] - 1) / sum(lengths))


def test_only_the_first_few_differences_are_kept(tokenizer):
    parity = compare(SENTENCES, OURS, changed(range(10), text="nothing"), tokenizer)
    assert [difference["sentence"] for difference in parity["differences"]] == SENTENCES[:5]
    assert parity["identical"] == 0


@pytest.mark.parametrize("score", [-5.51, -5.0, math.nan])
def test_the_same_words_with_another_score_are_not_identical(tokenizer, score):
    parity = compare(SENTENCES, OURS, changed({4}, score=score), tokenizer)
    assert parity["identical"] == 10
    with pytest.raises(ExportError, match="their scores differ by up to .* of the score"):
        require_identical(parity, "it")


def test_scores_may_differ_by_rounding(tokenizer):
    exported = changed({4}, score=-5.501)
    require_identical(compare(SENTENCES, OURS, exported, tokenizer), "it")


def test_a_sentence_that_only_one_side_truncates_is_a_difference(tokenizer):
    parity = compare(SENTENCES, OURS, changed({2}, truncated=True), tokenizer)
    assert parity["identical"] == 9


def test_quantised_files_may_differ_up_to_a_limit(tokenizer):
    parity = compare(SENTENCES, OURS, changed({4}, text="in 4 days", score=-9.0), tokenizer)
    assert 0.9 < parity["token_agreement"] < 1
    Limits("int8", 0.9).require_agreement(parity["token_agreement"], "tokens", "it")
    with pytest.raises(ExportError, match=r"model\.tflite: .*% of the tokens .* requires 99\.9 %"):
        Limits("int8", 0.999).require_agreement(parity["token_agreement"], "tokens", "model.tflite")


def test_nothing_to_compare_is_an_error():
    for nothing in ([], ["", "  "]):
        with pytest.raises(ValueError, match="at least one sentence that is not empty"):
            check_samples(nothing)
    with pytest.raises(TypeError, match="must be a list of strings. Received: 'in 3 weeks'"):
        check_samples("in 3 weeks")
    with pytest.raises(TypeError, match="must be a list of strings. Received: .*3"):
        check_samples(["one", 3])


@pytest.mark.slow
def test_exports_compute_in_float32(translator):
    assert in_float32(translator) is translator
    mixed = Transformer(translator.model.config, dtype="mixed_bfloat16")
    mixed.set_weights(translator.model.get_weights())
    float32 = in_float32(Translator(mixed, translator.source_tokenizer, max_length=9))
    assert float32.max_length == 9
    source = tf.constant([[5, 6, 3]])
    memory, _ = float32.model.encode(source)
    assert memory.dtype == tf.float32
    np.testing.assert_array_equal(memory, translator.model.encode(source)[0])


def test_a_copy_keeps_its_weights_when_the_original_changes():
    """Both share their memory at first."""
    model = Transformer(small_config())
    copy = copy_model(model)
    before = [weight.numpy() for weight in copy.weights]
    for weight in model.weights:
        weight.assign_add(np.ones(weight.shape, np.float32))
    for weight, ours, theirs in zip(copy.weights, before, model.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), ours)
        np.testing.assert_array_equal(theirs.numpy(), ours + 1)


def test_quality_is_measured_by_sacrebleu_for_both():
    references = [f"in {number} weeks and {number} days" for number in range(10)]
    exported = ["in 4 weeks and a day"] * len(references)
    both = (score(side, references) for side in (references, exported))
    metrics = ({name: side[name] for name in ("bleu", "chrf")} for side in both)
    quality = Limits().compare_quality(*metrics, "it")
    for name, metric in (("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF())):
        expected = [
            metric.corpus_score(side, [references]).score for side in (references, exported)
        ]
        assert [quality[name][key] for key in ("in_memory", "exported")] == expected
        assert quality[name]["difference"] == expected[1] - expected[0] < -1


def test_a_loss_is_allowed_up_to_its_limit():
    ours, theirs = {"bleu": 30.0, "chrf": 50.0}, {"bleu": 29.5, "chrf": 48.0}
    quality = Limits("int8", max_loss=2.0).compare_quality(ours, theirs, "it")
    assert quality["bleu"] == {"in_memory": 30.0, "exported": 29.5, "difference": -0.5}
    message = "chrF falls from 50.0 to 48.0, by more than the 1.5 that `max_loss` allows."
    with pytest.raises(ExportError, match=message):
        Limits("int8", max_loss=1.5).compare_quality(ours, theirs, "x.tflite")
    with pytest.raises(ExportError, match="x.tflite: BLEU falls from 30.0 to 29.5, .* the 0.25 th"):
        Limits("int8", max_loss=0.25).compare_quality(ours, theirs, "x.tflite")
    with pytest.raises(ExportError, match="BLEU"):
        Limits("int8", max_loss=100).compare_quality(ours, {**theirs, "bleu": math.nan}, "x.tflite")
    better = {"bleu": 31.0, "chrf": 50.0}
    gain = Limits("int8", max_loss=0.0).compare_quality(ours, better, "it")
    assert gain["bleu"]["difference"] == 1
    # No limit is given.
    assert Limits().compare_quality(ours, theirs, "it")["chrf"]["difference"] == -2


def test_limits_are_checked():
    for limits, message in (
        ({"min_agreement": 2}, "`min_agreement` must be between 0 and 1, or None. .*=2"),
        ({"max_loss": -1}, "`max_loss` must be at least 0 and finite. .*=-1"),
        (
            {"max_score_loss": math.nan},
            "`max_score_loss` must be at least 0 and finite, or None",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            Limits(**limits)
    with pytest.raises(ValueError, match="`quantize` must be one of none, int8. .*='int4'"):
        MarianOptions("int4")
    with pytest.raises(ValueError, match="one reference for each sample. Received: 2 samples, 1"):
        Limits(references=["a"]).check_references(["a", "b"])
