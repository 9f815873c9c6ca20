"""Public names: each has one namespace, a docstring and a line in a stub."""

import importlib
import inspect

import pytest

import keras_transformer

NAMESPACES = ("decoding", "export", "layers", "models", "pipelines", "tokenizers", "training")
FIRST = (  # what a first program needs
    *("Beam", "Decoder", "DecoderBlock", "Encoder", "EncoderBlock", "FeedForward", "Greedy"),
    *("LanguageModel", "MultiHeadSelfAttention", "PositionalEmbedding", "Transformer"),
    *("TransformerConfig", "Translator", "from_pretrained", "open"),
)
OPENERS = {"from_pretrained", "open"}  # of the package itself
CONSTANTS = {"PRESETS"}


def space(name):
    return importlib.import_module(f"keras_transformer.{name}")


def test_the_package_has_the_names_of_a_first_program_and_namespaces():
    listed = {*FIRST, *NAMESPACES}
    assert {*keras_transformer.__all__} == listed - {"open"}  # which would replace Python's own
    assert listed <= {*dir(keras_transformer)}
    for name in NAMESPACES:
        assert getattr(keras_transformer, name) is space(name)
    with pytest.raises(AttributeError, match="module 'keras_transformer' has no attribute 'Alibi'"):
        keras_transformer.Alibi  # noqa: B018


def test_every_name_has_one_namespace():
    names = [name for package in NAMESPACES for name in space(package).__all__]
    assert len(names) == len({*names}) and {*FIRST} - {*names} == OPENERS
    for package in NAMESPACES:
        for name in {*FIRST} & {*space(package).__all__}:
            assert getattr(space(package), name) is getattr(keras_transformer, name)


@pytest.mark.parametrize("package", NAMESPACES)
def test_every_name_of_a_stub_is_there_and_documented(package):
    names = space(package).__all__
    assert len(names) >= 5 and {*names} <= {*dir(space(package))}
    for name in {*names} - CONSTANTS:
        value = getattr(space(package), name)
        assert value.__name__ == name and callable(value)
        documented = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        assert documented, f"{package}.{name} has no docstring"


@pytest.mark.parametrize("package", NAMESPACES)
def test_a_namespace_has_no_other_names(package):
    with pytest.raises(AttributeError, match=f"'keras_transformer.{package}' has no attribute 'x'"):
        space(package).x  # noqa: B018
