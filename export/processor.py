"""The processor that an export was checked on: metrics of quantised models are those of one."""

import os
import pathlib
import platform
import re

INSTRUCTIONS = (
    "avx2",
    "avx512f",
    "avx_vnni",
    "avx512_vnni",
    "avx512_bf16",
    "amx_int8",
    "asimddp",
    "i8mm",
)
FORCED = ("CT2_FORCE_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "XLA_FLAGS")


def describe_processor(path="/proc/cpuinfo"):
    """Returns a dictionary of the processor's name and of what decides how it multiplies.

    Args:
        path: Where Linux describes it.

    Returns:
        `name`; `instructions`, a list of those of `INSTRUCTIONS` that it has, empty where the
        system does not show it; and `limited_by`, a dictionary of the environment variables that
        keep libraries from using all of them.
    """
    try:
        text = pathlib.Path(path).read_text("utf-8", "replace")
    except OSError:  # macOS, Windows
        text = ""
    return {
        "name": _field(text, "model name") or platform.processor() or platform.machine(),
        "instructions": _instructions(text),
        "limited_by": {name: os.environ[name] for name in FORCED if name in os.environ},
    }


def _instructions(text):
    flags = (_field(text, "flags") or _field(text, "Features")).split()
    return [name for name in INSTRUCTIONS if name in flags]


def _field(text, name):
    match = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else ""
