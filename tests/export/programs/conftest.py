"""The pages of `examples/browser`, served to a browser."""

import pytest
from browsers import copy_page, served

from keras_transformer.export import export_onnx


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A folder with the page as it would be served, but without a model."""
    return copy_page(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def browser(site, tmp_path_factory):
    with served(site, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="session")
def onnx_file(translator, sentences, tmp_path_factory):
    """The .onnx file of the small model, with its greedy search."""
    pytest.importorskip("onnxruntime")
    path = tmp_path_factory.mktemp("onnx") / "demo.onnx"
    export_onnx(translator, path, sentences)
    return path
