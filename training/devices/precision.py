"""The dtype policy with which a machine trains fastest."""

import os
import pathlib

import tensorflow as tf

CPUINFO = pathlib.Path("/proc/cpuinfo")
NATIVE_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}  # x86 twice, ARM


def dtype_policy(precision, cpuinfo=CPUINFO):
    """Returns the Keras dtype policy that a `training.precision` stands for.

    `"auto"` is `"mixed_bfloat16"` where the hardware multiplies bfloat16 natively and `"float32"`
    elsewhere: a CPU without those instructions emulates them, many times slower.

    Args:
        precision: `"auto"` or the name of a policy.
        cpuinfo: File in which the system lists what its processor can do.
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
    """Whether the environment keeps oneDNN from bfloat16 instructions: TensorFlow would abort."""
    most = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    return bool(most) and not any(name in most for name in ("DEFAULT", "BF16", "AMX"))
