"""Token ids beyond the vocabulary in arrays given to `fit`, `evaluate` and `predict`."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from marks import slow_except

from keras_transformer import LanguageModel, Transformer, TransformerConfig
from keras_transformer.models import ClassifierConfig, LanguageModelConfig, TextClassifier

SIZES = {"num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2, "vocab_size": 8}
GOOD, BAD = np.full((2, 3), 7), np.array([[4, 7, 3], [4, 8, 3]])
METHODS = ("fit", "evaluate", "predict")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("convert", [np.asarray, tf.constant])
def test_one_line_names_the_id(method, convert):
    model = LanguageModel(LanguageModelConfig(**SIZES))
    message = "`tokens` must be token ids from 0 to 7: .* Received by 'language_model': 8"
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(convert(BAD))


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("method", METHODS)
def test_both_sides_of_a_transformer_are_checked(method, side):
    model = Transformer(TransformerConfig(**SIZES))
    inputs = {"source": GOOD, "target": GOOD, side: BAD}
    with pytest.raises(ValueError, match=f"`{side}` must be token ids from 0 to 7"):
        getattr(model, method)(inputs)


def test_the_data_of_a_validation_are_checked():
    model = TextClassifier(ClassifierConfig(**SIZES, labels=("a", "b")))
    with pytest.raises(ValueError, match="must be token ids from 0 to 7"):
        model.fit(GOOD, np.zeros(2), validation_data=(BAD, np.zeros(2)))


@pytest.mark.parametrize("kind", ["data set", "list", "sequence"])
def test_the_data_of_a_validation_may_be_a_data_set(kind):
    model = LanguageModel(LanguageModelConfig(**SIZES))
    model.compile(loss="sparse_categorical_crossentropy")
    data = {
        "data set": lambda: tf.data.Dataset.from_tensors((GOOD, GOOD)),
        "list": lambda: [GOOD, GOOD],
        "sequence": Batches,
    }[kind]()
    history = model.fit(GOOD, GOOD, validation_data=data, verbose=0)
    assert len(history.history["val_loss"]) == 1


class Batches(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return GOOD, GOOD


def test_known_ids_and_data_sets_reach_keras():
    model = LanguageModel(LanguageModelConfig(**SIZES))
    assert model.predict(GOOD, verbose=0).shape == (2, 3, 8)
    with pytest.raises(ValueError, match="compile"):
        model.fit(tf.data.Dataset.from_tensors((BAD, BAD)))
    with pytest.raises(ValueError, match="compile"):
        model.evaluate(GOOD, GOOD)


@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
@pytest.mark.parametrize("method", slow_except(METHODS, METHODS[0]))
def test_an_unknown_id_of_a_data_set_is_named(method):
    """On processors, where TensorFlow reports it."""
    model = LanguageModel(LanguageModelConfig(**SIZES))
    model.compile(loss="sparse_categorical_crossentropy")
    data = tf.data.Dataset.from_tensors((BAD, GOOD))
    with pytest.raises(ValueError, match="'language_model': ids must be from 0 to 7.* 8. Are"):
        getattr(model, method)(data, verbose=0)


def test_another_look_up_keeps_its_error():
    """Such as that of weights of classes in a loss."""
    model = TextClassifier(ClassifierConfig(**SIZES, labels=("a", "b")))
    model.compile(loss=lambda y, _: tf.gather([1.0, 2.0], tf.cast(y, tf.int32)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is not in \[0, 2\)"):
        model.evaluate(GOOD, np.full([2, 1], 2), verbose=0)
