"""Prompts that searches read in one pass: the same results as token by token."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from marks import long, slow
from searching import by_beam, by_greedy, by_sample
from support import randomise, sentences, small_fields
from uncertain_models import BOS, EOS, PAD, talkative_text, text_prompts

from keras_transformer import LanguageModel
from keras_transformer.decoding import Constraints, Ensemble
from keras_transformer.decoding.decoder_only import DecoderOnly
from keras_transformer.models import LanguageModelConfig

LIMIT, STAGES = 19, (4, 9, 13)
BEAM = functools.partial(by_beam, size=3, n_best=3)
SEARCHES = {
    "greedy": by_greedy,
    "beam": BEAM,
    "by score": functools.partial(BEAM, stopping="score"),
    "sample": functools.partial(by_sample, seed=(1, 2)),
}
# Lengths of the prompts, of which the shortest one determines how many tokens are read. The first
# stage holds 4 positions: the search begins in it, at its end, in a later one, or in the last one.
LENGTHS = {
    "one": [1, 3], "within a stage": [3, 6], "a whole stage": [4, 6], "two stages": [9, 12],
    "later": [10, 11], "last": [13, 15], "all but one": [18, 19], "none": [0, 5], "alone": [6],
    "longer than the output": [22, 20],
}  # fmt: skip
KINDS = {
    "rotary, grouped, local": {
        **{"position": "rotary", "num_heads": 4, "num_key_value_heads": 2, "d_k": 6},
        **{"normalization": "rms", "feed_forward": "gated", "window": 3, "norm": "pre"},
    },
    "start is hidden": {"position": "rotary", "d_k": 6},
    "relative": {"position": {"kind": "relative", "distance": 3}},
    "shared t5": {
        **{"position": {"kind": "t5", "distance": 7, "buckets": 8, "shared": True}, "norm": "pre"},
    },
    "alibi": {"position": "alibi", "score": "additive"},
    "learned, normalised": {"position": "learned", "embedding_norm": True, "final_norm": True},
}


class StepByStep(DecoderOnly):
    """A predictor that reads nothing in advance, and notes the positions of its steps."""

    def __init__(self, model, reads=False):
        super().__init__(model)
        self.reads, self.steps = reads, []

    def prompts(self, inputs):
        return super().prompts(inputs) if self.reads else None

    def step(self, tokens, state, index):
        self.steps.append(index)
        return super().step(tokens, state, index)


def prompts_of(lengths, seed=5):
    """Returns prompts with these numbers of words, each ending in `EOS` and then padding."""
    prompts = sentences([max(length, 1) for length in lengths], width=max(lengths) + 2, seed=seed)
    for row, length in zip(prompts, lengths, strict=True):
        row[length:] = PAD
        row[length] = EOS
    return prompts


def require_equal(found, expected):
    np.testing.assert_array_equal(found["tokens"], expected["tokens"])
    for name in ("scores", "token_scores"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        pytest.param("greedy", LENGTHS["two stages"], id="greedy-two stages"),
        slow("greedy", LENGTHS["last"], id="greedy-last"),
        slow("greedy", LENGTHS["all but one"], id="greedy-all but one"),
        slow("greedy", LENGTHS["none"], id="greedy-none"),
        slow("greedy", LENGTHS["longer than the output"], id="greedy-longer than the output"),
        pytest.param("beam", LENGTHS["one"], id="beam-one"),
        slow("sample", LENGTHS["two stages"], id="sample"),
    ],
)
def test_the_result_is_that_of_steps_and_the_prompt_takes_none(name, lengths):
    options = {"cache_length": LIMIT, "cache_stages": STAGES, "token_scores": True}
    prompts = prompts_of(lengths)
    found, expected = (
        (predictor, SEARCHES[name](predictor, prompts, **options))
        for predictor in (StepByStep(talkative_text(), True), StepByStep(talkative_text()))
    )
    require_equal(found[1], expected[1])
    assert [*map(int, expected[0].steps)][0] == 0
    # The last position that an output can have is a step even if the prompt fills it.
    assert [*map(int, found[0].steps)][0] == min(*lengths, LIMIT - 1)


@functools.cache
def model_of(kind):
    own = {"attends_to_start": False} if kind == "start is hidden" else {}
    fields = small_fields(LanguageModelConfig, num_layers=2, max_length=29, **KINDS[kind])
    return randomise(LanguageModel(LanguageModelConfig(**fields, **own)))


@pytest.mark.parametrize(
    "kind",
    [
        slow("rotary, grouped, local"),
        long("start is hidden"),
        long("shared t5"),
        slow("learned, normalised"),
    ],
)
def test_every_kind_of_attention_reads_prompts(kind):
    model, prompts = model_of(kind), prompts_of([7, 9, 11])
    for search in (by_greedy, BEAM):
        options = {"cache_length": LIMIT, "cache_stages": STAGES, "token_scores": True}
        expected = search(StepByStep(model), prompts, **options)
        require_equal(search(model, prompts, **options), expected)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param("greedy", [None, 13], id="any batch", marks=pytest.mark.slow),
        pytest.param("beam", [3, 13], id="fixed, beam", marks=pytest.mark.slow),
    ],
)
def test_graphs_of_any_and_of_fixed_shape_read_prompts(name, shape):
    prompts, model = prompts_of([7, 9, 11]), talkative_text()
    options = {"cache_length": LIMIT, "cache_stages": (4, 9), "token_scores": True}
    traced = tf.function(
        lambda source: SEARCHES[name](model, source, **options),
        input_signature=[tf.TensorSpec(shape, tf.int32)],
        jit_compile=None not in shape,
        autograph=False,
    )
    require_equal(traced(prompts), SEARCHES[name](StepByStep(model), prompts, **options))


@pytest.mark.long
@pytest.mark.slow
def test_limits_of_single_outputs_count_from_the_end_of_their_prompts():
    prompts = prompts_of([7, 9, 11])
    for search in (by_greedy, BEAM):
        options = {"max_length": tf.constant([5, 2, 30]), "cache_length": LIMIT}
        options |= {"cache_stages": STAGES, "token_scores": True}
        found = StepByStep(talkative_text(), True)
        expected = search(StepByStep(talkative_text()), prompts, **options)
        require_equal(search(found, prompts, **options), expected)
        assert int(found.steps[0]) == 7
        counts = np.count_nonzero(expected["tokens"], axis=-1).reshape(3, -1)
        assert (counts <= [[12], [11], [LIMIT]]).all()


@pytest.mark.long
@pytest.mark.slow
def test_an_ensemble_reads_with_all_its_members():
    prompts, models = prompts_of([7, 9]), [talkative_text(), model_of("alibi")]
    options = {"cache_length": LIMIT, "cache_stages": STAGES, "token_scores": True}
    expected = BEAM(Ensemble([StepByStep(model) for model in models]), prompts, **options)
    members = [StepByStep(model, True) for model in models]
    require_equal(BEAM(Ensemble(members), prompts, **options), expected)
    assert [int(member.steps[0]) for member in members] == [7, 7]
    partly = [StepByStep(models[0], True), StepByStep(models[1])]
    require_equal(BEAM(Ensemble(partly), prompts, **options), expected)
    assert int(partly[0].steps[0]) == 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "constraints",
    [Constraints(no_repeat_ngram=2), Constraints(prefix=np.array([[9, 8], [7, PAD]]))],
    ids=["n-grams", "prefix"],
)
def test_rules_that_follow_every_token_read_nothing_in_advance(constraints):
    prompts = prompts_of([5, 6])
    options = {"cache_length": LIMIT, "constraints": constraints, "token_scores": True}
    found = StepByStep(talkative_text(), True)
    expected = by_greedy(StepByStep(talkative_text()), prompts, **options)
    require_equal(by_greedy(found, prompts, **options), expected)
    assert int(found.steps[0]) == 0
    banned = Constraints(banned=np.arange(19) == 9)
    options["constraints"] = banned
    found = StepByStep(talkative_text(), True)
    expected = by_greedy(StepByStep(talkative_text()), prompts, **options)
    require_equal(by_greedy(found, prompts, **options), expected)
    assert int(found.steps[0]) == 5


def test_prompts_may_contain_tokens_that_are_never_emitted(search=BEAM):
    """Such tokens are in the part that is read in one pass, and in the rest of a longer prompt."""
    prompts, lengths = prompts_of([5, 7]), (5, 7)
    prompts[:, 2] = prompts[1, 6] = BOS
    options = {"cache_length": LIMIT, "cache_stages": STAGES, "token_scores": True}
    together = search(talkative_text(), prompts, **options)
    for row, length in enumerate(lengths):
        alone = search(talkative_text(), prompts[row : row + 1], **options)
        require_equal({name: value[row : row + 1] for name, value in together.items()}, alone)
        tokens = alone["tokens"].numpy().reshape([-1, LIMIT])  # [N, L]
        assert (tokens[:, :length] == prompts[row, :length]).all()


def test_no_prompts_at_all():
    for search in (by_greedy, BEAM):
        tokens, _ = search(talkative_text(), np.zeros((0, 4), "int32"), cache_length=LIMIT)
        assert tokens.shape[0] == 0


@pytest.mark.long
@pytest.mark.slow
def test_what_follows_the_end_of_a_prompt_is_not_read():
    """Tokens after `eos_id` belong to no prompt."""
    assert (BOS, EOS, PAD) == (2, 3, 0)
    prompts = text_prompts()[:4]
    expected = by_greedy(talkative_text(), prompts, cache_length=LIMIT)
    changed = prompts.copy()
    for row in changed:
        row[row.tolist().index(EOS) + 1 :] = 9
    found = StepByStep(talkative_text(), True)
    tokens, scores = by_greedy(found, changed, cache_length=LIMIT)
    assert int(found.steps[0]) == 1
    steps = by_greedy(StepByStep(talkative_text()), changed, cache_length=LIMIT)
    np.testing.assert_array_equal(tokens, steps[0])
    np.testing.assert_allclose(scores, steps[1], rtol=0, atol=1e-4)
    assert expected[0].shape == tokens.shape
