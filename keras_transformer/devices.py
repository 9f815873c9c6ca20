"""Devices that graphs are made for: some computations have another form on a CPU."""

import contextlib
import contextvars
from collections.abc import Generator

_ASSUMED: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("assumed", default=())


@contextlib.contextmanager
def assumed(*kinds: str) -> Generator[None]:
    """Makes graphs in this context as if this machine had certain devices.

    Args:
        *kinds: Kinds of the devices, such as `"TPU"`.
    """
    token = _ASSUMED.set(kinds)
    try:
        yield
    finally:
        _ASSUMED.reset(token)


def has_only_cpus() -> bool:
    """Returns whether there are neither GPUs nor TPUs."""
    import tensorflow as tf  # not needed on other backends

    kinds = _ASSUMED.get() or [device.device_type for device in tf.config.list_logical_devices()]
    return all(kind == "CPU" for kind in kinds)
