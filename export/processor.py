"""Description of the processor on which an export was checked.

The results of a quantised model depend on the processor.
"""

import os
import pathlib
import platform
import re
from typing import Any

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


def describe_processor(path="/proc/cpuinfo") -> dict[str, Any]:
    """Returns the processor's name and the properties that determine how it multiplies.

    Args:
        path: File in which Linux describes the processor.

    Returns:
        Dictionary of `name`; `instructions`, the list of those of `INSTRUCTIONS` that the processor
        has, empty if the system does not list them; and `limited_by`, a dictionary of the
        environment variables that keep libraries from using all instructions.
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
