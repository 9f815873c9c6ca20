"""The optimizer described by the settings: the weights that decay with AdamW, and how much."""

import keras
import numpy as np
import pytest
from support import on_two_devices

from keras_transformer.training.factory import make_optimizer
from keras_transformer.training.settings.optimizer_sections import OptimizerSettings

RATE, DECAY = 0.5, 0.03


def after_updates(model, settings, count, gradient=0.0):
    """Returns the weights before and after some updates with one constant gradient."""
    variables = model.trainable_variables
    before = [np.array(variable.numpy(), copy=True) for variable in variables]
    optimizer = make_optimizer(settings, RATE, variables)
    for _ in range(count):
        gradients = [keras.ops.full(variable.shape, gradient) for variable in variables]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return [(v.path, old, v.numpy()) for v, old in zip(variables, before, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("tie", ["all", "none"])
def test_only_matrices_decay_with_adamw(small_model, tie):
    """With zero gradients, three updates multiply them by (1 - rate * decay) ** 3."""
    model = small_model(tie=tie, attention_bias=True, position="learned")
    settings = OptimizerSettings(kind="adamw", weight_decay=DECAY)
    decayed = set()
    for path, before, after in after_updates(model, settings, 3):
        if path.endswith("kernel"):
            np.testing.assert_allclose(after, before * (1 - RATE * DECAY) ** 3, rtol=1e-5)
            decayed.add(path.split("/")[0])
        else:
            np.testing.assert_array_equal(after, before, err_msg=path)
            decayed.add(path.rsplit("/", 1)[-1])
    kinds = {"encoder", "decoder", "table", "positions", "bias", "gamma", "beta"}
    assert decayed == kinds | ({"output"} if tie == "none" else set())


@pytest.mark.slow
def test_an_adamw_update_is_an_adam_update_after_the_decay(small_model):
    first = OptimizerSettings(kind="adamw", weight_decay=DECAY)
    decayed = after_updates(small_model(), first, 1, gradient=0.2)
    plain = after_updates(small_model(), OptimizerSettings(), 1, gradient=0.2)
    for (path, before, with_decay), (_, same, without) in zip(decayed, plain, strict=True):
        np.testing.assert_array_equal(before, same)
        share = RATE * DECAY if path.endswith("kernel") else 0.0
        np.testing.assert_allclose(with_decay, without - share * before, atol=1e-6)


def test_every_other_option_reaches_both():
    options = {"beta_1": 0.8, "beta_2": 0.7, "epsilon": 1e-5, "clip_norm": 2.0, "ema_momentum": 0.9}
    for settings in (
        OptimizerSettings(**options),
        OptimizerSettings(kind="adamw", weight_decay=0.2, **options),
    ):
        config = make_optimizer(settings, RATE, []).get_config()
        got = {key: config[key] for key in ("beta_1", "beta_2", "epsilon", "ema_momentum")}
        assert {**got, "clip_norm": config["global_clipnorm"]} == options
        assert config["use_ema"] and config["weight_decay"] == settings.weight_decay
        assert not config["amsgrad"]


@pytest.mark.long
@pytest.mark.slow
def test_only_matrices_decay_on_two_devices():
    """Keras passes each replica's copy of a variable to the decay, not the variable."""
    changes = on_two_devices("""
from support import on_two_devices

from keras_transformer.training.factory import make_optimizer
from keras_transformer.training.settings.optimizer_sections import OptimizerSettings

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    layer = keras.layers.Dense(3, bias_initializer="ones")
    layer.build((None, 2))
    weights = layer.trainable_variables
    optimizer = make_optimizer(OptimizerSettings(kind="adamw", weight_decay=0.03), 0.5, weights)
    optimizer.build(weights)
before = [weight.numpy() for weight in weights]
step = lambda: optimizer.apply_gradients([(tf.zeros(weight.shape), weight) for weight in weights])
tf.function(lambda: strategy.run(step))()
pairs = zip(weights, before)
print(json.dumps({weight.name: (weight.numpy() / old).ravel().tolist() for weight, old in pairs}))
""")
    np.testing.assert_allclose(changes["kernel"], 1 - RATE * DECAY, rtol=1e-5)
    assert changes["bias"] == [1, 1, 1]
