"""Keras's sharded files of weights, which Keras before 3.14 loaded wrongly."""

import numpy as np
import pytest
from support import randomise, sentences, small_config

from keras_transformer import Transformer


@pytest.mark.parametrize("size", [4e-6], ids=["4 kB"])
def test_weights_in_several_files_are_loaded_as_they_were(size, tmp_path):
    model = randomise(Transformer(small_config(num_layers=2)))
    model.save_weights(tmp_path / "model.weights.json", max_shard_size=size)
    assert len([*tmp_path.glob("*.h5")]) > 2
    loaded = randomise(Transformer(small_config(num_layers=2)), seed=1)
    loaded.load_weights(tmp_path / "model.weights.json")
    for one, other in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=other.path)
    inputs = {"source": sentences([7, 5]), "target": sentences([6, 4], first=2)}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
