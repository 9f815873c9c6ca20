"""Names of classes in `.keras` files, which do not depend on the modules that define them."""

import json
import re
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_transformer
from keras_transformer.models import EmbedderConfig, TextEmbedder

PACKAGE = Path(keras_transformer.__file__).parent
DECORATOR = re.compile(r"(?m)^@keras\.saving\.register_keras_serializable\(([^)]*)\)")


def test_classes_are_registered_under_the_name_of_the_package():
    used = {
        arguments
        for path in PACKAGE.rglob("*.py")
        for arguments in DECORATOR.findall(path.read_text("utf-8"))
    }
    assert used == {'package="keras_transformer"'}


@pytest.mark.slow
def test_a_file_is_read_whatever_modules_it_names(tmp_path):
    model = TextEmbedder(
        EmbedderConfig(vocab_size=19, num_layers=1, d_model=12, num_heads=2, d_ff=8)
    )
    tokens = np.array([[5, 6, 3]], "int32")
    model.save(tmp_path / "model.keras")
    moved = tmp_path / "moved.keras"
    with zipfile.ZipFile(tmp_path / "model.keras") as old, zipfile.ZipFile(moved, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "config.json":
                assert json.loads(content)["registered_name"] == "keras_transformer>TextEmbedder"
                content, found = re.subn(
                    rb'"keras_transformer\.[\w.]+"', b'"keras_transformer.elsewhere"', content
                )
                assert found
            new.writestr(name, content)
    loaded = keras.saving.load_model(moved)
    np.testing.assert_array_equal(loaded(tokens), model(tokens))
