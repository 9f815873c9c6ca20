"""Dtype policy with which a machine trains fastest."""

import os
import pathlib

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
