"""The whole Transformer against the reference; effects of padding, neighbours, later tokens."""

import functools
import re
import warnings

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from marks import slow, slow_except
from support import D, randomise, sentences, small_config, to_numpy, weights_of

from keras_transformer import Transformer, TransformerConfig

MODEL = {"rtol": 0, "atol": 1e-4}
SAME = {"rtol": 0, "atol": 1e-5}
DEEPER = {"num_layers": 2, "num_decoder_layers": 3}
VARIANTS = {
    "paper": DEEPER,
    "pre_norm": {"norm": "pre", **DEEPER},
    "target_tied": {"tie": "target", "target_vocab_size": 23},
    "untied": {"tie": "none", "target_vocab_size": 23, "norm": "pre"},
    "learned_positions": {"position": "learned"},
    "no_positions": {"position": "none", "activation": "gelu"},
    "silu": {
        "activation": "silu",
        "attention_bias": True,
        "normalization": {"kind": "layer", "epsilon": 1e-3},
    },
    "another_pad_id": {"pad_id": 7},
    "ssru": {"decoder": "ssru", "decoder_start": "zeros", **DEEPER},
    "ssru_pre_norm": {"decoder": "ssru", "norm": "pre", "position": "learned"},
    "zero_start": {"decoder_start": "zeros", "tie": "none", "target_vocab_size": 23},
    "norms_at_both_ends": {"embedding_norm": True, "final_norm": True, **DEEPER},
    "pre_norm_without_an_end": {"norm": "pre", "final_norm": False, "embedding_norm": True},
}


@functools.cache
def model_of(variant):
    """One model for all tests of a variant; no test changes its weights."""
    return randomise(Transformer(small_config(**VARIANTS[variant])))


def batch(pad_id=0, seed=0):
    """Returns three sentences of 13, 6 and 1 tokens; targets of 11, 5 and 8, bos included."""
    return {
        "source": sentences([13, 6, 1], pad_id=pad_id, seed=seed),
        "target": sentences([11, 5, 8], pad_id=pad_id, first=2, seed=seed + 1),
    }


@pytest.mark.parametrize("variant", slow_except(VARIANTS, "pre_norm_without_an_end"))
def test_logits_and_every_attention_weight_equal_the_reference(variant):
    model = model_of(variant)
    inputs, record = batch(model.config.tokens.pad_id), {}
    expected = reference.transformer(
        weights_of(model), model.config, inputs["source"], inputs["target"], record
    )
    logits = model(inputs)
    assert logits.dtype == "float32"
    np.testing.assert_allclose(logits, expected, **MODEL)
    attended = model.attention_weights(inputs)
    config = model.config
    of_decoder = 1 if config.decoder.mixer.kind == "ssru" else 2
    assert len(attended) == config.num_layers + of_decoder * config.decoder.num_layers
    for name, weights in attended.items():
        side, block, attention = name.split("/")
        np.testing.assert_allclose(weights, record[side][block][attention], **SAME)


@pytest.mark.parametrize("variant", [slow("paper"), "pre_norm"])
def test_attention_weights_sum_to_one_over_visible_positions(variant):
    model, inputs = model_of(variant), batch()
    source, target = inputs["source"] != 0, inputs["target"]
    past = np.tri(target.shape[1], dtype=bool)
    allowed = {
        "encoder/self_attention": source[:, None, None, :],
        "decoder/self_attention": past[None, None],
        "decoder/cross_attention": source[:, None, None, :],
    }
    for name, weights in model.attention_weights(inputs).items():
        weights = to_numpy(weights)
        side, _, attention = name.split("/")
        seen = np.broadcast_to(allowed[f"{side}/{attention}"], weights.shape)
        assert np.all(weights[~seen] == 0), name
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6, err_msg=name)


def widened(inputs, pad_id, source=0, target=0):
    """Adds columns of padding to source and target."""
    extra = {"source": source, "target": target}
    return {
        side: np.pad(tokens, [(0, 0), (0, extra[side])], constant_values=pad_id)
        for side, tokens in inputs.items()
    }


@pytest.mark.parametrize(
    ("variant", "more"),
    [
        slow("learned_positions", {"source": 5}),
        ("silu", {"target": 5}),
        slow("ssru", {"source": 1, "target": 7}),
        ("pre_norm_without_an_end", {"source": 1, "target": 7}),
    ],
)
def test_added_padding_changes_no_logit_of_a_real_position(variant, more):
    model = model_of(variant)
    pad_id = model.config.tokens.pad_id
    inputs = batch(pad_id)
    length = inputs["target"].shape[1]
    before = to_numpy(model(inputs))
    after = to_numpy(model(widened(inputs, pad_id, **more)))
    np.testing.assert_allclose(after[:, :length], before, **SAME)


@pytest.mark.parametrize(
    "variant", [slow("learned_positions"), slow("silu"), slow("ssru"), "pre_norm_without_an_end"]
)
def test_a_sentence_alone_equals_the_same_sentence_in_a_batch(variant):
    """Without neighbours, and without the padding that longer neighbours cause."""
    model = model_of(variant)
    pad_id = model.config.tokens.pad_id
    inputs = batch(pad_id)
    together = to_numpy(model(inputs))
    for b in range(3):
        alone = {
            side: tokens[b : b + 1, : (tokens[b] != pad_id).sum()]
            for side, tokens in inputs.items()
        }
        length = alone["target"].shape[1]
        np.testing.assert_allclose(together[b, :length], model(alone)[0], **SAME)


def test_other_sentences_change_nothing(small_model):
    model = small_model()
    inputs, others = batch(), batch(seed=5)
    before = to_numpy(model(inputs))
    for side, tokens in inputs.items():
        others[side][1] = tokens[1]
    after = to_numpy(model(others))
    np.testing.assert_allclose(after[1], before[1], **SAME)
    assert np.abs(after[0] - before[0]).max() > 0.1


@pytest.mark.parametrize(
    "variant",
    [slow("untied"), slow("silu"), "ssru_pre_norm", slow("zero_start"), "pre_norm_without_an_end"],
)
def test_future_target_tokens_change_nothing(variant):
    model = model_of(variant)
    inputs = batch(model.config.tokens.pad_id)
    before = to_numpy(model(inputs))
    inputs["target"][:, 4:] = sentences([7, 7, 7], first=9, seed=8)
    after = to_numpy(model(inputs))
    np.testing.assert_array_equal(after[:, :4], before[:, :4])
    assert np.all(np.abs(after[:, 4:] - before[:, 4:]).max(-1) > 1e-3)


def test_the_pad_id_determines_the_masks(small_model):
    """With the same weights, token 7 is a word for one model and padding for the other."""
    inputs = {"source": np.array([[5, 9, 7, 7]]), "target": np.array([[2, 8]])}
    reader, padder = small_model(), small_model(pad_id=7)
    shorter = {**inputs, "source": inputs["source"][:, :2]}
    np.testing.assert_allclose(padder(inputs), reader(shorter), **SAME)
    assert np.abs(to_numpy(reader(inputs)) - to_numpy(padder(inputs))).max() > 1e-2
    zeros = {**inputs, "source": np.array([[5, 9, 0, 0]])}
    assert np.abs(to_numpy(padder(zeros)) - to_numpy(padder(shorter))).max() > 1e-2


@pytest.mark.parametrize(("policy", "norm"), [("mixed_float16", "pre")], indirect=["policy"])
def test_sentences_of_only_padding_stay_finite(policy, small_model, norm):
    """Outputs and gradients; a real sentence next to the empty ones keeps its logits."""
    model = small_model(norm=norm)
    assert model.encoder.compute_dtype == model.decoder.compute_dtype == policy.compute_dtype
    inputs = batch()
    whole = to_numpy(model(inputs, training=True))
    inputs["source"][1:] = 0
    inputs["target"][2] = 0
    with tf.GradientTape() as tape:
        logits = model(inputs, training=True)
        loss = tf.reduce_mean(tf.cast(logits, "float32") ** 2)
    assert logits.dtype == "float32"
    assert np.all(np.isfinite(to_numpy(logits)))
    np.testing.assert_array_equal(to_numpy(logits)[0], whole[0])
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert np.all(np.isfinite(to_numpy(gradient))), variable.path


def test_every_weight_has_a_gradient(small_model):
    model = small_model(attention_bias=True, tie="none", position="learned", norm="pre")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(batch()) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        largest = np.abs(to_numpy(tf.convert_to_tensor(gradient))).max()
        if variable.path.endswith("key/bias"):
            # The bias of the keys adds the same number to all scores of a query, which softmax
            # ignores.
            assert largest < 1e-2, variable.path
        else:
            assert largest > 1e-2, variable.path


def test_encode_runs_the_encoder_of_the_model(small_model):
    model, inputs = small_model(**DEEPER), batch()
    memory, allowed = model.encode(inputs["source"])
    np.testing.assert_array_equal(allowed, (inputs["source"] != 0)[:, None])
    weights = weights_of(model)
    x = reference.embedding(reference.scope(weights, "embedding"), inputs["source"])
    seen = reference.everyone(13, inputs["source"] != 0)
    expected = reference.encoder(reference.scope(weights, "encoder"), x, seen, 2, 3)
    np.testing.assert_allclose(memory, expected, **SAME)


def test_one_step_at_a_time_equals_the_whole_target():
    model, inputs = model_of("paper"), batch()
    expected, attended = model(inputs), model.attention_weights(inputs)
    memory, allowed = model.encode(inputs["source"])
    cache, heads = model.start(memory, length=12)
    for t in range(11):
        tokens = tf.constant(inputs["target"][:, t : t + 1])
        logits, cache, weights = model.step(
            tokens, cache, tf.constant(t), heads, allowed, return_attention_scores=True
        )
        assert logits.shape == (3, 1, 19)
        np.testing.assert_allclose(logits[:, 0], expected[:, t], **MODEL)
        assert len(weights) == 3
        for number, of_block in enumerate(weights):
            of_call = attended[f"decoder/block_{number}/cross_attention"][:, :, t : t + 1]
            np.testing.assert_allclose(of_block, of_call, **SAME)  # [B, H, N=1, S]


def test_dropout_is_active_in_training_only(small_model):
    """Section 5.4 also drops from the sums of embeddings and positions, in both stacks."""
    model, plain = small_model(dropout=0.4), small_model()
    inputs = batch()
    expected = to_numpy(plain(inputs))
    np.testing.assert_array_equal(model(inputs), expected)
    np.testing.assert_array_equal(model(inputs, training=False), expected)
    np.testing.assert_allclose(model.predict(inputs, verbose=0), expected, **SAME)
    first, second = (to_numpy(model(inputs, training=True)) for _ in range(2))
    assert np.abs(first - expected).max() > 0.1
    assert np.abs(first - second).max() > 0.1


def test_the_rates_of_the_config_reach_every_layer():
    config = small_config(**DEEPER, dropout=0.11, attention_dropout=0.22, activation_dropout=0.33)
    rates = {}
    for layer in Transformer(config)._flatten_layers():
        if isinstance(layer, keras.layers.Dropout):
            rates[layer.rate] = rates.get(layer.rate, 0) + 1
    # One for the shared embedding and one per block; one per attention; one per feed-forward
    # network.
    assert rates == {0.11: 1 + 2 + 3, 0.22: 2 + 2 * 3, 0.33: 2 + 3}


def test_a_source_of_one_token_gives_no_warning(small_model):
    """Keras's softmax takes an axis of length 1 for a mistake and warns at every call."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small_model()({"source": np.array([[3]]), "target": np.array([[2]])})


def test_a_preset_is_built_by_name():
    model = Transformer("tiny")
    assert model.config == TransformerConfig.preset("tiny")


def test_tied_matrices_are_one_variable(small_model):
    def matrices(tie):
        model = small_model(tie=tie)
        return sorted(w.path for w in model.weights if tuple(w.shape) in {(19, D), (D, 19)})

    assert matrices("all") == ["embedding/table"]
    assert matrices("target") == ["source_embedding/table", "target_embedding/table"]
    untied = ["output/kernel", "source_embedding/table", "target_embedding/table"]
    assert matrices("none") == untied


def test_embeddings_are_scaled_by_the_root_of_d_model(small_model):
    """Section 3.4. Otherwise positions would dwarf embeddings with a deviation of 1/22."""
    model = small_model(position="none")
    table = weights_of(model)["embedding/table"]
    out = model.get_layer("embedding")(np.array([[5, 9]]))
    np.testing.assert_allclose(out, table[[[5, 9]]] * D**0.5, **SAME)


def test_more_tokens_than_learned_positions_are_an_error(small_model):
    model = small_model(position="learned", max_length=11)
    inputs = batch()
    with pytest.raises(ValueError, match=r"`max_length` .*Received: max_length=11, 13 positions"):
        model(inputs)


def test_summary_names_every_sublayer(small_model):
    model = small_model(norm="pre", tie="none", attention_bias=True, **DEEPER)
    lines = []
    model.summary(print_fn=lines.append, line_length=160)
    text = "\n".join(lines)
    names = [layer.name for layer in model._flatten_layers(include_self=False)]
    for name in {*names}:
        assert name in text, name
    expected = (
        "source target source_embedding target_embedding encoder decoder logits norm "
        "block_0 block_1 block_2 self_attention self_attention_norm cross_attention "
        "cross_attention_norm feed_forward feed_forward_norm query key value output inner outer"
    )
    assert set(expected.split()) <= set(names)
    assert not re.search(r"\b(dense|layer_normalization|embedding|multi_head\w*)(_\d+)?\b", text)
    assert not re.search(r"\b(?!block_)[a-z_]+_\d+\b", text), "a name that Keras made up"
    assert [text.count(f"block_{n} ") for n in range(3)] == [2, 2, 1]


def test_dropout_of_normalised_embeddings_comes_after_their_norm():
    """Without blocks, the outputs are zeros and scaled values."""
    model = Transformer(small_config(embedding_norm=True, dropout=0.5))
    assert model.source_embedding.dropout.rate == 0
    stack = model.encoder
    stack.blocks = []
    x = np.random.default_rng(0).normal(size=(2, 13, D)).astype("float32")
    keras.utils.set_random_seed(0)
    dropped = to_numpy(stack(x, training=True))
    kept = dropped != 0
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(dropped[kept], 2 * to_numpy(stack(x))[kept], **SAME)
