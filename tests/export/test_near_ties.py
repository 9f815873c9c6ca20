"""Exports that are right but for rounding pass, those that are wrong in anything do not.

Random weights, nothing is trained: logits lie close together, and every layer matters.
"""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf
from support import randomise, small_config

from keras_transformer import BeamTranslator, Transformer, Translator
from keras_transformer.decoding import score
from keras_transformer.export.agreement import Agreement
from keras_transformer.export.near_ties import Teacher
from keras_transformer.export.parity import ExportError, copy_model
from keras_transformer.export.reference import Output, Reference, Rules, with_tokens

LIMIT = 12


@pytest.fixture(scope="module")
def model(tokenizer):
    """A random model that ends some of its outputs."""
    config = small_config(
        vocab_size=tokenizer.vocab_size, max_length=LIMIT, tie="none", position="learned"
    )
    model = randomise(Transformer(config))
    kernel = model.output_layer.kernel.numpy()  # [D, V]
    kernel[:, 3] *= 2.5
    kernel[:, [0, 2]] = 0  # padding and the beginning are never the best
    model.output_layer.kernel.assign(kernel)
    return model


@pytest.fixture(scope="module")
def random_translator(model, tokenizer):
    return Translator(model, tokenizer)


@pytest.fixture(scope="module")
def texts(sentences):
    return [*sentences[:12], "", "weeks"]


def settings_of(translator, beam):
    return BeamTranslator(translator, 4, length_penalty=1.0) if beam else translator


@pytest.fixture(scope="module")
def judge(random_translator, texts):
    """A function that judges another translator as if it were an export; returns the figures."""
    agreement, expected = Agreement(random_translator, texts), {}

    def judge(other, beam=False, change=None):
        if beam not in expected:
            reference = Reference(settings_of(random_translator, beam), 3 if beam else 1)
            expected[beam] = reference.rules, reference.outputs(texts)
        found = Reference(settings_of(other, beam), 3 if beam else 1).outputs(texts)
        rules, ours = expected[beam]
        return agreement.judge(rules, ours, found if change is None else change(found), "it")

    return judge


def changed(translator, change):
    """A translator whose model is a copy that `change` has changed."""
    model = copy_model(translator.model)
    change(model)
    return Translator(model, translator.tokenizer, translator.max_length)


def test_a_teacher_finds_what_the_model_finds(random_translator, model, tokenizer):
    sources = tokenizer.encode(["in 3 weeks", "after 5 days"]).to_list()
    outputs = [best for best, *_ in Reference(random_translator).outputs(["in 3 weeks", "x"])]
    targets = [outputs[0].tokens, (*outputs[1].tokens[:2], 3)]
    for source, target, reading in zip(
        sources, targets, Teacher(random_translator).read(sources, targets), strict=True
    ):
        gains, total = score(model, [source], [list(target)])
        assert reading.score == pytest.approx(float(total[0]), abs=1e-5)
        assert reading.tokens == len(target) == gains.shape[1]
    gaps = [reading.gap for reading in Teacher(random_translator).read(sources, targets)]
    assert gaps[0] == pytest.approx(0, abs=1e-5) and gaps[1] > 0.1


@pytest.mark.parametrize("beam", [False, True], ids=["greedy", "beam"])
def test_the_same_model_in_float64_is_right(judge, random_translator, beam):
    """Another program: all its sums are rounded in another way."""
    model = Transformer(random_translator.model.config, dtype="float64")
    model.set_weights(random_translator.model.get_weights())
    report = judge(Translator(model, random_translator.tokenizer), beam)
    assert report["hypotheses"] == report["sentences"] * (3 if beam else 1)
    assert report["identical"] + report["near_ties"] >= report["sentences"]
    assert report["processor"]["name"]


def swap_near_ties(model, by):
    """Every word's logit is nearly that of another word; the others win if `by` is above 0."""
    kernel = model.output_layer.kernel.numpy()
    words = np.arange(4, kernel.shape[1] - 1, 2)
    kernel[:, words] = kernel[:, words + 1] * (1 + by)
    model.output_layer.kernel.assign(kernel)


@pytest.mark.parametrize("beam", [False, True], ids=["greedy", "beam"])
def test_the_other_side_of_a_tie_is_no_mistake(random_translator, texts, beam):
    """Two programs that round differently take the one token or the other; all that follows
    differs."""
    tied = changed(random_translator, lambda model: swap_near_ties(model, 0))
    reference = Reference(settings_of(tied, beam))
    expected = reference.outputs(texts)
    agreement = Agreement(tied, texts)
    reports = []
    for by in (1e-7, -1e-7):
        other = changed(tied, lambda model, by=by: swap_near_ties(model, by))
        found = Reference(settings_of(other, beam)).outputs(texts)
        reports.append(agreement.judge(reference.rules, expected, found, "it"))
    assert beam or max(report["near_ties"] for report in reports) >= 8
    larger = changed(tied, lambda model: swap_near_ties(model, 1e-3))
    found = Reference(settings_of(larger, beam)).outputs(texts)
    with pytest.raises(ExportError, match="it: .* translations differ .* by more than rounding"):
        agreement.judge(reference.rules, expected, found, "it")


def scale(path, factor):
    def change(model):
        (weight,) = [each for each in model.weights if each.path.endswith(path)]
        weight.assign(factor * weight)

    return change


def swap_rows(path):
    def change(model):
        (weight,) = [each for each in model.weights if each.path.endswith(path)]
        weight.assign(tf.reverse(weight, [0]))

    return change


def drop_mask(model):
    model.source_mask = lambda source: tf.ones([tf.shape(source)[0], 1, tf.shape(source)[1]], bool)


def drop_norm(model):
    norm = model.decoder.blocks[1].cross_attention_norm
    norm.gamma.assign(tf.ones_like(norm.gamma))
    norm.beta.assign(tf.zeros_like(norm.beta))


def shift_positions(model):
    positions = model.target_embedding.positions
    positions.assign(tf.roll(positions, -1, 0))


def epsilon(value):
    def change(model):
        for stack in (model.encoder, model.decoder):
            for block in stack.blocks:
                for layer in block.layers:
                    if hasattr(layer, "epsilon"):
                        layer.epsilon = value

    return change


WRONG = {
    "a matrix upside down": swap_rows("decoder/block_1/cross_attention/value/kernel"),
    "query and key scaled": scale("encoder/block_0/self_attention/query/kernel", 1.01),
    "one norm without its weights": drop_norm,
    "no mask of the padding": drop_mask,
    "positions from 1": shift_positions,
    "a bias 1 % off": scale("decoder/block_0/feed_forward/outer/bias", 1.01),
    "a table 0.01 % off": scale("source_embedding/table", 1.0001),
    "epsilon 1e-3": epsilon(1e-3),
    # The smallest that is found here. For a model that is sure of its tokens, such as the demo's,
    # it changes no more than rounding does: 9 units where `MARGIN` is 32.
    "epsilon 1e-5": epsilon(1e-5),
}


@pytest.mark.parametrize("beam", [False, True], ids=["greedy", "beam"])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_found_out(judge, random_translator, wrong, beam):
    with pytest.raises(ExportError, match="it: .* translations differ .* The export was not kept"):
        judge(changed(random_translator, WRONG[wrong]), beam)


def test_a_search_with_another_limit_is_found_out(judge, random_translator):
    shorter = Translator(random_translator.model, random_translator.tokenizer, LIMIT)
    shorter.max_length = LIMIT  # the sources are the same

    def cut(found):
        return [[dataclasses.replace(best, tokens=best.tokens[:-1])] for (best,) in found]

    with pytest.raises(ExportError, match="it stops after .* tokens, where the limit is 12|score"):
        judge(shorter, change=cut)


def test_only_an_end_or_the_limit_ends_an_output(random_translator, texts):
    """With the score that belongs to what is there."""
    reference = Reference(random_translator)
    expected = reference.outputs(texts)
    sources = random_translator.tokenizer.encode(texts).to_list()
    sources = [[*ids[:-1][: LIMIT - 1], 3] for ids in sources]
    cut = [best.tokens[:-1] if len(best.tokens) > 2 else best.tokens for (best,) in expected]
    readings = Teacher(random_translator).read(sources, cut)
    found = [
        [dataclasses.replace(best, tokens=tokens, score=reading.score)] if tokens else [best]
        for (best,), tokens, reading in zip(expected, cut, readings, strict=True)
    ]
    with pytest.raises(ExportError, match=r"it stops after \d+ tokens, where the limit is 12"):
        Agreement(random_translator, texts).judge(reference.rules, expected, found, "it")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: [row[0], row[2], row[1]], "prefers its own by"),
        (lambda row: [*row[:2], row[0]], "prefers its own by"),
        (
            lambda row: [*row[:2], dataclasses.replace(row[2], score=row[2].score - 0.01)],
            "its score",
        ),
        (lambda row: [*row[:2], dataclasses.replace(row[2], score=math.nan)], "its score is nan"),
        (lambda row: [*row[:2], Output("", -1e9, False, ())], "only one of them has"),
        (lambda row: [dataclasses.replace(row[0], truncated=True), *row[1:]], "whole source"),
        (lambda row: [dataclasses.replace(row[0], text="x"), *row[1:]], "written in another way"),
    ],
    ids=["exchanged", "twice", "score", "nan", "missing", "truncated", "text"],
)
def test_every_hypothesis_counts(judge, random_translator, change, message):
    def last_but_one(found):
        return [*found[:-1], change(found[-1])]

    with pytest.raises(ExportError, match=f"it: .* of 42 translations differ .*{message}"):
        judge(random_translator, True, last_but_one)


def test_nothing_is_said_to_an_empty_sentence(judge, random_translator):
    def say(found):
        return [
            [dataclasses.replace(row[0], score=-1.0)] if not row[0].tokens else row for row in found
        ]

    with pytest.raises(ExportError, match="'' became '': its score is -1"):
        judge(random_translator, False, say)


def test_rules_are_those_of_the_search(random_translator):
    greedy = Rules.of(random_translator)
    assert (greedy.penalty(7), greedy.limit(3)) == (1, LIMIT)
    beam = BeamTranslator(random_translator, 2, 0.6, min_length=8, extra_length=2)
    rules = Rules.of(beam)
    assert rules.penalty(7) == pytest.approx((12 / 6) ** 0.6)
    assert [rules.limit(length) for length in (1, 7, 11)] == [8, 9, LIMIT]
    average = Rules.of(BeamTranslator(random_translator, 2, normalization="average"))
    assert average.penalty(7) == 7


def test_tokens_of_a_text_are_those_of_another_search_with_the_same_text(tokenizer):
    known = [[Output("in 3", -1.0, False, (9, 8, 3)), Output("in 3", -2.0, False, (7, 3))]]
    texts = [[Output("in 3", -1.0, False), Output("in", -1.0, False), Output("", 0.0, False)]]
    ((same, other, nothing),) = with_tokens(tokenizer, texts, known)
    assert same.tokens == (9, 8, 3)
    assert other.tokens == tuple(tokenizer.encode(["in"]).to_list()[0])
    assert nothing.tokens == ()
