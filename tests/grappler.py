"""Turns Grappler off in every process that must compute exactly what the tests' process does.

Grappler rewrites every graph before its first run, which pays off in later runs that few tests
make, and it changes the order of sums. Sessions are not affected, so SavedModels are tested with
Grappler; `make test-avx2` runs all tests with it.
"""

import contextlib
import os

import tensorflow as tf

if not os.environ.get("TEST_WITH_GRAPPLER"):
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@contextlib.contextmanager
def on():
    """Turns it on in a block, as in a process without this module: that of an exported model."""
    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    try:
        yield
    finally:
        off = before.get("disable_meta_optimizer", False)
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": off})
