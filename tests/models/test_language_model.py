"""The language model against the reference; effects of padding, neighbours and later tokens."""

import functools

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow_except
from support import (
    D,
    assert_padding_stays_finite,
    randomise,
    sentences,
    small_config,
    small_fields,
    to_numpy,
    weights_of,
)

from keras_transformer import LanguageModel
from keras_transformer.models import LanguageModelConfig

MODEL = {"rtol": 0, "atol": 1e-4}
SAME = {"rtol": 0, "atol": 1e-5}
VARIANTS = {
    "paper": {},
    "pre_norm": {"norm": "pre", "activation": "gelu"},
    "untied": {"tie": "none", "norm": "pre"},
    "learned_positions": {"position": "learned", "attention_bias": True},
    "no_positions": {"position": "none", "normalization": {"kind": "layer", "epsilon": 1e-3}},
    "another_pad_id": {"pad_id": 7},
}


def lm_config(**changes):
    """Returns the sizes of `small_config`, with two layers."""
    return LanguageModelConfig(**small_fields(LanguageModelConfig, num_layers=2, **changes))


@functools.cache
def model_of(variant):
    """One model for all tests of a variant; no test changes its weights."""
    return randomise(LanguageModel(lm_config(**VARIANTS[variant])))


def batch(pad_id=0, seed=0):
    """Returns three texts of 11, 5 and 1 tokens, bos included."""
    return sentences([11, 5, 1], pad_id=pad_id, first=2, seed=seed)


def logits_of_the_reference(model, tokens, record=None):
    """Right half of Fig. 1 without cross-attention: encoder blocks that see no later token."""
    config, weights = model.config, weights_of(model)
    length = tokens.shape[1]
    past = np.array([[s <= t for s in range(length)] for t in range(length)])
    table = reference.scope(weights, "embedding")
    x = reference.encoder(
        reference.scope(weights, "decoder"),
        reference.embedding(table, tokens, config.decoder.position.kind),
        np.stack([past] * len(tokens)),
        config.num_layers,
        config.decoder.block.attention.num_heads,
        norm=config.decoder.block.norm.kind,
        activation=config.decoder.block.activation,
        epsilon=config.decoder.block.normalization.epsilon,
        kind=config.decoder,
        causal=True,
        record=record,
    )
    return x @ (table["table"].T if config.head.tie == "all" else weights["output/kernel"])


@pytest.mark.parametrize(
    "variant", slow_except(VARIANTS, "pre_norm", "learned_positions", "another_pad_id")
)
def test_logits_equal_the_reference(variant):
    model = model_of(variant)
    tokens = batch(model.config.tokens.pad_id)
    logits = model(tokens)
    assert logits.dtype == "float32" and logits.shape == (3, 11, 19)
    np.testing.assert_allclose(logits, logits_of_the_reference(model, tokens), **MODEL)


@pytest.mark.parametrize("variant", ["paper", "pre_norm", "learned_positions"])
def test_every_attention_weight_equals_the_reference(variant):
    model, record = model_of(variant), {}
    logits_of_the_reference(model, batch(), record)
    attended = model.attention_weights(batch())
    assert sorted(attended) == [f"decoder/block_{n}/self_attention" for n in (0, 1)]
    for name, weights in attended.items():
        _, block, attention = name.split("/")
        np.testing.assert_allclose(weights, record[block][attention], **SAME)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_future_token_changes_no_earlier_logit(variant):
    model = model_of(variant)
    tokens = batch(model.config.tokens.pad_id)
    before = to_numpy(model(tokens))
    tokens[:, 4:] = sentences([7, 7, 7], pad_id=model.config.tokens.pad_id, first=12, seed=8)
    after = to_numpy(model(tokens))
    np.testing.assert_array_equal(after[:, :4], before[:, :4])
    assert np.all(np.abs(after[:, 4:] - before[:, 4:]).max(-1) > 1e-3)


@pytest.mark.parametrize("variant", ["pre_norm", "learned_positions", "another_pad_id"])
def test_padding_and_neighbours_change_nothing(variant):
    """A text alone equals the same text in a batch, and in a wider batch."""
    model = model_of(variant)
    pad_id = model.config.tokens.pad_id
    tokens = batch(pad_id)
    together = to_numpy(model(tokens))
    wider = to_numpy(model(np.pad(tokens, [(0, 0), (0, 6)], constant_values=pad_id)))
    for b, row in enumerate(tokens):
        length = (row != pad_id).sum()
        alone = to_numpy(model(row[None, :length]))[0]
        np.testing.assert_allclose(together[b, :length], alone, **SAME)
        np.testing.assert_allclose(wider[b, :length], alone, **SAME)


def test_one_step_at_a_time_equals_the_whole_text(variant="learned_positions"):
    """Two hypotheses of each text share a cache but not a prefix."""
    model, first, second = model_of(variant), batch(), batch(seed=3)
    expected = np.stack([to_numpy(model(first)), to_numpy(model(second))], axis=1)
    length = first.shape[1]
    cache = model.decoder.empty_cache(3, length, 2)
    for t in range(length):
        tokens = tf.stack([first[:, t], second[:, t]], axis=1)  # [B, N]
        own = [[place // 2 <= t and place % 2 == n for place in range(2 * length)] for n in (0, 1)]
        allowed = tf.constant([own] * 3)  # [B, N, L * N]: position l of hypothesis m at l * N + m
        logits, cache, _ = model.step(tokens, cache, tf.constant(t), allowed)
        assert logits.shape == (3, 2, 19)
        np.testing.assert_allclose(logits, expected[:, :, t], **MODEL)


@pytest.mark.parametrize("variant", ["paper", "untied"])
def test_logits_are_hidden_states_times_the_output_matrix(variant):
    model, tokens = model_of(variant), batch()
    assert model.output_matrix.shape == (19, D)
    hidden = to_numpy(model.hidden_states(tokens, training=False))
    logits = hidden @ to_numpy(model.output_matrix).T
    np.testing.assert_allclose(model(tokens), logits, **MODEL)


def test_tied_matrices_are_one_variable():
    def matrices(variant):
        weights = model_of(variant).weights
        return sorted(w.path for w in weights if tuple(w.shape) in {(19, D), (D, 19)})

    assert matrices("paper") == ["embedding/table"]
    assert matrices("untied") == ["embedding/table", "output/kernel"]


def test_every_weight_has_a_gradient():
    model = model_of("untied")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(batch()) ** 2)
    for variable, gradient in zip(
        model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
    ):
        assert np.abs(to_numpy(tf.convert_to_tensor(gradient))).max() > 1e-2, variable.path


@pytest.mark.parametrize(
    ("policy", "norm"),
    [("float32", "pre"), ("mixed_bfloat16", "pre"), ("mixed_float16", "pre")],
    indirect=["policy"],
)
def test_texts_of_only_padding_stay_finite(policy, norm):
    model = randomise(LanguageModel(lm_config(norm=norm)))
    assert model.decoder.compute_dtype == policy.compute_dtype
    assert_padding_stays_finite(model, batch())


def test_dropout_is_active_in_training_only():
    model, plain = (randomise(LanguageModel(lm_config(dropout=rate))) for rate in (0.4, 0.0))
    tokens = batch()
    expected = to_numpy(plain(tokens))
    np.testing.assert_array_equal(model(tokens), expected)
    np.testing.assert_array_equal(model(tokens, training=False), expected)
    first, second = (to_numpy(model(tokens, training=True)) for _ in range(2))
    assert np.abs(first - expected).max() > 0.1 < np.abs(first - second).max()


def test_a_saved_model_is_the_same_with_its_configuration(tmp_path):
    model, tokens = model_of("untied"), batch()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is LanguageModel and loaded.config == model.config
    np.testing.assert_array_equal(loaded(tokens), model(tokens))
    again = LanguageModelConfig.from_dict(model.config.to_dict())
    assert again == model.config and again.head.tie == "none"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (small_config(), "`config` must be a LanguageModelConfig or the name of a preset"),
        (3, "`config` must be a LanguageModelConfig .* Received: config=3"),
    ],
)
def test_another_configuration_is_refused(config, message):
    with pytest.raises(TypeError, match=message):
        LanguageModel(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tie": "target"}, "`tie` must be .*Received: tie='target'"),
        ({"num_decoder_layers": 2}, "Received: num_decoder_layers"),
        ({"pooling": "mean"}, "Received: pooling"),
    ],
)
def test_settings_that_a_language_model_does_not_have_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        LanguageModelConfig(**{**lm_config().to_flat(), **changes})


def test_more_tokens_than_learned_positions_are_an_error():
    model = randomise(LanguageModel(lm_config(position="learned", max_length=7)))
    with pytest.raises(ValueError, match=r"`max_length` .*Received: max_length=7, 11 positions"):
        model(batch())
