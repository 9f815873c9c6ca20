"""Tables that map SentencePiece's ids to those of a model."""

import types

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.vocabulary import learn_vocabulary

TEXTS = ["a dog runs", "two dogs run fast", "", "the cat sits", "a cat and a dog"]


@pytest.fixture(scope="module")
def model():
    settings = types.SimpleNamespace(
        size=24, model_type="unigram", split_digits=True, character_coverage=1.0
    )
    return learn_vocabulary(TEXTS * 5, settings)


def table_of(model, missing=(), **changes):
    """Returns ids in reverse order, with room for three more tokens, and without some."""
    plain = SentencePieceTokenizer(model)
    size = plain.vocab_size + 3
    ids = [size - 1 - place for place in range(plain.vocab_size)]
    fields = {
        "ids": [-1 if place in missing else number for place, number in enumerate(ids)],
        "size": size,
        "pad_id": 0,
        "unk_id": ids[plain.unk_id],
        "bos_id": 0,
        "eos_id": ids[plain.eos_id],
        "names": {0: "<pad>", 1: ">>de<<", 2: ">>fr<<"},
    }
    return PieceTable(**{**fields, **changes})


def test_ids_are_those_of_the_table(model):
    plain, tokenizer = SentencePieceTokenizer(model), SentencePieceTokenizer(model, table_of(model))
    expected = [
        [tokenizer.table.ids[token] for token in row] for row in plain.encode(TEXTS).to_list()
    ]
    assert tokenizer.encode(TEXTS).to_list() == expected
    assert tokenizer.vocab_size == plain.vocab_size + 3
    assert (tokenizer.pad_id, tokenizer.bos_id) == (0, 0) and tokenizer.eos_id == expected[0][-1]
    assert tokenizer.decode(tokenizer.encode(TEXTS)).numpy().tolist() == [
        text.encode() for text in TEXTS
    ]
    rows = tokenizer.sample(TEXTS, 0.5, 3)
    assert rows == [
        [tokenizer.table.ids[token] for token in row] for row in plain.sample(TEXTS, 0.5, 3)
    ]
    assert tokenizer.pieces(expected[0]) == plain.pieces(plain.encode(TEXTS[:1])[0].numpy())


def test_tokens_known_only_to_the_model_have_names_and_are_never_encoded(model):
    tokenizer = SentencePieceTokenizer(model, table_of(model))
    assert tokenizer.pieces([1, 0, tokenizer.eos_id]) == [">>de<<", "<pad>", "</s>"]
    ids = tokenizer.encode(["a dog"]).to_list()[0]
    assert tokenizer.decode(tf.constant([[1, ids[0], 2, *ids[1:]]])).numpy() == [b"a dog"]


def test_tokens_that_the_model_lacks_are_unknown(model):
    plain = SentencePieceTokenizer(model)
    lost = plain.encode(["a dog"]).to_list()[0][0]
    tokenizer = SentencePieceTokenizer(model, table_of(model, missing=[lost]))
    ids = tokenizer.encode(["a dog"]).to_list()[0]
    assert ids[0] == tokenizer.unk_id and tokenizer.unk_id not in ids[1:]
    assert "\u2047" in tokenizer.decode(tf.constant([ids])).numpy()[0].decode()


def test_tables_are_saved_with_the_models(model):
    both = Tokenizers.of(SentencePieceTokenizer(model, table_of(model)))
    files = both.files()
    assert set(files) == {"tokenizer.model", "tokenizer.ids.json"}
    again = Tokenizers.from_files(files.get)
    assert again.shared and again.source.table == both.source.table
    assert again.source.encode(TEXTS).to_list() == both.source.encode(TEXTS).to_list()
    with pytest.raises(ValueError, match="^tokenizer.model: the table of pieces is damaged"):
        Tokenizers.from_files({**files, "tokenizer.ids.json": b"{"}.get)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 9}, "`ids` must be integers from -1 to below 9"),
        ({"pad_id": 99}, "`pad_id` must be from 0 to below 27. Received: pad_id=99"),
        ({"ids": [7, 7]}, "must not repeat an id. Received twice: \\(7\\)"),
        ({"ids": [1, 2]}, "an id for each of the 24 pieces. Received: 2 ids"),
        ({"eos_id": 1}, "must give `eos_id` to the piece that ends a text"),
    ],
)
def test_a_table_of_other_tokens_is_refused(model, changes, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer(model, table_of(model, **changes))


def test_a_graph_contains_the_table(model, tmp_path):
    tokenizer = SentencePieceTokenizer(model, table_of(model))
    module = tf.Module()
    module.tokenizer = tokenizer
    module.encode = tf.function(
        lambda texts: tokenizer.encode(texts).to_tensor(tokenizer.pad_id),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, tmp_path)
    ids = tf.saved_model.load(tmp_path).encode(tf.constant(TEXTS))
    np.testing.assert_array_equal(ids, tokenizer.encode(TEXTS).to_tensor(0))


def test_no_token_of_a_text_is_padding(model):
    piece = SentencePieceTokenizer(model).encode(["dog"]).to_list()[0][0]
    table = table_of(model)
    with pytest.raises(ValueError, match="`table` must not give `pad_id` to a piece of text"):
        SentencePieceTokenizer(model, table_of(model, pad_id=table.ids[piece]))
