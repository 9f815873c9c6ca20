"""A pair of tokenizers: one or two vocabularies, the same special ids, and files."""

import io

import pytest
import sentencepiece
import tensorflow as tf
from support import small_config

from keras_transformer.tasks.run import Run
from keras_transformer.text.piece_table import PieceTable
from keras_transformer.text.tokenizers import Tokenizers
from keras_transformer.text.tokenizers.pair import KINDS
from keras_transformer.tokenizers import SentencePieceTokenizer, Tokenizer

LETTERS, DIGITS = ["abc", "cab", "bac abc"], ["123", "312", "21 13"]


def learned(lines, size=12, **ids):
    model = io.BytesIO()
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, **ids}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 9), model_writer=model, vocab_size=size, model_type="bpe",
        minloglevel=2, **ids,
    )  # fmt: skip
    return SentencePieceTokenizer(model.getvalue())


@pytest.fixture(scope="module")
def pair():
    return learned(LETTERS), learned(DIGITS, 11)


def test_one_tokenizer_serves_both_sides(pair):
    both = Tokenizers.of(pair[0])
    assert both.source is both.target is pair[0] and both.shared
    assert Tokenizers.of(both) == both
    assert not Tokenizers.of(pair).shared
    same = SentencePieceTokenizer(pair[0].model)
    assert Tokenizers.of([pair[0], same]).shared, "two readings of one file"


def test_they_are_restored_from_files(pair):
    for made, names in (
        (Tokenizers.of(pair[0]), ["tokenizer.model"]),
        (Tokenizers.of(pair), ["source.model", "target.model"]),
    ):
        files = made.files()
        assert list(files) == names
        again = Tokenizers.from_files(files.get)
        assert [tokenizer.model for tokenizer in again] == [tokenizer.model for tokenizer in made]
        assert again.shared == made.shared


@pytest.mark.parametrize("left", [[], ["source.model"], ["target.model"]])
def test_missing_files_are_reported(pair, left):
    files = {name: pair[0].model for name in left}
    message = "there is neither tokenizer.model nor source.model and target.model."
    with pytest.raises(ValueError, match=message):
        Tokenizers.from_files(files.get)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("pad_id", {"pad_id": 3, "eos_id": 0}),
        ("bos_id", {"bos_id": 1, "unk_id": 2}),
        ("eos_id", {"eos_id": 1, "unk_id": 3}),
    ],
)
def test_different_special_ids_are_refused(pair, name, ids):
    with pytest.raises(ValueError, match=f"must be a pair with the same `{name}`. Received: "):
        Tokenizers.of((pair[0], learned(DIGITS, 11, **ids)))


@pytest.mark.parametrize("wrong", ["a", None, (1, 2), []])
def test_other_objects_are_refused(pair, wrong):
    with pytest.raises(
        TypeError, match="must be a Tokenizer, or a pair of them for .* Received: tok"
    ):
        Tokenizers.of(wrong)
    with pytest.raises(TypeError, match="Received: tokenizer of type tuple"):
        Tokenizers.of((pair[0],) * 3)


def test_sizes_must_be_those_of_the_model(pair):
    config = small_config(vocab_size=12, target_vocab_size=11, tie="none")
    Tokenizers.of(pair).check_sizes(config)
    Tokenizers.of(pair[0]).check_sizes(small_config(vocab_size=12))
    message = r"Received: 11 and 12 entries, vocab_size=12 and 11\."
    with pytest.raises(ValueError, match=message):
        Tokenizers.of(pair[::-1]).check_sizes(config)
    with pytest.raises(ValueError, match=r"Received: 12 entries, vocab_size=12 and 11\."):
        Tokenizers.of(pair[0]).check_sizes(config)


def test_tokens_come_with_their_positions(pair):
    """Positions are bytes, not characters; the text of a token omits the space before it."""
    texts = ["abc cab", "", " bac", "é abc"]
    ids, begins, ends = pair[0].tokenize_with_offsets(texts)
    assert ids.to_list() == pair[0].tokenize(texts).to_list()
    assert ids.to_list() == [row[:-1] for row in pair[0].encode(texts).to_list()]
    for text, row, first, last in zip(
        texts, ids.to_list(), begins.to_list(), ends.to_list(), strict=True
    ):
        content = text.encode()
        assert first == sorted(first) and last == sorted(last)
        for token, begin, end in zip(row, first, last, strict=True):
            (piece,) = pair[0].pieces([token])
            written = content[begin:end].decode().strip()
            assert written == piece.replace("▁", "") or token == pair[0].unk_id


def test_an_identity_depends_on_the_ids(pair):
    one, two = pair
    assert one.identity() == SentencePieceTokenizer(one.model).identity() != two.identity()
    size = one.vocab_size
    table = PieceTable(tuple(range(size)), size + 1, size, 1, 2, 3)
    assert SentencePieceTokenizer(one.model, table).identity() != one.identity()


class Letters(Tokenizer):
    """A vocabulary of another kind: a token for each ASCII character."""

    title, endings = "Letters", (".letters",)
    vocab_size, pad_id, unk_id, bos_id, eos_id = 128, 0, 1, 2, 3

    def encode(self, strings):
        letters = tf.strings.unicode_decode(strings, "UTF-8")
        ends = tf.fill([tf.size(strings), 1], self.eos_id)
        return tf.concat([letters, tf.RaggedTensor.from_tensor(ends)], axis=1)

    def files(self):
        return {".letters": b"ASCII"}

    @classmethod
    def from_files(cls, files):
        if files[".letters"] != b"ASCII":
            raise ValueError("letters must be ASCII.")
        return cls()


def test_another_kind_of_tokenizer_takes_a_class_and_a_line(pair, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_transformer.text.tokenizers.pair.KINDS", (*KINDS, Letters))
    run = Run(tmp_path)
    assert run.vocabulary() == ()
    for sides, names in (
        (Letters(), ["tokenizer.letters"]),
        ((Letters(), pair[0]), ["source.letters", "target.model"]),
    ):
        run.write_tokenizers(Tokenizers.of(sides))
        assert [file.name for file in run.vocabulary()] == names
        again = run.load_tokenizers()
        assert type(again.source) is Letters and again.source.tokenize(["ab"]).to_list() == [
            [97, 98]
        ]
        for name in names:
            (tmp_path / name).unlink()
    message = "`subword_sampling` must be 0: Letters has no random segmentations. Received: 0.1."
    with pytest.raises(ValueError, match=message):
        Letters().sample(["ab"], 0.1, 1)
    (tmp_path / "tokenizer.letters").write_bytes(b"x")
    with pytest.raises(ValueError, match="tokenizer.letters: letters must be ASCII."):
        run.load_tokenizers()


def test_kinds_name_the_endings_of_their_classes():
    for kind in KINDS:
        assert kind.load().endings == kind.endings and kind.load().__name__ == kind.name
