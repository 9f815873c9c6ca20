"""Free memory that a process returns to the operating system."""

import contextlib
import ctypes
import gc


def return_free_memory() -> None:
    """Returns free memory to the operating system, where the C library can (glibc)."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
