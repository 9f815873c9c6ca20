"""Free memory is returned to the operating system, where the C library is glibc."""

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
# Allocates blocks of 20 MB, of which the last one stays, and prints the megabytes that are kept of
# the others. A block that was freed before lets glibc take blocks of this size from its heap.
PROGRAM = """
import ctypes, pathlib, sys
from keras_transformer import free_memory
libc, size = ctypes.CDLL(None), 20 * 2**20
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def block():
    address = libc.malloc(size)
    ctypes.memset(address, 1, size)
    return address
def memory():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
libc.free(block())
if "large blocks" in sys.argv:
    free_memory.return_large_blocks()
before, blocks = memory(), [block() for _ in range(4)]
for address in blocks[:-1]:
    libc.free(address)
if "free memory" in sys.argv:
    free_memory.return_free_memory()
print((memory() - before - size) / 1e6)
"""


def kept(*what, **environment):
    """Returns the megabytes of freed blocks that a process keeps which returns what is named."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *what],
        env={**os.environ, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def test_large_blocks_are_returned_when_they_are_freed():
    assert kept() > 60, "glibc keeps them by default"
    assert kept("large blocks") < 2


def test_a_threshold_of_the_environment_is_kept():
    assert kept("large blocks", MALLOC_MMAP_THRESHOLD_=str(2**25)) > 60


def test_free_memory_is_returned():
    assert kept("free memory") < 2
