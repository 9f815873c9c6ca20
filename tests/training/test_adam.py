"""Adam equals Adam on dense gradients in float64, for every way to tie the tables."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from batches import batch
from marks import slow
from support import on_two_devices, randomise, small_config

from keras_transformer import PositionalEmbedding, Transformer
from keras_transformer.layers.kernels import Kernels
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.tuning import adam as fused

UPDATES, RATE, SMOOTHING = 3, 0.01, 0.1
# Large enough that rounding gradients near 0 does not decide a whole update.
EPSILON = 1e-4
LENGTHS = [(7, 5), (2, 7), (4, 1), (3, 3)]  # of few different tokens: most occur twice
TIES = {
    "all": {"tie": "all"},
    "target": {"tie": "target", "target_vocab_size": 23, "position": "learned"},
    "none": {"tie": "none", "target_vocab_size": 23, "position": "learned"},
}
# Gradients could go wrong in the look-up of an untied table; the other tests are slow.
each_tie = pytest.mark.parametrize(
    "tie",
    [pytest.param(tie, marks=() if tie == "none" else pytest.mark.slow) for tie in TIES],
)


def make_model(tie):
    sizes = {"num_layers": 1, "num_decoder_layers": 1}
    return randomise(Transformer(small_config(**sizes, **TIES[tie])))


def make_batches():
    return [batch(LENGTHS, seed=seed, width=7) for seed in range(UPDATES)]


def adam(clip=None):
    return keras.optimizers.Adam(RATE, epsilon=EPSILON, global_clipnorm=clip)


def dense_gradients(model, inputs, labels):
    """Returns gradients of the smoothed cross-entropy per real token, as whole tables."""
    with tf.GradientTape() as tape:
        logits = model(inputs, training=True)
        size = logits.shape[-1]
        wanted = tf.one_hot(labels, size) * (1 - SMOOTHING) + SMOOTHING / size
        losses = -tf.reduce_sum(wanted * tf.nn.log_softmax(logits), axis=-1)
        real = tf.cast(labels != 0, tf.float32)
        loss = tf.reduce_sum(losses * real) / tf.reduce_sum(real)
    gradients = tape.gradient(loss, model.trainable_variables)
    return [tf.convert_to_tensor(gradient).numpy().astype("float64") for gradient in gradients]


def weights_after_dense_adam(tie, clip):
    """Kingma and Ba (2015), Algorithm 1, in the form given at the end of section 2."""
    model = make_model(tie)
    weights = [weight.numpy().astype("float64") for weight in model.trainable_variables]
    means = [np.zeros_like(weight) for weight in weights]
    squares = [np.zeros_like(weight) for weight in weights]
    for update, (inputs, labels) in enumerate(make_batches(), start=1):
        gradients = dense_gradients(model, inputs, labels)
        norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
        assert norm > 0.3, "it is to be clipped"
        scale = 1 if clip is None else min(1, clip / norm)
        for place, gradient in enumerate(gradients):
            gradient = gradient * scale
            means[place] += 0.1 * (gradient - means[place])
            squares[place] += 0.001 * (gradient**2 - squares[place])
            rate = RATE * np.sqrt(1 - 0.999**update) / (1 - 0.9**update)
            weights[place] -= rate * means[place] / (np.sqrt(squares[place]) + EPSILON)
        model.set_weights(weights)
    return weights


def assert_dense_adam(weights, tie, clip):
    expected = weights_after_dense_adam(tie, clip)
    for ours, theirs in zip(weights, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def learner_of(model, clip, accumulate=1):
    learner = Learner(model, accumulate=accumulate)
    learner.compile(adam(clip), LabelSmoothedCrossEntropy(SMOOTHING))
    return learner


def weights_of(model):
    return [weight.numpy() for weight in model.trainable_variables]


@pytest.mark.long
@pytest.mark.slow
def test_a_plain_transformer(tie="none", clip=0.1):
    """Uses `compile` and `fit` like any user of Keras."""
    model = make_model(tie)
    model.compile(adam(clip), LabelSmoothedCrossEntropy(SMOOTHING), jit_compile=False)
    for inputs, labels in make_batches():
        model.fit(inputs, labels, batch_size=len(labels), shuffle=False, verbose=0)
    assert_dense_adam(weights_of(model), tie, clip)


@pytest.mark.parametrize(
    ("tie", "clip", "accumulate"),
    [slow("target", 0.1, 1), slow("none", 0.1, 2), slow("none", None, 2)],
)
def test_the_learner(tie, clip, accumulate):
    model = make_model(tie)
    learner = learner_of(model, clip, accumulate)
    for inputs, labels in make_batches():
        data = inputs, labels
        if accumulate == 2:
            halves = [tf.nest.map_structure(lambda x, n=n: x[n::2], data) for n in range(2)]
            data = tuple(halves)
        learner.train_step(tf.nest.map_structure(tf.constant, data))
    assert_dense_adam(weights_of(model), tie, clip)


TWO_REPLICAS = """
from test_adam import learner_of, make_batches, make_model
from keras_transformer.training.data.shards import cut_batches

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    learner = learner_of(make_model(TIE), clip=0.1)
    learner.optimizer.build(learner.trainable_variables)
    batches = cut_batches(datasets(*make_batches()).repeat(), strategy, 0)
    learner.fit(batches, steps_per_epoch=3, verbose=0, shuffle=False)
print(json.dumps([weight.value.numpy().tolist() for weight in learner.trainable_variables]))
"""


@pytest.mark.long
@pytest.mark.slow
@each_tie
def test_two_replicas(tie):
    weights = on_two_devices(f"TIE = {tie!r}\n{TWO_REPLICAS}")
    assert_dense_adam(weights, tie, clip=0.1)


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW", "Adagrad", "RMSprop", "Lion", "Nadam"])
def test_any_optimizer_gets_one_gradient_per_row(optimizer):
    """An embedding alone, and the same look-up as a product, whose gradient is dense."""
    ids = np.array([[3, 3, 3, 1], [3, 1, 0, 0]])
    wanted = np.random.default_rng(0).normal(size=(2, 4, 6)).astype("float32")
    tables = []
    for as_product in (False, True):
        kernels = Kernels(look_up=lambda table, ids: tf.one_hot(ids, 5) @ table)
        options = {"kernels": kernels} if as_product else {}
        layer = PositionalEmbedding(5, 6, position="learned", max_length=4, **options)
        layer.build((2, 4))
        randomise(layer)
        made = getattr(keras.optimizers, optimizer)(0.01, clipnorm=0.05)
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((layer(ids) - wanted) ** 2)
            gradients = tape.gradient(loss, layer.trainable_variables)
            assert all(isinstance(gradient, tf.Tensor) for gradient in gradients)
            made.apply(gradients, layer.trainable_variables)
        tables.append([weight.numpy() for weight in layer.trainable_variables])
    for ours, theirs in zip(*tables, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("policy_name", ["mixed_bfloat16", "mixed_float16"])
def test_gradients_of_a_frequent_token_are_summed_in_float32(policy_name):
    """In bfloat16 a sum of ones stops at 256."""
    layer = PositionalEmbedding(5, 4, position="none", dtype=policy_name)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(layer(np.full((8, 500), 3)), "float32"))
    (gradient,) = tape.gradient(loss, layer.trainable_variables)
    assert gradient.dtype == tf.float32
    np.testing.assert_array_equal(gradient[3], [4000 * 2.0] * 4)  # times sqrt(d_model)


def updated(optimizer, steps=3, compiled=True, scale=None):
    """Returns variables, and those of the optimizer, after updates by random gradients."""
    rng = np.random.default_rng(0)
    variables = [keras.Variable(rng.normal(size=size).astype("float32")) for size in ((5, 3), (7,))]
    if scale is not None:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=scale)
    optimizer.build(variables)

    def update(*gradients):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    update = tf.function(update) if compiled else update
    for _ in range(steps):
        update(*(tf.constant(rng.normal(size=v.shape).astype("float32")) for v in variables))
    return [variable.numpy() for variable in (*variables, *optimizer.variables)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compiled": False},
        {"scale": 4.0},
        {"weight_decay": 0.1},
        {"amsgrad": True},
        {"global_clipnorm": 0.1, "use_ema": True},
        {"gradient_accumulation_steps": 2},
    ],
    ids=str,
)
def test_the_fused_update_equals_that_of_keras(options):
    run = {name: value for name, value in options.items() if name in ("compiled", "scale")}
    options = {name: value for name, value in options.items() if name not in run}
    kind = "AdamW" if "weight_decay" in options else "Adam"
    ours, theirs = (
        updated(getattr(module, kind)(RATE, **options), **run)
        for module in (fused, keras.optimizers)
    )
    # Keras rounds `1 - beta_2`, 0.001, to float32, and TensorFlow rounds `beta_2`: 5e-5 of it.
    for own, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=RATE * 1e-4)


def test_the_fused_update_is_one_operation_per_variable():
    optimizer, variable = fused.Adam(RATE), keras.Variable(np.ones((3, 2), "float32"))
    optimizer.build([variable])
    graph = tf.function(lambda: optimizer.apply_gradients([(tf.ones((3, 2)), variable)]))
    operations = [op.type for op in graph.get_concrete_function().graph.get_operations()]
    assert operations.count("ResourceApplyAdam") == 1
    assert "Sqrt" not in operations
