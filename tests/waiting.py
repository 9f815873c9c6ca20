"""Waiting for what another process does."""

import time


def until(condition):
    """Waits at most forty seconds for a condition; returns whether it holds."""
    end = time.monotonic() + 40  # enough beside other work; processes of tests sleep for a minute
    while not (held := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return held
