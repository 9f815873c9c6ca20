"""Quantisation-aware training: gradients of rounded weights, updates of the others."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from batches import LENGTHS, batch, datasets
from small_runs import At, assert_same_end, run_quietly, write_small_corpus
from support import normal, on_two_devices, randomise, small_config

from keras_transformer import Transformer, Translator
from keras_transformer.export.litert.compact import codes_of_rows, scales_of_rows
from keras_transformer.export.litert.int4 import in_int4
from keras_transformer.tasks.run import Run
from keras_transformer.training.averaging import average_checkpoints
from keras_transformer.training.loop.checkpoint import Checkpoints, read
from keras_transformer.training.loop.learner import Learner
from keras_transformer.training.losses.cross_entropy import LabelSmoothedCrossEntropy
from keras_transformer.training.settings.toml import SettingsError, load_settings
from keras_transformer.training.tuning.rounded_weights import RoundedWeights, rounded

SIZES = {"d_model": 32, "d_ff": 40, "num_heads": 2}


def rows():
    """Returns a matrix `[9, 64]` with small and large rows, zeros and an outlier."""
    matrix = normal(9, 64).astype("float32") * np.geomspace(1e-3, 30, 9, dtype="float32")[:, None]
    matrix[2, 11] *= 20
    matrix[3] = 0.0
    matrix[4] = -np.abs(matrix[4])
    matrix[5] = 0.25
    matrix[6] *= 1e-9
    return matrix


def stored(matrix, kind):
    """Returns what a file stores for a matrix `[N, M]`, float64."""
    if kind == "int8":
        scales = scales_of_rows(matrix)
        return codes_of_rows(matrix, scales) * scales[:, None]
    packed, scales = in_int4(matrix)
    halves = np.stack([packed & 15, packed >> 4], axis=-1).reshape(matrix.shape).astype("int64")
    return np.where(halves > 7, halves - 16, halves) * scales.astype("float64")[:, None]


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_a_file_stores_exactly_the_rounded_numbers(kind):
    matrix = rows()
    ours = rounded(tf.constant(matrix), kind).numpy()
    np.testing.assert_allclose(ours, stored(ours, kind), rtol=1e-6, atol=0)
    assert len({*np.round(ours[0] / np.abs(ours[0]).max() * 127, 3)}) <= (255, 15)[kind == "int4"]
    turned = rounded(tf.constant(matrix.T), kind, axes=(0,)).numpy()
    np.testing.assert_allclose(turned.T, ours, rtol=1e-6)


def test_rounding_to_int8_is_that_of_the_file():
    matrix = rows()
    ours = rounded(tf.constant(matrix), "int8").numpy()
    np.testing.assert_allclose(ours, stored(matrix, "int8"), rtol=1e-6, atol=0)


def test_rounding_to_int4_has_nearly_the_smallest_error():
    """A file tries 150 scales, for numbers that it has rounded to int8 before."""
    matrix = normal(200, 128).astype("float32")
    error, smallest = (
        np.square(one - matrix).sum()
        for one in (rounded(tf.constant(matrix), "int4").numpy(), stored(matrix, "int4"))
    )
    assert smallest * 0.98 < error < smallest * 1.02


def model_of(**options):
    return randomise(Transformer(small_config(**{**SIZES, **options})))


@pytest.mark.parametrize("options", [{"tie": "all"}, {"tie": "none"}, {"mixer": "gru"}], ids=str)
def test_matrices_are_rounded_by_outputs_and_tables_by_tokens(options):
    model = model_of(**options)
    rounding = RoundedWeights(model, "int4")
    before = {v.path: v.numpy().copy() for v in model.weights}
    changed = 0
    with rounding.used():
        for variable in model.weights:
            now, was = variable.numpy(), before[variable.path]
            name = variable.path.rsplit("/", 1)[-1]
            if not name.endswith(("kernel", "table")) or was.size < 1024:
                np.testing.assert_array_equal(now, was, err_msg=variable.path)
                continue
            rows = now if name == "table" else now.T
            np.testing.assert_allclose(rows, stored(rows, "int4"), rtol=1e-6, err_msg=name)
            assert not np.array_equal(now, was), variable.path
            changed += was.size
    assert changed == rounding.count > 7_000
    for variable in model.weights:
        np.testing.assert_array_equal(variable.numpy(), before[variable.path])


def test_rows_of_an_odd_number_are_rounded_to_int8():
    layer = keras.layers.Dense(40)
    model = keras.Sequential([keras.Input([31]), layer])
    with RoundedWeights(model, "int4").used():
        ours = layer.kernel.numpy().T
    np.testing.assert_allclose(ours, stored(ours, "int8"), rtol=1e-6)
    assert len({*np.round(np.abs(ours[0]) / np.abs(ours[0]).max(), 4)}) > 15


def test_convolutions_are_rounded_to_int8():
    layer = keras.layers.Conv1D(24, 3)
    model = keras.Sequential([keras.Input([9, 16]), layer])
    with RoundedWeights(model, "int4").used():
        ours = layer.kernel.numpy().reshape(-1, 24).T  # [outputs, width * inputs]
    np.testing.assert_allclose(ours, stored(ours, "int8"), rtol=1e-6)
    assert len({*np.round(np.abs(ours[0]) / np.abs(ours[0]).max(), 4)}) > 15


def test_a_model_of_small_matrices_is_refused():
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(8)])
    with pytest.raises(ValueError, match="at least 1,024 weights; this model has none"):
        RoundedWeights(model, "int8")


def learner_of(model, kind=None, **options):
    learner = Learner(
        model, rounding=None if kind is None else RoundedWeights(model, kind), **options
    )
    learner.compile(keras.optimizers.SGD(0.5), LabelSmoothedCrossEntropy(0.1))
    return learner


def trained_weights(model, optimizer=None, **options):
    learner = Learner(model, rounding=RoundedWeights(model, "int4"))
    learner.compile(
        optimizer or keras.optimizers.SGD(0.5), LabelSmoothedCrossEntropy(0.1), **options
    )
    learner.fit(datasets(batch(LENGTHS, 1), batch(LENGTHS, 2)), verbose=0, shuffle=False)
    return [weight.numpy() for weight in model.weights]


@pytest.mark.slow
@pytest.mark.long
def test_xla_makes_the_same_updates():
    plain, compiled = (trained_weights(model_of(), jit_compile=xla) for xla in (False, True))
    for one, two in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.long
@pytest.mark.slow
def test_a_moving_average_is_that_of_the_weights_before_rounding():
    model, other = model_of(), model_of()
    optimizer = keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.0)
    # With a momentum of 0, the average that `fit` ends with is the last weights.
    ours, theirs = trained_weights(model, optimizer=optimizer), trained_weights(other)
    for one, two in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.long
@pytest.mark.slow
def test_gradients_are_those_of_the_rounded_weights(accumulate=2):
    data = [batch(LENGTHS, seed) for seed in range(accumulate)]
    one = data[0] if accumulate == 1 else tuple(data)
    model, other = model_of(), model_of()
    start = [weight.numpy().copy() for weight in other.weights]
    learner_of(model, "int4", accumulate=accumulate).fit(datasets(one), verbose=0, shuffle=False)
    with RoundedWeights(other, "int4").used():
        numbers = [weight.numpy().copy() for weight in other.weights]
    other.set_weights(numbers)
    learner_of(other, accumulate=accumulate).fit(datasets(one), verbose=0, shuffle=False)
    moved = 0
    for weight, its, begin, number in zip(
        model.weights, other.weights, start, numbers, strict=True
    ):
        change = its.numpy() - number  # of an update that begins with the rounded weights
        np.testing.assert_allclose(
            weight.numpy() - begin, change, atol=2e-6, rtol=1e-4, err_msg=weight.path
        )
        moved += np.abs(change).max() > 1e-4
    assert moved > 20


@pytest.mark.long
@pytest.mark.slow
def test_two_replicas_make_the_same_update():
    script = """
import json, numpy as np, keras, tensorflow as tf
from test_rounded_weights import learner_of, model_of
from batches import LENGTHS, batch, datasets
from keras_transformer.training.data.shards import cut_batches

def trained(strategy):
    with strategy.scope():
        model = model_of()
        learner = learner_of(model, "int4")
    data = datasets(batch(LENGTHS * 2, 1), batch(LENGTHS * 2, 2))
    learner.fit(cut_batches(data, strategy, 0), steps_per_epoch=2, verbose=0, shuffle=False)
    return [weight.numpy() for weight in model.weights]

one = trained(tf.distribute.OneDeviceStrategy("cpu:0"))
two = trained(tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"]))
print(json.dumps(max(float(np.abs(a - b).max()) for a, b in zip(one, two, strict=True))))
"""
    assert on_two_devices(script) < 2e-5


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Settings of a run of 11 updates with weights in int4; the folder of its data is current."""
    monkeypatch.chdir(tmp_path)
    write_small_corpus(tmp_path)
    config = (tmp_path / "config.toml").read_text().replace("d_model = 16", "d_model = 32")
    config = config.replace("d_ff = 24", "d_ff = 40")
    (tmp_path / "int4.toml").write_text(f'{config}quantize = "int4"\n')
    return load_settings(tmp_path / "int4.toml")


def matrices(model):
    return [w.numpy().T for w in model.weights if w.name == "kernel" and np.prod(w.shape) >= 1024]


@pytest.mark.long
@pytest.mark.slow
def test_the_model_of_a_run_has_rounded_weights_and_its_checkpoints_others(settings, tmp_path):
    metrics, text = run_quietly(settings, tmp_path / "run")
    run = Run(tmp_path / "run")
    kernels = matrices(run.load_model())
    count = sum(kernel.size for kernel in kernels)
    assert kernels and f"{count:,} rounded to int4; 40 examples" in text
    for kernel in kernels:
        np.testing.assert_allclose(kernel, stored(kernel, "int4"), rtol=1e-6)
    arrays = read(Checkpoints(run.checkpoints).paths()[-1])
    trained = [a for key, a in arrays.items() if key.endswith("/kernel") and a.size >= 1024]
    assert not any(np.array_equal(a.T, kernel) for a in trained for kernel in kernels)
    source, target = (
        (tmp_path / f"validation.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    scores = Translator.from_run(run.path).score(source, target)
    perplexity = np.exp(-sum(s.score for s in scores) / sum(s.tokens for s in scores))
    assert metrics["validation"]["perplexity"] == pytest.approx(perplexity, rel=1e-4)
    average = Run(average_checkpoints(tmp_path / "run", 2))
    for kernel in matrices(average.load_model()):
        np.testing.assert_allclose(kernel, stored(kernel, "int4"), rtol=1e-6)


@pytest.mark.long
@pytest.mark.slow
def test_an_interrupted_run_ends_with_the_same_weights(settings, tmp_path):
    finished = tmp_path / "finished", run_quietly(settings, tmp_path / "finished")[0]

    def interrupt():
        raise KeyboardInterrupt

    assert run_quietly(settings, tmp_path / "run", [At(5, interrupt)])[0] is None
    run_quietly(settings, tmp_path / "run")
    assert_same_end(tmp_path / "run", finished)


def test_adapters_cannot_be_rounded(settings, tmp_path):
    config = (tmp_path / "int4.toml").read_text()
    (tmp_path / "both.toml").write_text(config + "\n[training.lora]\n")
    with pytest.raises(SettingsError, match="`quantize` cannot be combined with"):
        load_settings(tmp_path / "both.toml")
