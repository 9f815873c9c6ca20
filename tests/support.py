"""Weights, sizes and tokens shared by the tests of the layers."""

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np

BENCHMARKS = pathlib.Path(__file__).parents[1] / "benchmarks"

# Distinct sizes, so that no two axes can be swapped unnoticed.
B, H, K, KV, T, S, F, D = 2, 3, 5, 7, 11, 13, 17, 22


def small_config(**changes):
    """A `TransformerConfig` of distinct sizes; source and target differ in depth."""
    from keras_transformer import TransformerConfig

    fields = {
        "vocab_size": 19,
        "num_layers": 1,
        "num_decoder_layers": 2,
        "d_model": D,
        "d_ff": F,
        "num_heads": H,
        "d_k": K,
        "d_v": KV,
        "max_length": 29,
        "dropout": 0.0,
    }
    if changes.get("feed_forward") == "none":
        del fields["d_ff"]
    if changes.get("cross_attention") == "same_position" and "mixer" in changes:
        for name in ("num_heads", "d_k", "d_v"):  # there is no attention
            del fields[name]
    return TransformerConfig(**{**fields, **changes})


def small_fields(config_class, **changes):
    """Returns the fields of `small_config` that another configuration also has, by name."""
    fields = small_config(**changes).to_flat()
    names = config_class.options().keys() - config_class.follow
    return {name: value for name, value in fields.items() if name in names}


def with_effect(config_class, **fields):
    """Returns the fields of a configuration that have an effect, by name."""
    unused = config_class.without_effect(fields) - config_class.follow
    return {name: value for name, value in fields.items() if name not in unused}


def randomise(layer, seed=0):
    """Sets every weight, biases and norms included, to distinct random values."""
    rng = np.random.default_rng(seed)
    for weight in layer.weights:
        values = rng.normal(size=weight.shape)
        if weight.path.endswith(("kernel", "table", "positions")):
            fan_in = weight.shape[0] if weight.path.endswith("kernel") else weight.shape[-1]
            if len(weight.shape) == 4:  # of a convolution over rows and columns
                fan_in = np.prod(weight.shape[:-1])
            values /= fan_in**0.5
        elif weight.path.endswith("gamma"):
            values = 1 + 0.3 * values
        else:
            values *= 0.3
        weight.assign(values)
    return layer


def weights_of(layer):
    """Returns float64 weights by path, `self_attention/query/kernel`, without the layer's name."""
    weights = {w.path.removeprefix(layer.name + "/"): w for w in layer.weights}
    assert len(weights) == len(layer.weights), "two weights have one path"
    return {path: weight.numpy().astype("float64") for path, weight in weights.items()}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def random_mask(*shape, seed=0):
    """Returns a mask, about two thirds True; the first key is always True, so no row is empty."""
    mask = np.random.default_rng(seed).random(shape) < 0.66
    mask[..., 0] = True
    return mask


def sentences(lengths, vocab_size=19, pad_id=0, width=None, first=None, seed=0):
    """Random tokens [B, width] with `first` before and `pad_id` after each sentence."""
    rng = np.random.default_rng(seed)
    tokens = np.full((len(lengths), width or max(lengths)), pad_id, "int32")
    words = [w for w in range(vocab_size) if w not in (0, 1, 2, 3, pad_id)]
    for row, length in zip(tokens, lengths, strict=True):
        row[:length] = rng.choice(words, length)
        if first is not None:
            row[0] = first
    return tokens


def listing(folder):
    """Returns the paths of all files and folders in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def to_numpy(tensor):
    """Returns a float64 copy of a tensor of any float dtype."""
    return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(tensor, "float32")), "float64")


TWO_DEVICES = """
import json, sys
sys.path[:0] = sys.argv[1:]
import keras, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

from support import randomise, small_config
from batches import batch, datasets, make_learner
from keras_transformer import Transformer
"""


def on_two_devices(script):
    """Runs a script with two CPU devices in a process of its own; returns its JSON output."""
    tests = pathlib.Path(__file__).parent
    folders = [tests, *(path for path in tests.glob("training/**") if path.is_dir())]
    process = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES + script, *map(str, folders)],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def run_benchmark(script, *arguments):
    """Runs a script of `benchmarks/` in a process of its own; returns the finished process."""
    command = [sys.executable, BENCHMARKS / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def with_tests_on_path():
    """Returns the environment of a process that can import the modules of this folder."""
    given = filter(None, [os.environ.get("PYTHONPATH")])  # `make test-avx2` sets it
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), *given]),
    }


def in_own_process(function, *arguments):
    """Runs a function of a test module in a process of its own and returns its result.

    Code compiled by XLA and the largest models take gigabytes that are only freed when a process
    ends.
    """
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
        return pool.submit(function, *arguments).result()


def assert_padding_stays_finite(model, tokens):
    """Checks a batch with a row of padding: all is finite, and the first row is unaffected."""
    import tensorflow as tf

    whole = to_numpy(model(tokens, training=True))
    tokens[1:] = 0
    with tf.GradientTape() as tape:
        logits = model(tokens, training=True)
        loss = tf.reduce_mean(logits**2)
    assert logits.dtype == "float32" and np.all(np.isfinite(to_numpy(logits)))
    np.testing.assert_array_equal(to_numpy(logits)[0], whole[0])
    for gradient in tape.gradient(loss, model.trainable_variables):
        assert np.all(np.isfinite(to_numpy(tf.convert_to_tensor(gradient))))
