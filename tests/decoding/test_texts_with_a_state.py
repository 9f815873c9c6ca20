"""Language models with a recurrent mixer: prompts, searches and scores equal those without them."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from marks import slow, slow_except
from mixer_rows import MIXERS, mixer_of
from searching import by_beam, by_greedy, by_sample
from support import randomise, sentences, small_fields, with_effect
from uncertain_models import EOS, PAD

from keras_transformer import LanguageModel
from keras_transformer.decoding import Ensemble, score
from keras_transformer.decoding.decoder_only import DecoderOnly
from keras_transformer.models import LanguageModelConfig

LIMIT, STAGES = 19, (4, 9, 13)
OPTIONS = {"cache_length": LIMIT, "token_scores": True}
SEARCHES = {
    "greedy": by_greedy,
    "beam": functools.partial(by_beam, size=3, n_best=3),
    "sample": functools.partial(by_sample, seed=(1, 2)),
}
each_mixer = pytest.mark.parametrize("kind", MIXERS)


@functools.cache
def model_of(kind, **options):
    fields = {**small_fields(LanguageModelConfig, num_layers=2), **options}
    mixer = mixer_of(kind) if kind in MIXERS else kind
    fields = with_effect(LanguageModelConfig, **fields, mixer=mixer)
    return randomise(LanguageModel(LanguageModelConfig(**fields)))


class StepByStep(DecoderOnly):
    """A predictor that reads nothing in advance, and notes the positions of its steps."""

    def __init__(self, model, reads=False):
        super().__init__(model)
        self.reads, self.steps = reads, []

    def prompts(self, inputs):
        return super().prompts(inputs) if self.reads else None

    def step(self, tokens, state, index):
        self.steps.append(int(index))
        return super().step(tokens, state, index)


def prompts_of(lengths):
    """Returns prompts with these numbers of words, each ending in `EOS` and then padding."""
    prompts = sentences([max(length, 1) for length in lengths], width=max(lengths) + 2, seed=5)
    for row, length in zip(prompts, lengths, strict=True):
        row[length:] = PAD
        row[length] = EOS
    return prompts


def require_equal(found, expected):
    np.testing.assert_array_equal(found["tokens"], expected["tokens"])
    for name in ("scores", "token_scores"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-4)


@each_mixer
@pytest.mark.parametrize("start", [{}, slow({"bos_id": PAD})], ids=str)
def test_one_step_at_a_time_equals_the_whole_text(kind, start):
    """Two hypotheses of each text; a text may begin with the id of padding."""
    model = model_of(kind, **start)
    texts = np.stack([sentences([11, 5], first=2, seed=seed) for seed in (0, 3)], axis=1)
    texts[:, :, 0] = model.config.tokens.bos_id
    expected = np.stack([model(texts[:, n]) for n in (0, 1)], axis=1)
    cache = model.decoder.empty_cache(2, 11, 2)
    for t in range(11):
        logits, cache, _ = model.step(texts[:, :, t], cache, tf.constant(t))
        np.testing.assert_allclose(logits, expected[:, :, t], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "kind", "lengths"),
    [
        ("greedy", "gru", [7, 9, 11]),
        ("beam", "lstm", [3, 6]),
        slow("sample", "ssru", [4, 2]),
        slow("beam", "ssru", [9, 12]),
        slow("beam", "gru", [0, 5]),
        slow("greedy", "lstm", [22, 20]),
        slow("sample", "gru", [18, 19]),
    ],
)
def test_a_prompt_takes_no_steps_and_gives_the_same_outputs(name, kind, lengths):
    prompts, model = prompts_of(lengths), model_of(kind)
    found, expected = StepByStep(model, reads=True), StepByStep(model)
    require_equal(
        SEARCHES[name](found, prompts, **OPTIONS), SEARCHES[name](expected, prompts, **OPTIONS)
    )
    assert found.steps[0] == min(*lengths, LIMIT - 1) and expected.steps[0] == 0


@pytest.mark.parametrize("kind", slow_except(MIXERS, "lstm"))
def test_scores_of_a_beam_are_those_of_whole_texts(kind):
    """Without a cache; each hypothesis has the state of its own tokens."""
    prompts, model = prompts_of([3, 6]), model_of(kind)
    found = by_beam(model, prompts, 3, 3, **OPTIONS)
    for place in range(3):
        gains, _ = score(model, prompts, found["tokens"][:, place])
        np.testing.assert_allclose(gains, found["token_scores"][:, place], rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("stages", [None, STAGES], ids=["growing", "stages"])
def test_an_ensemble_with_self_attention_reads_prompts(stages):
    """The cache of one member grows while the search runs, that of the other does not."""
    prompts, models = prompts_of([7, 9]), [model_of("gru"), model_of("self_attention")]
    options = {**OPTIONS, "cache_stages": stages}
    expected = SEARCHES["beam"](Ensemble([StepByStep(m) for m in models]), prompts, **options)
    members = [StepByStep(model, reads=True) for model in models]
    require_equal(SEARCHES["beam"](Ensemble(members), prompts, **options), expected)


@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, True])
def test_a_graph_of_fixed_shape_reads_prompts(jit):
    """Tokens after those that are read are padding there, which must not change a state."""
    prompts, model = prompts_of([7, 9, 11]), model_of("lstm")
    traced = tf.function(
        lambda prompts: SEARCHES["beam"](model, prompts, cache_stages=STAGES, **OPTIONS),
        input_signature=[tf.TensorSpec(prompts.shape, tf.int32)],
        jit_compile=jit,
        autograph=False,
    )
    require_equal(traced(prompts), SEARCHES["beam"](StepByStep(model), prompts, **OPTIONS))
