"""Waiting for what another process does."""

import time


def until(condition):
    """Waits at most ten seconds for a condition; returns whether it holds."""
    end = time.monotonic() + 10
    while not (held := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return held
