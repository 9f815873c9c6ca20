"""Layer-wise decay of the learning rate: each variable equals Adam by hand with a rate of its own.

The expected distances are written down by the names of the variables.
"""

import numpy as np
import pytest
import tensorflow as tf
from marks import slow
from support import on_two_devices, randomise, small_config, small_fields, with_effect

from keras_transformer import LanguageModel, Transformer
from keras_transformer.models import ClassifierConfig, LanguageModelConfig, TextClassifier
from keras_transformer.training.factory import _factors, make_optimizer
from keras_transformer.training.settings.optimizer_sections import OptimizerSettings
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.tuning.frozen import freeze_parts
from keras_transformer.training.tuning.layer_rates import distances, layer_factors

RATE, DECAY = 0.01, 0.5

# Stacks of 1 and 2 blocks: the encoder counts from its own end.
TRANSFORMER = {
    "source_embedding/": 2,
    "encoder/block_0/": 1,
    "encoder/norm/": 0,
    "target_embedding/": 3,
    "decoder/block_0/": 2,
    "decoder/block_1/": 1,
    "decoder/norm/": 0,
    "output/": 0,
    "logits/": 0,
}


def expected(model, table):
    """Returns the distance of each variable by its path."""
    found = {
        w.path: [d for name, d in table.items() if w.path.startswith(name)] for w in model.weights
    }
    assert all(len(rows) == 1 for rows in found.values()), found
    return {path: distance for path, (distance,) in found.items()}


def shown(model):
    distance = distances(model)
    return {w.path: distance[id(w)] for w in model.weights}


@pytest.mark.parametrize(
    ("options", "table"),
    [
        ({"tie": "none", "norm": "pre", "output_bias": True}, TRANSFORMER),
        ({"tie": "all", "norm": "pre"}, {**TRANSFORMER, "embedding/": 2}),
    ],
)
def test_distances_in_a_transformer(options, table):
    model = Transformer(small_config(**options))
    assert shown(model) == expected(model, table)


def test_distances_in_models_with_one_stack():
    fields = small_fields(ClassifierConfig, num_layers=2, embedding_norm=True)
    fields = with_effect(ClassifierConfig, **fields, segments="from_bos")
    model = TextClassifier(ClassifierConfig(**fields))
    table = {
        "embedding/": 3,
        "segments/": 3,
        "encoder/embedding_norm/": 3,
        "encoder/block_0/": 2,
        "encoder/block_1/": 1,
        "output/": 0,
    }
    assert shown(model) == expected(model, table)
    fields = with_effect(LanguageModelConfig, **small_fields(LanguageModelConfig, num_layers=2))
    model = LanguageModel(LanguageModelConfig(**{**fields, "norm": "pre"}))
    table = {"embedding/": 3, "decoder/block_0/": 2, "decoder/block_1/": 1, "decoder/norm/": 0}
    assert shown(model) == expected(model, table)


def by_hand(value, path, gradients, rate, settings):
    """Adam (Kingma and Ba, Algorithm 1) in float64, with AdamW's decay."""
    decay = settings.weight_decay if settings.weight_decay and path.endswith("kernel") else 0
    value = value.astype("float64")
    mean = square = np.zeros(value.shape)
    for step, gradient in enumerate(gradients, 1):
        value = value - rate * decay * value
        mean = settings.beta_1 * mean + (1 - settings.beta_1) * gradient
        square = settings.beta_2 * square + (1 - settings.beta_2) * gradient**2
        unbiased = mean / (1 - settings.beta_1**step), square / (1 - settings.beta_2**step)
        value = value - rate * unbiased[0] / (np.sqrt(unbiased[1]) + settings.epsilon)
    return value


@pytest.mark.parametrize(
    ("kind", "options"), [slow("adam", {}), ("adamw", {}), ("adamw", {"mixer": "gru"})]
)
def test_updates_equal_adam_by_hand(kind, options):
    decay = {"weight_decay": 3.0} if kind == "adamw" else {}
    settings = OptimizerSettings(kind=kind, **decay, epsilon=1e-6)
    model = randomise(Transformer(small_config(tie="none", norm="pre", **options)))
    distance, rng = expected(model, TRANSFORMER), np.random.default_rng(0)
    gradients = [rng.uniform(0.5, 1.5, (2, *w.shape)).astype("float32") for w in model.weights]
    wanted = [
        by_hand(weight.numpy(), weight.path, both, RATE * DECAY ** distance[weight.path], settings)
        for weight, both in zip(model.weights, gradients, strict=True)
    ]
    variables = model.trainable_variables
    optimizer = make_optimizer(settings, RATE, variables, layer_factors(model, DECAY))
    for step in range(2):
        optimizer.apply_gradients(
            [(tf.constant(both[step]), w) for both, w in zip(gradients, variables, strict=True)]
        )
    for weight, value in zip(model.weights, wanted, strict=True):
        np.testing.assert_allclose(weight.numpy(), value, atol=1e-6, err_msg=weight.path)


TWO_DEVICES = """
from test_layer_rates import *

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = randomise(Transformer(small_config(tie="none", norm="pre")))
    settings = OptimizerSettings(kind="adamw", weight_decay=3.0)
    variables = model.trainable_variables
    optimizer = make_optimizer(settings, RATE, variables, layer_factors(model, DECAY))
    optimizer.build(variables)
old = [weight.numpy() for weight in variables]

def step():
    optimizer.apply_gradients([(tf.ones(weight.shape), weight) for weight in variables])

tf.function(lambda: strategy.run(step))()
gradient, left = np.float64(2), {}  # the sum of two replicas
for weight, before in zip(variables, old):
    rate = RATE * DECAY ** expected(model, TRANSFORMER)[weight.path]
    wanted = by_hand(before, weight.path, [np.full(weight.shape, gradient)], rate, settings)
    left[weight.path] = float(np.abs(weight.numpy() - wanted).max())
print(json.dumps(left))
"""


@pytest.mark.long
@pytest.mark.slow
def test_updates_on_two_devices_equal_adam_by_hand():
    assert max(on_two_devices(TWO_DEVICES).values()) < 1e-6


def test_a_decay_without_effect_is_refused():
    model = Transformer(small_config(tie="none", norm="pre"))
    freeze_parts(model, ["input", "encoder", "decoder"])
    with pytest.raises(ValueError, match="`training.layer_decay` has no effect: only the head"):
        _factors(model, 0.9)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.layer_decay=1.0", "training.layer_decay must be less than 1. Received: 1.0"),
        ("training.layer_decay=0.0", "training.layer_decay must be greater than 0. Received"),
    ],
)
def test_a_wrong_decay_is_refused_in_one_line(tmp_path, override, message):
    (tmp_path / "config.toml").write_text('[data]\nsource = "cldr"\n')
    with pytest.raises(SettingsError, match=message):
        load_settings(tmp_path / "config.toml", [override])


@pytest.mark.slow
def test_recurrent_layers_have_no_decay(monkeypatch):
    monkeypatch.setenv("KERAS_TRANSFORMER_DATA", "/data")
    with pytest.raises(SettingsError, match="layer_decay` needs stacks of blocks: the encoder of "):
        load_settings("runoff_gru", ["training.layer_decay=0.9"])
