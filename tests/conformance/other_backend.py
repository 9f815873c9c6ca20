"""Script that test_backends.py runs with another KERAS_BACKEND: every row, inference and a step.

Usage: other_backend.py FOLDER, which holds expected.npz with the outputs of every row on
TensorFlow. Writes a line for each row that fails.
"""

import os
import pathlib
import sys

import keras
import numpy as np
from conformance.rows import ROWS, inputs_of, random_model
from support import to_numpy


def check(name, expected):
    """Raises an error unless a row computes the same as on TensorFlow, and can be trained."""
    model = random_model(name)
    inputs = inputs_of(name)
    outputs = to_numpy(model(inputs))
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-4)
    if not model.trainable_weights:
        return
    model.compile(keras.optimizers.SGD(1e-4), "mse")
    before = [to_numpy(weight) for weight in model.trainable_weights]
    loss = model.train_on_batch(inputs, np.zeros(outputs.shape, "float32"))
    assert np.isfinite(loss)
    changed = zip(before, model.trainable_weights, strict=True)
    assert any(np.any(old != to_numpy(new)) for old, new in changed)


if __name__ == "__main__":
    assert keras.backend.backend() == os.environ["KERAS_BACKEND"]
    tables = np.load(pathlib.Path(sys.argv[1]) / "expected.npz")
    failed = 0
    for row in ROWS:
        try:
            check(row, tables[row])
        except Exception as error:
            failed += 1
            sys.stdout.write(f"{row}: {type(error).__name__}: {error}\n")
    sys.stdout.write(f"{len(ROWS) - failed} of {len(ROWS)} rows\n")
    sys.exit(failed > 0)
