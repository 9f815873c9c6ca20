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


@pytest.mark.parametrize(
    ("package", "name", "hint"),
    [
        (keras_transformer, "Alibi", r" It is in keras_transformer\.layers\."),
        (keras_transformer, "Sample", r" It is in keras_transformer\.decoding\."),
        (
            keras_transformer,
            "Classifier",
            r" Did you mean .*\.models\.TextClassifier\?",
        ),
        (keras_transformer, "EncoderBlok", r" Did you mean EncoderBlock\?"),
        (keras_transformer.layers, "Beam", r" It is in keras_transformer\."),
        (keras_transformer, "unheard_of", ""),
        (keras_transformer, "__wrapped__", ""),
    ],
)
def test_a_name_that_is_elsewhere_or_misspelt_gets_a_hint(package, name, hint):
    message = rf"^module '{package.__name__}' has no attribute '{name}'\.{hint}$"
    with pytest.raises(AttributeError, match=message):
        getattr(package, name)


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
