"""Ordinary Keras losses and metrics of whole models: padding does not count."""

import keras
import numpy as np
import pytest
from marks import slow, slow_except
from support import randomise, sentences, small_config, small_fields, to_numpy

import keras_transformer as kt

V = 19
TOKENS = sentences([11, 5, 8, 3], first=2)  # begins with bos_id; padding is 0
SOURCE = sentences([13, 6, 9, 2], seed=1)
FRAMES = np.random.default_rng(2).normal(size=(4, 12, 5)).astype("float32")


def _of(config_class, **changes):
    return config_class(**{**small_fields(config_class), **changes})


MODELS = {
    "Transformer": (lambda: kt.Transformer(small_config()), {"source": SOURCE, "target": TOKENS}),
    "LanguageModel": (lambda: kt.LanguageModel(_of(kt.models.LanguageModelConfig)), TOKENS),
    "MaskedLanguageModel": (
        lambda: kt.models.MaskedLanguageModel(_of(kt.models.MaskedLanguageModelConfig)),
        TOKENS,
    ),
    "TokenClassifier": (
        lambda: kt.models.TokenClassifier(
            _of(kt.models.TokenClassifierConfig, labels=tuple("abcdefg"))
        ),
        TOKENS,
    ),
    "SpeechTransformer": (
        lambda: kt.models.SpeechTransformer(
            _of(kt.models.SpeechTransformerConfig, num_mel_filters=5, max_seconds=1.0)
        ),
        {"source": FRAMES, "target": TOKENS},
    ),
}


def compiled(model):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, metrics=["accuracy"], run_eagerly=True)  # one batch: no graph
    return model


def labels_for(logits, real):
    """Returns random labels of which half are the most probable ones, at padding none of them."""
    rng = np.random.default_rng(3)
    best = logits.argmax(-1)
    other = (best + rng.integers(1, logits.shape[-1], best.shape)) % logits.shape[-1]
    return np.where(real & (rng.random(best.shape) < 0.5), best, other).astype("int32")


def expected(logits, labels, real):
    """Returns the mean cross-entropy and the accuracy of the real tokens, in float64."""
    logits = logits.astype("float64")
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    return losses[real].mean(), (logits.argmax(-1) == labels)[real].mean()


@pytest.mark.parametrize("name", slow_except(MODELS, "MaskedLanguageModel"))
def test_loss_and_accuracy_are_those_of_real_tokens(name):
    make, inputs = MODELS[name]
    model = compiled(randomise(make()))
    real = TOKENS != 0
    logits = to_numpy(model(inputs))
    labels = labels_for(logits, real)
    loss, accuracy = expected(logits, labels, real)
    measured = model.evaluate(inputs, labels, batch_size=4, verbose=0)
    np.testing.assert_allclose(measured, [loss, accuracy], rtol=1e-5)
    others = np.where(real, labels, (labels + 1) % logits.shape[-1])
    np.testing.assert_allclose(
        model.evaluate(inputs, others, batch_size=4, verbose=0), measured, rtol=1e-6
    )


@pytest.mark.parametrize("name", ["MaskedLanguageModel", slow("SpeechTransformer")])
def test_copies_of_a_model_attach_the_mask_as_well(name, tmp_path):
    make, inputs = MODELS[name]
    model = make()
    model.save(tmp_path / "model.keras")
    around = keras.Model(model.input, keras.layers.Identity()(model.output))
    for other in (
        model,
        keras.saving.load_model(tmp_path / "model.keras"),
        keras.models.clone_model(model),
        around,
    ):
        np.testing.assert_array_equal(other(inputs)._keras_mask, TOKENS != 0)


def test_a_transformer_and_its_layers_in_a_keras_model_have_the_same_loss():
    transformer = randomise(kt.Transformer(small_config()))
    config = transformer.config
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    embedding = kt.PositionalEmbedding(V, config.d_model, max_length=29, pad_id=0)
    memory = kt.Encoder.from_stack(config.encoder)(embedding(source))
    hidden = kt.Decoder.from_stack(config.decoder)(embedding(target), memory)
    layers = compiled(keras.Model([source, target], embedding(hidden, reverse=True)))
    layers.set_weights(transformer.get_weights())
    logits = to_numpy(layers([SOURCE, TOKENS]))
    labels = labels_for(logits, TOKENS != 0)
    measured = layers.evaluate([SOURCE, TOKENS], labels, batch_size=4, verbose=0)
    inputs = {"source": SOURCE, "target": TOKENS}
    again = compiled(transformer).evaluate(inputs, labels, batch_size=4, verbose=0)
    np.testing.assert_allclose(again, measured, rtol=1e-5)


def test_the_first_token_counts_if_outputs_begin_with_padding():
    """As in Marian's models, whose decoder starts with `pad_id`."""
    target = TOKENS.copy()
    target[:, 0] = 0
    model = compiled(randomise(kt.Transformer(small_config(bos_id=0))))
    inputs = {"source": SOURCE, "target": target}
    logits, real = to_numpy(model(inputs)), TOKENS != 0
    labels = labels_for(logits, real)
    measured = model.evaluate(inputs, labels, batch_size=4, verbose=0)
    np.testing.assert_allclose(measured, expected(logits, labels, real), rtol=1e-5)


def test_every_text_of_a_row_counts_from_its_first_token_if_texts_begin_with_padding():
    model = compiled(randomise(kt.LanguageModel(_of(kt.models.LanguageModelConfig, bos_id=0))))
    rows = np.array([[0, 5, 6, 0, 7, 8, 0, 9], [0, 4, 0, 3, 0, 0, 0, 0], [0] * 8], "int32")
    real = np.array([[1] * 8, [1, 1, 1, 1, 0, 0, 0, 0], [1] + [0] * 7], bool)
    logits = to_numpy(model(rows))
    labels = labels_for(logits, real)
    measured = model.evaluate(rows, labels, batch_size=4, verbose=0)
    np.testing.assert_allclose(measured, expected(logits, labels, real), rtol=1e-5)


def of_texts(y, logits):
    values = keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True)
    return keras.ops.mean(values, axis=-1)  # [B]


class OfTexts(keras.Loss):
    def call(self, y, logits):
        return of_texts(y, logits)


class OfBatch(OfTexts):
    def call(self, y, logits):
        return keras.ops.mean(super().call(y, logits))


class OfPositions(keras.Loss):
    def call(self, y, logits):
        return keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True)


def of_texts_in_a_column(y, logits):
    return of_texts(y, logits)[:, None]  # [B, 1]


@pytest.mark.parametrize(
    "loss", [of_texts, OfTexts(), OfTexts(reduction=None), [of_texts], of_texts_in_a_column]
)
def test_a_loss_with_a_value_for_each_text_is_refused(loss):
    model = kt.LanguageModel(_of(kt.models.LanguageModelConfig))
    model.compile(loss=loss, run_eagerly=True)
    with pytest.raises(
        ValueError, match=r"`loss` must return one value for .*shape \(4,( 1)?\) for"
    ):
        model.evaluate(TOKENS, TOKENS, verbose=0)


def test_a_loss_with_a_value_for_each_text_is_refused_where_it_could_be_of_positions():
    model = kt.LanguageModel(_of(kt.models.LanguageModelConfig))
    model.compile(loss=OfTexts(), run_eagerly=True)
    with pytest.raises(ValueError, match=r"`loss` must return one value for each position"):
        model.evaluate(TOKENS[:, :4], TOKENS[:, :4], verbose=0)


def test_own_losses_of_positions_or_of_the_batch():
    model = randomise(kt.LanguageModel(_of(kt.models.LanguageModelConfig)))
    logits, real = to_numpy(model(TOKENS)), TOKENS != 0
    labels = labels_for(logits, real)
    losses, _ = expected(logits, labels, real)
    everywhere, _ = expected(logits, labels, np.ones_like(real))
    for loss, right in (
        (OfPositions(), losses),
        (OfPositions(reduction=None), losses * real.mean()),
        (OfBatch(), everywhere),
    ):
        model.compile(loss=loss, run_eagerly=True)
        measured = model.evaluate(TOKENS, labels, batch_size=4, verbose=0)
        np.testing.assert_allclose(measured, right, rtol=1e-5)


def test_logits_stay_float32_in_mixed_precision():
    logits = kt.Transformer(small_config(), dtype="mixed_bfloat16").output
    assert logits.dtype == "float32"
    assert logits._keras_mask.dtype == "bool"


def test_token_mask_round_trip():
    layer = kt.layers.masks.TokenMask(7, keeps_first=True)
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert (again.pad_id, again.keeps_first) == (7, True)
