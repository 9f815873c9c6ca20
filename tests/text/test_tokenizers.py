"""A pair of tokenizers: one or two vocabularies, the same special ids, files of their own."""

import io

import pytest
import sentencepiece
from support import small_config

from keras_transformer import Tokenizer
from keras_transformer.text.tokenizers import Tokenizers

LETTERS, DIGITS = ["abc", "cab", "bac abc"], ["123", "312", "21 13"]


def learned(lines, size=12, **ids):
    model = io.BytesIO()
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, **ids}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 9), model_writer=model, vocab_size=size, model_type="bpe",
        minloglevel=2, **ids,
    )  # fmt: skip
    return Tokenizer(model.getvalue())


@pytest.fixture(scope="module")
def pair():
    return learned(LETTERS), learned(DIGITS, 11)


def test_one_tokenizer_is_both(pair):
    both = Tokenizers.of(pair[0])
    assert both.source is both.target is pair[0] and both.shared
    assert Tokenizers.of(both) == both
    assert not Tokenizers.of(pair).shared
    same = Tokenizer(pair[0].model)
    assert Tokenizers.of([pair[0], same]).shared, "two readings of one file"


def test_files_bring_them_back(pair):
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
def test_files_that_are_not_there_are_named(pair, left):
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
def test_special_ids_that_differ_are_refused(pair, name, ids):
    with pytest.raises(ValueError, match=f"must be a pair with the same `{name}`. Received: "):
        Tokenizers.of((pair[0], learned(DIGITS, 11, **ids)))


@pytest.mark.parametrize("wrong", ["a", None, (1, 2), []])
def test_something_else_is_refused(pair, wrong):
    with pytest.raises(TypeError, match="must be a Tokenizer, or a pair of them, .* Received: tok"):
        Tokenizers.of(wrong)
    with pytest.raises(TypeError, match="Received: tokenizer of type tuple"):
        Tokenizers.of((pair[0],) * 3)


def test_sizes_are_those_of_the_model(pair):
    config = small_config(vocab_size=12, target_vocab_size=11, tie="none")
    Tokenizers.of(pair).check_sizes(config)
    Tokenizers.of(pair[0]).check_sizes(small_config(vocab_size=12))
    message = r"Received: 11 and 12 entries, vocab_size=12 and 11\."
    with pytest.raises(ValueError, match=message):
        Tokenizers.of(pair[::-1]).check_sizes(config)
    with pytest.raises(ValueError, match=r"Received: 12 entries, vocab_size=12 and 11\."):
        Tokenizers.of(pair[0]).check_sizes(config)
