"""Free memory that a process returns to the operating system, where the C library is glibc."""

import contextlib
import ctypes
import functools
import gc
import os

MISSING = AttributeError, OSError, TypeError  # errors of `ctypes` with another C library
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # options of mallopt
BLOCK = 2**24  # bytes
TOP = 2**26  # bytes that may stay free at the end of the heap, as glibc keeps them by default


def return_free_memory() -> None:
    """Returns free memory to the operating system."""
    gc.collect()
    with contextlib.suppress(*MISSING):
        ctypes.CDLL(None).malloc_trim(0)


@functools.cache
def return_large_blocks() -> None:
    """Lets the C library return blocks of at least 16 MB as soon as they are freed.

    Once such a block has been freed, glibc would otherwise keep those of up to 32 MB, and the gaps
    that blocks of other sizes leave between them. Has no effect if an environment variable sets
    this threshold.
    """
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if "MALLOC_MMAP_THRESHOLD_" in os.environ or "mmap_threshold" in tunables:
        return
    with contextlib.suppress(*MISSING):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, BLOCK)
        mallopt(M_TRIM_THRESHOLD, TOP)  # the call before makes it constant, 128 kB
