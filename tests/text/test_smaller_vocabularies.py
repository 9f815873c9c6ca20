"""Tokenizers with some of their tokens: the texts that these come from are encoded as before."""

import bpe_in_python
import pytest
from marks import slow
from test_wordpiece import LINES, SPECIAL, hostile, vocabulary

from keras_transformer.text.sentencepiece_model import messages
from keras_transformer.text.tokenizers import (
    ByteBPETokenizer,
    SentencePieceTokenizer,
    WordPieceTokenizer,
)

KINDS = messages.ModelProto.SentencePiece
MARKS = {"<pad>": KINDS.CONTROL, "<unk>": KINDS.UNKNOWN, "<s>": KINDS.CONTROL,
         "</s>": KINDS.CONTROL}  # fmt: skip


def sentencepiece(scores, kind="UNIGRAM"):
    """A SentencePiece tokenizer with these pieces."""
    proto = messages.ModelProto()
    spec = proto.trainer_spec
    spec.model_type = getattr(messages.TrainerSpec, kind)
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = range(4)
    proto.normalizer_spec.add_dummy_prefix = False
    for name, role in MARKS.items():
        proto.pieces.add(piece=name, score=0.0, type=role)
    for piece, score in scores.items():
        proto.pieces.add(piece=piece, score=score, type=KINDS.NORMAL)
    # A model may have samples, which are segmented when it is loaded.
    proto.self_test_data.samples.add(input="dd", expected="dd")
    return SentencePieceTokenizer(proto.SerializeToString())


def restricted(tokenizer, texts):
    """Returns the tokenizer for these texts, and the names of its tokens."""
    kept = sorted(tokenizer.needed(tokenizer.used(texts)))
    smaller = tokenizer.restricted(kept)
    assert smaller.pieces(range(smaller.vocab_size)) == tokenizer.pieces(kept)
    old, new = (one.encode(texts).to_list() for one in (tokenizer, smaller))
    for text, before, after in zip(texts, old, new, strict=True):
        assert before == [kept[number] for number in after], text
    return smaller, smaller.pieces(range(smaller.vocab_size))


def tokens(tokenizer, text):
    return tokenizer.pieces(tokenizer.tokenize([text]).to_list()[0])


def test_wordpiece_keeps_the_beginning_of_an_unknown_word():
    """Without `ab`, the longest match from the left would find `a ##bd`."""
    pieces = [*SPECIAL, "a", "b", "x", "d", "##a", "##b", "##x", "ab", "##bd", "##xx", "[unused1]"]
    tokenizer = WordPieceTokenizer(pieces)
    assert tokens(tokenizer, "abd xbd") == ["[UNK]", "x", "##bd"]
    smaller, kept = restricted(tokenizer, ["abd xbd"])
    assert kept == [piece for piece in pieces if piece not in ("##xx", "[unused1]")]
    assert restricted(tokenizer, ["xbd"])[1] == [name for name in kept if name != "ab"]
    assert tokens(smaller, "axx") == ["a", "##x", "##x"]


def test_unigram_keeps_the_pieces_that_the_score_of_an_unknown_one_depends_on():
    """It is 10 below the lowest score; above it, `ax` and an unknown piece would be better."""
    scores = {"a": -39.0, "x": -39.5, "x☃": -40.0, "dd": -2.0, "zz": -100.0, "ax": -1.0}
    tokenizer = sentencepiece(scores)
    assert tokens(tokenizer, "ax☃") == ["a", "x☃"]
    _, kept = restricted(tokenizer, ["ax☃"])
    assert kept == [*MARKS, "a", "x", "x☃", "zz", "ax"]  # `ax` has the highest score


def test_bpe_keeps_the_pieces_between():
    scores = {"ab": -1.0, "cd": -2.0, "abcd": -3.0, "bc": -4.0, "dd": -5.0, "abcdd": -6.0}
    letters = {letter: -9.0 for letter in "abcd"}
    tokenizer = sentencepiece({**scores, **letters}, "BPE")
    assert tokens(tokenizer, "abcd") == ["abcd"]
    _, kept = restricted(tokenizer, ["abcd"])
    assert kept == [*MARKS, "ab", "cd", "abcd", *letters]


def test_byte_bpe_keeps_the_merges_of_its_tokens():
    lines = ["the good dog is running", "dogs ran", "goodness"]
    merges = bpe_in_python.learn(lines, 30)
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = ByteBPETokenizer(bpe_in_python.vocabulary(merges, marks), merges)
    smaller, kept = restricted(tokenizer, ["goodness"])
    assert len(kept) < tokenizer.vocab_size and "<unk>" in kept
    texts = [*lines, "☃ cats"]
    assert [text.decode() for text in smaller.decode(smaller.encode(texts)).numpy()] == texts


def test_byte_bpe_keeps_the_pairs_by_which_its_tokens_are_reached():
    """`abc` is reached by `a` and `bc`, although the last pair that makes it is another one."""
    merges = [("b", "c"), ("c", "a"), ("a", "b"), ("a", "bc"), ("ab", "c")]
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = bpe_in_python.vocabulary([*merges[:4]], marks)
    tokenizer = ByteBPETokenizer(pieces, merges)
    assert tokens(tokenizer, "abca") == ["abc", "a"]
    smaller, kept = restricted(tokenizer, ["abc", "ca"])
    assert "bc" in kept and "ab" not in kept
    assert tokens(smaller, "abca") == ["abc", "a"]


@pytest.mark.long
@pytest.mark.slow
def test_byte_bpe_loses_found_tokens_and_whole_words_that_are_not_used():
    merges = [("d", "o"), ("do", "g")]
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = bpe_in_python.vocabulary(merges, marks)
    tokenizer = ByteBPETokenizer(pieces, merges, found=["dog"])
    assert "dog" not in restricted(tokenizer, ["cat"])[1]
    smaller, kept = restricted(tokenizer, ["a dog"])
    assert "dog" in kept and tokens(smaller, "xdogx") == ["x", "dog", "x"]


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [slow(False), True])
def test_wordpiece_encodes_hostile_texts_as_before(lowercase):
    pieces = vocabulary(LINES, lowercase)
    tokenizer = WordPieceTokenizer(pieces)
    restricted(tokenizer, [*LINES, *hostile(300, 7)])
    texts = LINES[:3]
    assert len(restricted(tokenizer, texts)[1]) < len(pieces)
