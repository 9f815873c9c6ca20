"""The tokenizer in the graph gives the `sentencepiece` package's ids, wherever it runs."""

import io
import random
import unicodedata

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_transformer import SentencePieceTokenizer

WORDS = [
    "größer", "straße", "ein", "zwei", "drei", "m²", "½", "…", "naïve", "Ελλάδα", "Москва", "東京",
    "“quoted”", "3,5",
]  # fmt: skip


def sample_text():
    """Sentences with words, digits and characters of several scripts."""
    rng = random.Random(3)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(300)]


def train(text, size=120, **options):
    model = io.BytesIO()
    options = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, **options}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_writer=model, vocab_size=size, model_type="bpe",
        character_coverage=1.0, normalization_rule_name="identity", minloglevel=2, **options,
    )  # fmt: skip
    return model.getvalue()


@pytest.fixture(scope="module")
def model():
    return train(sample_text())


@pytest.fixture(scope="module")
def tokenizer(model):
    return SentencePieceTokenizer(model)


def test_the_model_itself_gives_size_and_special_ids(tokenizer, model):
    assert (tokenizer.pad_id, tokenizer.unk_id) == (0, 1)
    assert (tokenizer.bos_id, tokenizer.eos_id) == (2, 3)
    assert tokenizer.vocab_size == 120
    assert tokenizer.model == model
    other = SentencePieceTokenizer(
        train(sample_text(), size=110, pad_id=3, unk_id=0, bos_id=1, eos_id=2)
    )
    assert (other.pad_id, other.unk_id, other.bos_id, other.eos_id) == (3, 0, 1, 2)
    assert other.vocab_size == 110
    assert other.encode([""]).to_list() == [[2]]


def test_ids_and_strings_equal_those_of_the_sentencepiece_package(tokenizer, model):
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    text = [*sample_text(), "", " ", "unseen: жđ 語", "  two  spaces ", "a\u00a0b"]
    ids = tokenizer.encode(text)
    assert ids.dtype == tf.int32
    assert ids.to_list() == [[*reference.encode(line), 3] for line in text]
    decoded = [line.decode() for line in tokenizer.decode(ids).numpy()]
    assert decoded == [reference.decode(reference.encode(line)) for line in text]


def test_real_sentences_come_back_as_they_were(data_dir):
    """Multi30K when it is there, otherwise phrases that Babel makes."""
    from types import SimpleNamespace

    from keras_transformer.training.vocabulary import learn_vocabulary

    folder = data_dir.root / "multi30k"
    if folder.exists():
        text = [
            line.rstrip("\n")
            for name in ("val.en", "val.de", "test_2016_flickr.en", "test_2016_flickr.de")
            for line in (folder / name).open(encoding="utf-8")
        ]
    else:
        from babel import Locale

        from keras_transformer.training.data.sources.phrases import PhraseBook

        pairs = PhraseBook(Locale("en"), Locale("de")).phrases(1500, seed=1)
        text = [*pairs, *pairs.values()]
    settings = SimpleNamespace(
        size=1200, model_type="bpe", split_digits=True, character_coverage=1.0
    )
    model = learn_vocabulary(text, settings)
    tokenizer = SentencePieceTokenizer(model)
    reference = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = tokenizer.encode(text)
    assert ids.to_list() == [[*reference.encode(line), 3] for line in text]
    decoded = [line.decode() for line in tokenizer.decode(ids).numpy()]
    assert decoded == [" ".join(unicodedata.normalize("NFC", line).split()) for line in text]


def test_a_new_random_seed_takes_nothing_away(tokenizer):
    """TensorFlow then drops the operations that it ran eagerly, and what belongs to them."""
    encode = tf.function(lambda strings: tokenizer.encode(strings).to_tensor())
    texts = tf.constant(["ein m²", "zwei"])
    before = encode(texts), tokenizer.encode(texts).to_tensor()
    keras.utils.set_random_seed(1)
    for rows in (*before, encode(texts), tokenizer.encode(texts).to_tensor()):
        np.testing.assert_array_equal(rows, before[0])
    assert tokenizer.decode(before[0]).numpy().tolist() == ["ein m²".encode(), b"zwei"]


def test_pieces_have_names(tokenizer):
    names = tokenizer.pieces(tokenizer.encode(["ein m²"])[0])
    assert "".join(names) == "▁ein▁m²</s>"
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_no_words_are_only_the_end(tokenizer):
    assert tokenizer.encode(["", "   "]).to_list() == [[3], [3]]
    assert tokenizer.decode([[3], [0]]).numpy().tolist() == [b"", b""]
    assert tokenizer.encode(tf.zeros([0], tf.string)).to_list() == []
    assert tokenizer.decode(tf.zeros([0, 5], tf.int32)).numpy().tolist() == []
    assert tokenizer.decode(tf.zeros([2, 0], tf.int32)).numpy().tolist() == [b"", b""]


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_decoding_stops_at_the_first_end_and_skips_padding_and_begin(tokenizer, dtype):
    ein, zwei = (tokenizer.encode([word])[0, :-1].numpy().tolist() for word in ("ein", "zwei"))
    rows = [
        [2, *ein, 3, *zwei, 3],  # what follows the first end is no part of the sentence
        [*ein, 0, *zwei, 3],  # padding in the middle
        [*ein, 2, *zwei],  # no end at all
        [0, 0, 2, *ein],  # padded on the left
        [3, *ein],
    ]
    width = max(map(len, rows))
    dense = tf.constant([row + [0] * (width - len(row)) for row in rows], dtype)
    expected = [b"ein", b"ein zwei", b"ein zwei", b"ein", b""]
    assert tokenizer.decode(dense).numpy().tolist() == expected
    assert tokenizer.decode(tf.ragged.constant(rows, dtype)).numpy().tolist() == expected


def test_bytes_that_are_not_utf8_do_not_stop_the_others(tokenizer):
    ids = tokenizer.encode([b"ein \xff\xfe zwei", b"drei"])
    assert tokenizer.unk_id in ids[0].numpy()
    assert tokenizer.decode(ids).numpy()[1] == b"drei"


def test_one_tokenizer_serves_a_dataset_a_function_and_eager_code(tokenizer):
    text = sample_text()
    eager = tokenizer.encode(text).to_list()
    dataset = tf.data.Dataset.from_tensor_slices(text).batch(7).map(tokenizer.encode)
    assert [row for batch in dataset for row in batch.to_list()] == eager
    strings = tf.TensorSpec([None], tf.string)
    graph = tf.function(lambda text: tokenizer.encode(text), input_signature=[strings])
    assert graph(text).to_list() == eager


def test_a_dataset_keeps_the_tokenizer_alive(model):
    def batches():
        tokenizer = SentencePieceTokenizer(model)
        return tf.data.Dataset.from_tensor_slices(["ein", "zwei"]).batch(2).map(tokenizer.encode)

    assert next(iter(batches())).row_lengths().numpy().tolist() == [2, 2]


class Echo(tf.Module):
    """Encodes and decodes: the tokenizer is an attribute, so its vocabulary is saved with it."""

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, strings):
        ids = self.tokenizer.encode(strings)
        return {"ids": ids.to_tensor(), "strings": self.tokenizer.decode(ids)}


def test_a_saved_model_contains_the_tokenizer(tokenizer, tmp_path):
    text = sample_text()[:5]
    echo = Echo(tokenizer)
    expected = echo(text)
    tf.saved_model.save(echo, str(tmp_path), signatures=echo.__call__)
    again = tf.saved_model.load(str(tmp_path))(text)
    assert again["ids"].numpy().tolist() == expected["ids"].numpy().tolist()
    assert again["strings"].numpy().tolist() == [line.encode() for line in text]

    # As TensorFlow Serving loads it: tf.saved_model.load would forgive an untracked vocabulary.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path))
        signature = meta.signature_def["serving_default"]
        strings = session.run(
            signature.outputs["strings"].name, {signature.inputs["strings"].name: text}
        )
    assert strings.tolist() == [line.encode() for line in text]


def test_the_graph_holds_only_the_three_operations_that_serving_knows(tokenizer):
    echo = Echo(tokenizer)
    graph = echo.__call__.get_concrete_function().graph
    kinds = {operation.type for operation in graph.get_operations()}
    kinds |= {
        node.op for function in graph.as_graph_def().library.function for node in function.node_def
    }
    ours = {kind for kind in kinds if "piece" in kind.lower()}
    assert ours <= {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
    assert not {kind for kind in kinds if kind.startswith(("Regex", "Unicode", "Utf8", "WhiteSp"))}


@pytest.mark.parametrize(
    "damage",
    [
        lambda model: b"",
        lambda model: b"not a model",
        lambda model: model[: len(model) // 2],
        lambda model: model[:-3],
        lambda model: b"\n" + model,
    ],
)
def test_a_damaged_model_is_one_clear_error(model, damage, tmp_path):
    with pytest.raises(ValueError, match="`model` must be the bytes of a SentencePiece model.*Rec"):
        SentencePieceTokenizer(damage(model))
    path = tmp_path / "tokenizer.model"
    path.write_bytes(damage(model))
    with pytest.raises(ValueError, match=r"tokenizer\.model: `model` must be the bytes") as error:
        SentencePieceTokenizer.load(path)
    assert "\n" not in str(error.value)


def test_a_model_without_a_special_piece_is_refused():
    text = sample_text()
    with pytest.raises(ValueError, match="must define the special pieces.*120 pieces without pad"):
        SentencePieceTokenizer(train(text, pad_id=-1, unk_id=0, bos_id=1, eos_id=2))
    with pytest.raises(ValueError, match="without bos and eos"):
        SentencePieceTokenizer(train(text, bos_id=-1, eos_id=-1))


def test_load_reads_what_the_model_attribute_holds(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(tokenizer.model)
    ids = tokenizer.encode(WORDS).to_list()
    for name in (path, str(path)):
        assert SentencePieceTokenizer.load(name).encode(WORDS).to_list() == ids
    with pytest.raises(FileNotFoundError, match="`path` must be .*none.model, which does not ex"):
        SentencePieceTokenizer.load(tmp_path / "none.model")
    with pytest.raises(FileNotFoundError, match="which is not a file"):
        SentencePieceTokenizer.load(tmp_path)


def test_a_path_instead_of_bytes_is_refused():
    with pytest.raises(
        TypeError, match="must be the bytes.*SentencePieceTokenizer.load.*of type str"
    ):
        SentencePieceTokenizer("tokenizer.model")
