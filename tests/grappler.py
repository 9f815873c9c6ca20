"""TensorFlow without Grappler, for every process that must compute what the tests' own does.

Grappler rewrites every graph before its first run, for a second run that few tests make, and with
it sums have another order. Sessions are not concerned, so that a SavedModel is tested with it;
`make test-avx2` tests all with it.
"""

import os

import tensorflow as tf

if not os.environ.get("TEST_WITH_GRAPPLER"):
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
