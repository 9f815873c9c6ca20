"""The choice of the strategy, and invalid choices reported in one line."""

import re

import keras
import pytest
import tensorflow as tf
from small_runs import tf_config

from keras_transformer.cli.main import cli
from keras_transformer.training.devices.keras_patches import check_methods, sum_gradients_first
from keras_transformer.training.devices.strategy import make_strategy
from keras_transformer.training.devices.workers import Workers
from keras_transformer.training.loop.learner import Learner


def test_the_default_is_one_device():
    assert make_strategy("default") is tf.distribute.get_strategy()
    workers = Workers(make_strategy("default"))
    assert (workers.count, workers.is_chief) == (1, True)
    assert workers.chief_first(lambda: 3) == 3
    with pytest.raises(KeyError, match="this"), workers.watch():
        workers.chief_first(lambda: {}["this"])


def test_a_lost_worker_is_reported_in_one_line():
    workers = Workers(make_strategy("default"))
    text = "Graph execution error:\n\nCollective ops is aborted by: Socket closed\nThe error could"
    error = tf.errors.UnavailableError(None, None, text)
    with pytest.raises(tf.errors.UnavailableError), workers.watch():
        raise error  # there is no other worker
    workers.count = 2
    message = "another worker has ended .*newest checkpoint. TensorFlow reports: Socket closed$"
    with pytest.raises(ConnectionError, match=message), workers.watch():
        raise error


def test_an_unknown_strategy_is_reported():
    with pytest.raises(ValueError, match="one of default, mirrored, .* Received: name='two'"):
        make_strategy("two")


@pytest.mark.parametrize(
    "text, problem",
    [
        (None, "is not set"),
        ("worker 0", "is not JSON"),
        ("[]", "must have cluster.worker, task.type and task.index"),
        ('{"cluster": {"worker": ["a:1"]}}', "must have cluster.worker, task.type and task.index"),
        (tf_config(workers=[]), "must list an address, host:port, for every worker"),
        (tf_config(workers=["a:1", "b"]), "must list an address, host:port, for every worker"),
        (tf_config(workers=["a:1", "a:1"]), "lists an address twice"),
        (tf_config(kind="evaluator"), "may only have tasks of type worker"),
        (tf_config(ps=["c:3"]), "may only have tasks of type worker"),
        (tf_config(index=2), "must have a task.index from 0 to 1"),
        (tf_config(index="0"), "must have a task.index from 0 to 1"),
    ],
)
def test_a_wrong_cluster_is_reported_in_one_line(monkeypatch, tmp_path, text, problem):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if text is not None:
        monkeypatch.setenv("TF_CONFIG", text)
    received = "nothing" if text is None else re.escape(text)
    message = f"TF_CONFIG {re.escape(problem)}.* Received: TF_CONFIG={received}.$"
    with pytest.raises(ValueError, match=message) as error:
        make_strategy("multi_worker")
    assert "\n" not in str(error.value)


def test_a_cluster_is_set_up_before_any_computation(monkeypatch):
    tf.constant(1)
    monkeypatch.setenv("TF_CONFIG", tf_config())
    with pytest.raises(ValueError, match="multi_worker must be created before TensorFlow computes"):
        make_strategy("multi_worker")


@pytest.mark.slow
def test_a_missing_tpu_is_reported_in_one_line(monkeypatch):
    monkeypatch.delenv("TPU_NAME", raising=False)
    with pytest.raises(ValueError, match="no TPU found: TPU_NAME is not set. Set TPU_NAME to"):
        make_strategy("tpu")
    monkeypatch.setenv("TPU_NAME", "local")
    with pytest.raises(ValueError, match="no TPU found: .*Set TPU_NAME to the name") as error:
        make_strategy("tpu")
    assert "\n" not in str(error.value)


VERSIONS = (
    rf"^Keras {keras.__version__} with TensorFlow {tf.__version__} is not supported for training"
)
VERSIONS += ": .*"


@pytest.mark.parametrize("name", ["_maybe_symbolic_build", "make_train_function"])
def test_a_keras_with_changed_methods_is_refused_in_one_line(monkeypatch, small_model, name):
    model = small_model()
    monkeypatch.setattr(keras.Model, name, lambda self, batch: None)
    for strategy in (tf.distribute.get_strategy(), tf.distribute.OneDeviceStrategy("CPU:0")):
        message = VERSIONS + f"Model.{name} is missing"
        with strategy.scope(), pytest.raises(ValueError, match=message):
            Learner(model)


def test_a_keras_without_a_method_is_refused_in_one_line(monkeypatch):
    class Nothing:
        apply = keras.optimizers.SGD.apply

    method = "Nothing._all_reduce_sum_gradients is missing or has changed"
    with pytest.raises(ValueError, match=VERSIONS + method):
        sum_gradients_first(Nothing())
    with pytest.raises(ValueError, match=r"Model.no_such_method is missing"):
        check_methods(keras.Model, {"no_such_method": ["self"]})


def test_the_command_line_offers_all_strategies(monkeypatch):
    from keras_transformer.training.devices.strategy import STRATEGIES

    (option,) = [
        parameter for parameter in cli.commands["train"].params if parameter.name == "strategy"
    ]
    assert tuple(option.type.choices) == STRATEGIES
