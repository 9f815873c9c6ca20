"""Masks over whole words: all tokens of a word together, and as many tokens as without words."""

import io

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from marks import slow
from pipelines import LINES, SIZES, tokenizer

from keras_transformer.models import MaskedLanguageModelConfig
from keras_transformer.tasks.masked_language_modelling.masking import (
    hide_tokens,
    require_words,
    seeds_from,
)
from keras_transformer.text.byte_pairs import CHARACTERS
from keras_transformer.text.tokenizers import (
    ByteBPETokenizer,
    SentencePieceTokenizer,
    WordPieceTokenizer,
)
from keras_transformer.text.tokenizers.tokenizer import Tokenizer

MARKS = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "eos": "[SEP]", "mask": "[MASK]"}
LETTERS = "abcd"
MERGES = [("a", "b"), ("ab", "c"), ("\u0120", "a"), ("\u0120", "d"), ("\u0120d", "d")]


def word_piece(parts=("##a", "##b", "##c", "##d", "##cd")):
    return WordPieceTokenizer([*MARKS.values(), *LETTERS, "ab", "ac", *parts], special=MARKS)


def byte_bpe():
    pieces = [*MARKS.values(), *CHARACTERS, *("".join(pair) for pair in MERGES)]
    return ByteBPETokenizer(pieces, MERGES, MARKS)


def sentence_piece(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["abc dd abd ca ab"] * 20), model_writer=model, vocab_size=16,
        model_type="bpe", pad_id=0, unk_id=1, bos_id=2, eos_id=3, control_symbols=["<mask>"],
        minloglevel=2, hard_vocab_limit=False, **options,
    )  # fmt: skip
    return SentencePieceTokenizer(model.getvalue())


KINDS = {"WordPiece": word_piece, "byte-level BPE": byte_bpe, "SentencePiece": sentence_piece}


def texts(count, longest=9, seed=0):
    """Returns texts of up to 12 words of these letters, each a list of words."""
    rng = np.random.default_rng(seed)
    return [
        ["".join(rng.choice([*LETTERS], rng.integers(1, longest))) for _ in range(number)]
        for number in rng.integers(1, 13, count)
    ]


def encoded(known, words):
    """Returns the tokens of texts, and the numbers of tokens of each word of each text."""
    tokens = known.encode([" ".join(row) for row in words]).to_tensor(known.pad_id)
    every = [word for row in words for word in row]
    first = [number == 0 for row in words for number in range(len(row))]
    counts = iter(known.tokenize_words(every, first).row_lengths().numpy().tolist())
    return tokens, [[next(counts) for _ in row] for row in words]


def hidden(tokens, known, *seeds, whole=True, **options):
    size = max(known.vocab_size, 8)
    config = MaskedLanguageModelConfig(
        vocab_size=size, **SIZES, whole_word_masking=whole, **options
    )
    return [x.numpy() for x in hide_tokens(tokens, known, config, *seeds)]


def seeds(count, seed=1):
    return seeds_from(tf.constant(np.random.default_rng(seed).random((count, 2)), tf.float32))


@pytest.mark.parametrize(
    ("rate", "kind"), [slow(0.5, "WordPiece"), slow(0.5, "byte-level BPE"), (0.5, "SentencePiece")]
)
def test_words_are_hidden_as_a_whole_and_as_many_tokens_as_without_words(kind, rate):
    known, words = KINDS[kind](), texts(2000)
    tokens, sizes = encoded(known, words)
    changed, labels = hidden(tokens, known, seeds(2000), masking_rate=rate)
    assert max(max(row) for row in sizes) > 3
    surplus, begin = [], int(known.starts_with_bos)
    for row, now, label, counts in zip(tokens.numpy(), changed, labels, sizes, strict=True):
        chosen = label != known.pad_id
        np.testing.assert_array_equal(label[chosen], row[chosen])
        np.testing.assert_array_equal(now[~chosen], row[~chosen])
        ends = begin + np.cumsum([0, *counts])
        assert not chosen[:begin].any() and not chosen[ends[-1] :].any()  # marks and padding
        parts = [chosen[a:b] for a, b in zip(ends, ends[1:], strict=False)]
        assert all(part.all() or not part.any() for part in parts)
        expected = max(1, np.floor(rate * sum(counts) + 0.5))
        assert abs(chosen.sum() - expected) < max(counts)
        surplus.append(chosen.sum() - expected)
    assert abs(np.mean(surplus)) < 4 * np.std(surplus) / np.sqrt(2000)


def test_words_of_equal_length_are_equally_likely():
    known, words = word_piece(), ["dab", "dba", "cab", "cba", "bba", "dda", "bda"]
    tokens, sizes = encoded(known, [words])
    assert sizes == [[3] * 7]
    _, labels = hidden(np.repeat(tokens, 4000, axis=0), known, seeds(4000), masking_rate=0.3)
    chosen = (labels != known.pad_id)[:, 1:-1].reshape(4000, 7, 3)
    assert (chosen.sum(axis=(1, 2)) == 6).all()  # of 6.3, two words
    np.testing.assert_allclose(chosen.mean(axis=(0, 2)), 2 / 7, rtol=0, atol=0.03)


def test_a_vocabulary_of_words_hides_the_same_tokens_with_and_without():
    known = word_piece(parts=())
    tokens = tf.constant([[2, *np.random.default_rng(n).integers(5, 11, 20), 3] for n in range(50)])
    for numbers in ((), (seeds(50),)):
        for one, other in zip(
            *(hidden(tokens, known, *numbers, whole=whole) for whole in (True, False)), strict=True
        ):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("given", [False, True], ids=["of the tokens", "given"])
def test_padding_and_neighbours_change_nothing(given):
    known, words = word_piece(), texts(20)
    tokens, numbers = encoded(known, words)[0].numpy(), seeds(20)
    whole = hidden(tokens, known, *([numbers] if given else []))
    for number in (0, 7, 19):
        length = int((tokens[number] != known.pad_id).sum())
        own = [numbers[number : number + 1]] if given else []
        for width in (length, length + 5):
            row = np.full((1, width), known.pad_id, "int32")
            row[0, :length] = tokens[number, :length]
            for one, other in zip(hidden(row, known, *own), whole, strict=True):
                np.testing.assert_array_equal(one[0, :length], other[number, :length])
                assert not one[0, length:].any()


def test_an_unknown_character_stays_and_does_not_divide_its_word():
    known = sentence_piece()
    tokens = np.repeat(known.encode(["ab\u6f22cd ab"]).to_tensor().numpy(), 500, axis=0)
    place = tokens[0].tolist().index(known.unk_id)
    _, labels = hidden(tokens, known, seeds(500), masking_rate=0.5)
    chosen = labels != known.pad_id
    assert not chosen[:, place].any() and chosen[:, place - 1].any()
    np.testing.assert_array_equal(chosen[:, place - 1], chosen[:, place + 1])


@pytest.mark.slow
@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_a_graph_and_xla_hide_the_same_tokens(jit):
    known = word_piece()
    tokens, _ = encoded(known, texts(9))
    config = MaskedLanguageModelConfig(vocab_size=20, **SIZES, whole_word_masking=True)
    function = tf.function(
        lambda tokens: hide_tokens(tokens, known, config, seeds(9)), jit_compile=jit
    )
    expected = hide_tokens(tokens, known, config, seeds(9))
    for one, other in zip(function(tokens), expected, strict=True):
        np.testing.assert_array_equal(one, other)


class Letters(Tokenizer):
    """A tokenizer of somebody else."""

    title, vocab_size, pad_id, unk_id, bos_id, eos_id, mask_id = "letters", 9, 0, 1, 2, 3, 4


@pytest.mark.parametrize(
    ("known", "name"),
    [
        (lambda: sentence_piece(treat_whitespace_as_suffix=True), "SentencePiece"),
        (lambda: sentence_piece(add_dummy_prefix=False, input_sentence_size=0), None),
        (Letters, "letters"),
        (lambda: word_piece(), None),
        (lambda: tokenizer(control=("<mask>",)), None),
        (byte_bpe, None),
    ],
)
def test_vocabularies_without_words_are_refused_in_one_line(known, name):
    if name is None:
        require_words(known())
        return
    with pytest.raises(ValueError, match=f"`whole_word_masking` .*words begin.*{name}") as error:
        require_words(known())
    assert "\n" not in str(error.value)


def test_texts_of_the_demo_have_more_tokens_than_words():
    """Otherwise the tests of training would not tell words from tokens."""
    known = tokenizer(control=("<mask>",))
    begins = np.array(known.begins_words())
    ids = known.encode([*LINES]).to_list()
    assert any(not begins[token] for row in ids for token in row[1:-1])
