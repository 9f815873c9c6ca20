"""Distribution strategies: one device, several on one machine, several machines, or TPUs.

Also the arithmetic with which a machine trains fastest.
"""

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

CPUINFO = pathlib.Path("/proc/cpuinfo")
NATIVE_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}  # two extensions of x86, and ARM's


def dtype_policy(precision, cpuinfo=CPUINFO) -> str:
    """Returns the Keras dtype policy for a value of `training.precision`.

    `"auto"` is `"mixed_bfloat16"` if the hardware multiplies bfloat16 natively, otherwise
    `"float32"`: a CPU without such instructions emulates them, many times slower.

    Args:
        precision: `"auto"` or the name of a policy.
        cpuinfo: File in which the system lists the features of its processor.
    """
    if precision != "auto":
        return precision
    if tf.config.list_physical_devices("TPU"):
        return "mixed_bfloat16"
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        capability = tf.config.experimental.get_device_details(gpus[0]).get("compute_capability")
        native = capability is not None and capability >= (8, 0)
    else:
        words = set(cpuinfo.read_text().split()) if cpuinfo.is_file() else set()
        native = bool(words & NATIVE_BFLOAT16) and not _is_held_back()
    return "mixed_bfloat16" if native else "float32"


def _is_held_back():
    """Returns `True` if the environment denies oneDNN bfloat16: TensorFlow would abort."""
    most = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    return bool(most) and not any(name in most for name in ("DEFAULT", "BF16", "AMX"))


STRATEGIES = ("default", "mirrored", "multi_worker", "tpu")


def make_strategy(name: str) -> tf.distribute.Strategy:
    """Returns a `tf.distribute` strategy by name. Call it before TensorFlow computes anything.

    - `"default"`: one device, the first GPU, otherwise the CPU.
    - `"mirrored"`: all GPUs of this machine, otherwise all its logical CPU devices.
    - `"multi_worker"`: all GPUs, otherwise the CPU, of several machines. The environment variable
      `TF_CONFIG` lists the machines and says which of them this is; only `index` differs between
      them:
      `{"cluster": {"worker": ["one:12345", "two:12345"]}, "task": {"type": "worker", "index": 0}}`.
      The call returns when all machines have joined. Worker 0 is the chief.
    - `"tpu"`: the TPU that the environment variable `TPU_NAME` names; `local` on a TPU's own host.

    Args:
        name: One of `STRATEGIES`.

    Raises:
        ValueError: If the name is unknown, `TF_CONFIG` is missing or wrong, or no TPU is found.
    """
    makers: dict[str, Callable[[], Any]] = {
        "default": tf.distribute.get_strategy,
        "mirrored": _mirrored,
        "multi_worker": _multi_worker,
        "tpu": _tpu,
    }
    if name not in makers:
        raise ValueError(f"`name` must be one of {', '.join(STRATEGIES)}. Received: name={name!r}.")
    return makers[name]()


def _mirrored():
    if tf.config.list_logical_devices("GPU"):
        return tf.distribute.MirroredStrategy()
    return tf.distribute.MirroredStrategy(
        [device.name for device in tf.config.list_logical_devices("CPU")]
    )


def _multi_worker():
    _check_cluster(os.environ.get("TF_CONFIG"))
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        raise ValueError(
            "the strategy multi_worker must be created before TensorFlow computes anything in this "
            f"process. TensorFlow reports: {_first_line(error)}"
        ) from error
    except tf.errors.OpError as error:
        raise ValueError(
            "this worker cannot join the others in TF_CONFIG. TensorFlow reports: "
            f"{_first_line(error)}"
        ) from error


def _check_cluster(text):
    """Raises a `ValueError` for a `TF_CONFIG` with which workers would fail to connect or hang."""

    def refuse(problem):
        raise ValueError(
            f"TF_CONFIG {problem}. For the first of two workers it would be "
            '{"cluster": {"worker": ["host0:port", "host1:port"]}, '
            '"task": {"type": "worker", "index": 0}}. '
            f"Received: TF_CONFIG={'nothing' if text is None else text}."
        )

    if text is None:
        refuse("is not set")
    try:
        config = json.loads(text)
    except ValueError:
        refuse("is not JSON")
    try:
        cluster, task = config["cluster"], config["task"]
        workers, kind, index = cluster["worker"], task["type"], task["index"]
    except (KeyError, TypeError):
        refuse("must have cluster.worker, task.type and task.index")
    if not (isinstance(workers, list) and workers and all(map(_is_address, workers))):
        refuse("must list an address, host:port, for every worker in cluster.worker")
    if len(set(workers)) < len(workers):
        refuse("lists an address twice in cluster.worker")
    if set(cluster) != {"worker"} or kind != "worker":
        refuse("may only have tasks of type worker")
    if type(index) is not int or not 0 <= index < len(workers):
        refuse(f"must have a task.index from 0 to {len(workers) - 1}, a place in cluster.worker")


def _is_address(value):
    return isinstance(value, str) and value.rpartition(":")[2].isdecimal()


def _tpu():
    name = os.environ.get("TPU_NAME")
    try:
        if not name:  # TensorFlow would wait minutes for Google's metadata server
            raise ValueError("TPU_NAME is not set")
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(name)
        if name != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise ValueError(
            f"no TPU found: {_first_line(error)}. Set TPU_NAME to the name of a TPU, or to local "
            "on its own host."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _first_line(error):
    return str(error).strip().partition("\n")[0].rstrip(".")
