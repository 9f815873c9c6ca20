"""Byte-level BPE against the algorithm in Python and, where it is installed, `tokenizers`."""

import functools
import itertools
import json
import os
import random
import unicodedata

import bpe_in_python
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hostile_texts import ALPHABETS, assert_equal, hostile, rows
from test_wordpiece import stable

from keras_transformer.tasks.strings import encode
from keras_transformer.text.byte_pairs import (
    NO_UTF_8,
    check_merges,
    merge_ranks,
    sentencepiece_model,
)
from keras_transformer.text.tokenizers import ByteBPETokenizer, Tokenizers

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
LINES = [
    "A dog runs over the green hill.", "I've they'll we're it's he'd I'm don't ''s '' 's", "",
    " ", "   ", "\n", "a  b", "a \n b", " \n", "a\t's\u00a0'tx\u3000'll", "'s's'S'vex 've", "!'s",
    "x'", "'", "'l", "'r", "12 345½ ² x2", "Straße 中文字符 한국어", "e\u0301 x\u200dy z\ufeff",
    "\0\ufffd\u0007 \u0085\u2028b", "snow☃man 😀😀 $5.00 a_b^c", "</s> <pad> is text", "▁ Ġ Ċ",
    "the the the the theatre",
]  # fmt: skip
QUOTES = "''''stmdrevlx  \t\n\u00a0\u3000aZ1٣²!?" * 2


@functools.cache
def merges():
    texts = [*LINES, *(text for text in hostile(200, 9, [*ALPHABETS[0]]))]
    return bpe_in_python.learn(texts, 250)


@functools.cache
def made(**options):
    pieces = bpe_in_python.vocabulary(merges(), SPECIAL)
    return ByteBPETokenizer(pieces, merges(), **options)


# Without tokens: bytes of ASCII, one that begins a character, two that end one, and those that
# never occur in UTF-8.
LOST = [*b"\0\tq", 0xC3, 0xAD, 0xA9, 0xC0, 0xC1, *range(0xF5, 0x100)]


@functools.cache
def incomplete(**options):
    """A vocabulary without tokens for some bytes: a merge needs one of them."""
    lost = {bpe_in_python.LETTERS[byte] for byte in LOST}
    pairs = [pair for pair in merges() if not lost & {*"".join(pair)}] + [("qu", "e")]
    pieces = [piece for piece in bpe_in_python.vocabulary(pairs, SPECIAL) if piece not in lost]
    return ByteBPETokenizer([*pieces, "qu"], pairs, **options)


def quoted(count, seed):
    """Random strings of apostrophes, spaces and the letters of contractions."""
    rng = random.Random(seed)
    return ["".join(rng.choices(QUOTES, k=rng.choice((2, 3, 5, 9, 20)))) for _ in range(count)]


def expected(texts):
    pieces = bpe_in_python.vocabulary(merges(), SPECIAL)
    ids = {piece: number for number, piece in enumerate(pieces)}
    ranks = {pair: number for number, pair in enumerate(merges())}
    found = [bpe_in_python.tokens(text, ranks) for text in texts]
    return [[0, *(ids[token] for token in row), 2] for row in found]


def test_ids_are_those_of_the_algorithm():
    texts = [*LINES, *hostile(1000, 1, stable()), *quoted(1000, 2)]
    right = expected(texts)
    assert_equal(texts, rows(made(), texts), right)
    assert len({number for row in right for number in row}) > 300


def test_a_text_may_get_a_space_in_front():
    texts = [text for text in LINES if text]
    spaced = [text if text.startswith(" ") else f" {text}" for text in texts]
    tokenizer = made(prefix_space=True)
    assert_equal(texts, rows(tokenizer, texts), expected(spaced))
    assert tokenizer.tokenize([""]).to_list() == [[]]
    _, begins, ends = tokenizer.tokenize_with_offsets(["a dog", " a"])
    assert [row[0] for row in begins.to_list()] == [0, 0]
    assert [row[-1] for row in ends.to_list()] == [5, 2]


def test_a_word_of_100_000_characters():
    tokenizer = made()
    for text in ("x" * 100_000, "the" * 33_334, "é" * 50_000):
        (ids,) = tokenizer.tokenize([text]).to_list()
        assert tokenizer.decode([ids]).numpy()[0].decode() == text


def test_offsets_are_the_bytes_of_each_token():
    tokenizer, texts = made(), [*LINES, *hostile(300, 4)]
    ids, begins, ends = tokenizer.tokenize_with_offsets(texts)
    assert ids.to_list() == tokenizer.tokenize(texts).to_list()
    for text, row, *places in zip(texts, *(x.to_list() for x in (ids, begins, ends)), strict=True):
        parts = [text.encode()[begin:end] for begin, end in zip(*places, strict=True)]
        letters = ["".join(bpe_in_python.LETTERS[byte] for byte in part) for part in parts]
        assert letters == tokenizer.pieces(row) and b"".join(parts) == text.encode()


def odd(count, seed):
    """Random strings in which many bytes have no token in `incomplete`."""
    rng = random.Random(seed)
    letters = "theuqéíãаö \0\t\n" + "that"
    return ["".join(rng.choices(letters, k=rng.choice((1, 3, 9, 20)))) for _ in range(count)]


def test_a_byte_without_a_token_is_dropped_before_merging():
    tokenizer, texts = incomplete(), [*LINES, *hostile(500, 6, stable()), *odd(1000, 7)]
    pieces, pairs, *_ = tokenizer._content()
    ranks = {pair: number for number, pair in enumerate(pairs)}
    right = [bpe_in_python.tokens(text, ranks, {*pieces}) for text in texts]
    ids, begins, ends = tokenizer.tokenize_with_offsets(texts)
    assert_equal(texts, [tokenizer.pieces(row) for row in ids.to_list()], right)
    assert sum("tqh" in text for text in texts) > 5
    assert tokenizer.dropped_bytes == tuple(sorted({*LOST} - {*NO_UTF_8}))
    kept = bytes(byte for byte in range(256) if byte not in LOST)
    for text, row, *places in zip(texts, right, begins.to_list(), ends.to_list(), strict=True):
        parts = [text.encode()[begin:end] for begin, end in zip(*places, strict=True)]
        own = [bytes(byte for byte in part if byte in kept) for part in parts]
        assert ["".join(bpe_in_python.LETTERS[x] for x in part) for part in own] == row
        assert all(part[0] in kept and part[-1] in kept for part in parts)
    left = [bytes(byte for byte in text.encode() if byte in kept) for text in texts]
    decoded = tokenizer.decode(ids.to_tensor(tokenizer.pad_id)).numpy()
    assert [x.decode() for x in decoded] == [x.decode("utf-8", "replace") for x in left]
    again = Tokenizers.from_files(Tokenizers.of(tokenizer).files().get).source
    assert again.tokenize(texts).to_list() == ids.to_list()


def test_a_word_may_be_a_token_although_a_byte_has_none():
    tokenizer = incomplete(whole_words=("que", "qu"))
    found = tokenizer.tokenize_with_offsets(["que", "que\tque", "qu", "q"])
    ids, begins, ends = (rows.to_list() for rows in found)
    names = [tokenizer.pieces(row) for row in ids]
    assert names == [["que"], ["que", "que"], ["qu"], []]
    assert begins == [[0], [0, 4], [0], []] and ends == [[3], [3, 7], [2], []]


def test_invalid_utf_8():
    """U+FFFD takes its place, and offsets are those of the bytes that were there."""
    tokenizer = made()
    broken = [b"a \xff dog", b"\xe6\x9d", b"caf\xc3", b"\xff\xfe"]
    replaced = tf.strings.unicode_transcode(broken, "UTF-8", "UTF-8", errors="replace")
    ids, begins, ends = tokenizer.tokenize_with_offsets(broken)
    assert ids.to_list() == tokenizer.tokenize(replaced).to_list()
    for text, first, last in zip(broken, begins.to_list(), ends.to_list(), strict=True):
        assert first[0] == 0 and last[-1] == len(text)
        assert first == sorted(first) and last == sorted(last)
        assert all(begin <= end for begin, end in zip(first, last, strict=True))
    half = bpe_in_python.LETTERS[0xC3]
    number = bpe_in_python.vocabulary(merges(), SPECIAL).index(half)
    assert tokenizer.decode([[number]]).numpy()[0].decode() == "\ufffd"


def test_ids_become_text():
    tokenizer, texts = made(), [*LINES, *hostile(300, 5)]
    encoded = tokenizer.encode(texts)
    found = tokenizer.decode(encoded.to_tensor(tokenizer.pad_id)).numpy()
    assert [text.decode() for text in found] == texts
    assert tokenizer.pieces(encoded[2].numpy()) == ["<s>", "</s>"]
    bare = made(starts_with_bos=False)
    assert bare.num_marks == 1 and bare.encode(["", "a"])[0].numpy().tolist() == [2]


@pytest.mark.slow
def test_it_works_in_a_saved_model_that_python_does_not_load(tmp_path):
    module = tf.Module()
    module.tokenizer = made()
    texts = tf.TensorSpec([None], tf.string, name="texts")
    encode = tf.function(
        lambda texts: {"ids": module.tokenizer.encode(texts).to_tensor(-1)}, input_signature=[texts]
    )
    tf.saved_model.save(module, str(tmp_path), {"encode": encode})
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(tmp_path))
        signature = meta.signature_def["encode"]
        feed = {signature.inputs["texts"].name: [line.encode() for line in LINES]}
        found = session.run(signature.outputs["ids"].name, feed)
    np.testing.assert_array_equal(found, module.tokenizer.encode(LINES).to_tensor(-1))


def test_its_files_make_it_again():
    tokenizer = made(prefix_space=True, starts_with_bos=False)
    files = Tokenizers.of(tokenizer).files()
    assert list(files) == ["tokenizer.bpe.json"]
    again = Tokenizers.from_files(files.get).source
    assert again.encode(LINES).to_list() == tokenizer.encode(LINES).to_list()
    assert again.identity() == tokenizer.identity() != made().identity()
    with pytest.raises(ValueError, match=r"tokenizer\.bpe\.json: the byte-level BPE vocabulary is"):
        Tokenizers.from_files({"tokenizer.bpe.json": b"{}"}.get)


BYTES = [*bpe_in_python.LETTERS.values()]


@pytest.mark.parametrize(
    ("pieces", "pairs", "message"),
    [
        ([*SPECIAL, *BYTES, "!"], [], r"must not repeat a piece\. Received twice: '!'\."),
        ([*SPECIAL[1:], *BYTES], [], r"must have the piece '<s>', which is `bos`\."),
        ([*SPECIAL, *BYTES], [("a", "b")], r"must be pairs of pieces .*\('a', 'b'\)\."),
        ([*SPECIAL, *BYTES, "ab"], [("a", "b"), ("a", "b")], "must make each piece once.*'ab'"),
        (
            [*SPECIAL, *BYTES, "ab", "bc", "abc"],
            [("a", "b"), ("b", "c"), ("a", "bc")],
            r"must make the piece 'abc' of the pair .*: \('a', 'bc'\), .* by \('ab', 'c'\)\.",
        ),
        (
            [*SPECIAL, *BYTES, "</", "</s"],
            [("<", "/"), ("</", "s"), ("</s", ">")],
            r"`eos` must not be a piece of text\. Received: eos='</s>'\.",
        ),
    ],
)
def test_wrong_pieces_and_merges_are_named(pieces, pairs, message):
    with pytest.raises(ValueError, match=message):
        ByteBPETokenizer(pieces, pairs)


def test_merges_that_sentencepiece_would_not_follow_are_refused():
    """With all others it agrees with the list of pairs on every string of four letters."""
    letters, agree, differ = "abc", 0, 0
    strings = ["".join(row) for row in itertools.product(letters, repeat=4)]
    rng = random.Random(0)
    for _ in range(300):
        known, pairs = [*letters], []
        for _ in range(6):
            pair = rng.choice(known), rng.choice(known)
            if "".join(pair) not in known:
                pairs.append(pair)
                known.append("".join(pair))
        pieces = [*SPECIAL, *BYTES, *known[3:]]
        ranks = merge_ranks(pieces, pairs)
        processor = sentencepiece.SentencePieceProcessor(
            model_proto=sentencepiece_model(pieces, ranks, "<unk>")
        )
        by_pair = {pair: number for number, pair in enumerate(pairs)}
        expected = [bpe_in_python.tokens(text, by_pair) for text in strings]
        equal = processor.encode(strings, out_type=str) == expected
        try:
            check_merges(pairs, ranks)
        except ValueError:
            differ += not equal
        else:
            agree += 1
            assert equal, pairs
    assert agree > 100 and differ > 10


def test_several_pairs_may_make_a_piece():
    """Accepted lists agree with SentencePiece on every string of two letters."""
    strings = ["".join(row) for row in itertools.product("ab", repeat=8)]
    rng, agree, differ = random.Random(1), 0, 0
    for _ in range(100):
        known, pairs = ["a", "b"], []
        for _ in range(6):
            piece = rng.choice(known) + rng.choice(known)
            if piece not in known:
                splits = [(piece[:n], piece[n:]) for n in range(1, len(piece))]
                splits = [pair for pair in splits if {*pair} <= {*known}]
                pairs += rng.sample(splits, k=rng.randint(1, len(splits)))
                known.append(piece)
        pieces = [*SPECIAL, *BYTES, *known[2:]]
        ranks = merge_ranks(pieces, pairs)
        processor = sentencepiece.SentencePieceProcessor(
            model_proto=sentencepiece_model(pieces, ranks, "<unk>")
        )
        by_pair = {pair: number for number, pair in enumerate(pairs)}
        expected = [bpe_in_python.tokens(text, by_pair) for text in strings]
        equal = processor.encode(strings, out_type=str) == expected
        try:
            check_merges(pairs, ranks)
        except ValueError:
            differ += not equal
        else:
            agree += len(pairs) > len(ranks)
            assert equal, pairs
    assert agree > 20 and differ > 5


def test_a_word_may_be_a_token_that_merges_would_split():
    pairs = [("b", "c"), ("a", "b"), ("c", "d"), ("ab", "cd"), ("Ġ", "ab"), ("Ġab", "cd")]
    pieces = [*bpe_in_python.vocabulary(pairs, SPECIAL), "xyz"]
    whole = ByteBPETokenizer(pieces, pairs, whole_words=[*pieces[4:]])
    plain, texts = ByteBPETokenizer(pieces, pairs), ["abcd abcd", "xabcd abcdx", "xyz", "", "ab"]
    found, split = ([t.pieces(row) for row in t.tokenize(texts).to_list()] for t in (whole, plain))
    parts = ["a", "bc", "d"]
    assert found == [["abcd", "Ġabcd"], ["x", *parts, "Ġ", *parts, "x"], ["xyz"], [], ["ab"]]
    assert split == [[*parts, "Ġ", *parts], found[1], ["x", "y", "z"], [], ["ab"]]
    _, begins, ends = whole.tokenize_with_offsets(texts[:1])
    assert begins.to_list() == [[0, 4]] and ends.to_list() == [[4, 9]]
    again = Tokenizers.from_files(Tokenizers.of(whole).files().get).source
    assert again.tokenize(texts).to_list() == whole.tokenize(texts).to_list()
    with pytest.raises(ValueError, match=r"`whole_words` must be pieces\. Received: 'uvw'\."):
        ByteBPETokenizer(pieces, pairs, whole_words=["uvw"])


@pytest.mark.slow
def test_texts_may_be_normalised_and_split_at_another_pattern():
    tokenizer = made(pattern="qwen2", normalization="nfc")
    texts = [*LINES, "e\u0323\u0302 12'S", *quoted(200, 7)]
    ranks = {pair: number for number, pair in enumerate(merges())}
    words = [bpe_in_python.words_of(unicodedata.normalize("NFC", text), "qwen2") for text in texts]
    expected = [[t for word in row for t in bpe_in_python.merge(word, ranks)] for row in words]
    ids, begins, ends = tokenizer.tokenize_with_offsets(texts)
    assert_equal(texts, [tokenizer.pieces(row) for row in ids.to_list()], expected)
    for text, first, last in zip(texts, begins.to_list(), ends.to_list(), strict=True):
        assert not first or (first[0], last[-1]) == (0, len(text.encode()))
        assert first == sorted(first) and last == sorted(last)
    again = Tokenizers.from_files(Tokenizers.of(tokenizer).files().get).source
    assert again.files() == tokenizer.files() and again.pattern == "qwen2"
    with pytest.raises(ValueError, match="`normalization` must be one of nfc, or None"):
        made(normalization="nfkc")
    with pytest.raises(ValueError, match="`pattern` must be one of gpt2, "):
        made(pattern="bert")


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["gpt2_digits", "llama3", "qwen2", "tekken"])
def test_ids_of_other_patterns_are_those_of_the_package_tokenizers(pattern, data_dir, tmp_path):
    """`KERAS_TRANSFORMER_STRINGS` is the number of random strings, 100,000 by default."""
    tokenizers = pytest.importorskip("tokenizers")
    corpus = (data_dir / "multi30k/train.de").read_text("utf-8").split("\n")[:5000]
    content = {
        "normalizer": {"type": "NFC"} if pattern == "qwen2" else None,
        "pre_tokenizer": bpe_in_python.pre_tokenizer(pattern),
        "model": {"type": "BPE", "vocab": {}, "merges": [], "ignore_merges": pattern == "llama3"},
    }
    theirs = tokenizers.Tokenizer.from_str(json.dumps(content))
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=5000, initial_alphabet=sorted(BYTES), show_progress=False
    )
    theirs.train_from_iterator([*LINES, *corpus], trainer)
    ids, pairs = (json.loads(theirs.to_str())["model"][name] for name in ("vocab", "merges"))
    if pattern == "llama3":  # every pair of each piece, and words that merges split
        words = {word for line in corpus for word in bpe_in_python.words_of(line, pattern)}
        letters = {"".join(bpe_in_python.LETTERS[b] for b in word.encode()) for word in words}
        for word in sorted(letters - {*ids})[:2000]:
            ids[word] = len(ids)
        pairs = []
        for piece in sorted(ids, key=ids.get):
            own = [(piece[:n], piece[n:]) for n in range(1, len(piece))]
            own = [pair for pair in own if {*pair} <= {*ids}]
            pairs += sorted(own, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    content["model"] |= {"vocab": ids, "merges": [[*pair] for pair in pairs]}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(content))
    size = len(ids)
    options = {
        "pattern": pattern,
        "normalization": "nfc" if pattern == "qwen2" else None,
        "whole_words": ids if pattern == "llama3" else (),
    }
    ours = ByteBPETokenizer([*sorted(ids, key=ids.get), *SPECIAL], pairs, **options)
    count = int(os.environ.get("KERAS_TRANSFORMER_STRINGS", "100000"))
    whole = ["x" * 100_000, "the" * 33_334, "1" * 100_000, "'" * 100_000, " \n" * 50_000]
    for texts in (LINES, corpus, hostile(count, 2), quoted(count // 5, 3), whole):
        plain = [text for text in texts if "<" not in text]
        found = [row[1:-1] for row in rows(ours, plain)]
        expected = theirs.encode_batch(plain, add_special_tokens=False)
        assert_equal(plain, found, [row.ids for row in expected])
        assert all(number < size for row in found for number in row)


@pytest.mark.slow
def test_ids_are_those_of_the_package_tokenizers(data_dir):
    """Multi30K in three languages, 100,000 strings of any code points, and a large vocabulary."""
    tokenizers = pytest.importorskip("tokenizers")
    corpus = []
    for path in sorted((data_dir / "multi30k").glob("*")):
        if path.suffix in (".en", ".de", ".fr"):
            corpus += path.read_text("utf-8").split("\n")
    theirs = tokenizers.ByteLevelBPETokenizer()
    options = {"vocab_size": 30_000, "special_tokens": SPECIAL, "show_progress": False}
    theirs.train_from_iterator([*LINES, *corpus], **options)
    model = json.loads(theirs.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    ours = ByteBPETokenizer(pieces, model["merges"])
    whole = ["x" * 100_000, "the" * 33_334]
    for texts in (LINES, corpus, list(hostile(100_000, 2)), quoted(20_000, 3), whole):
        plain = [text for text in texts if not any(name in text for name in SPECIAL)]
        found = [row[1:-1] for row in rows(ours, plain)]
        assert_equal(plain, found, [row.ids for row in theirs.encode_batch(plain)])
    rng = random.Random(1)
    tokens = [[rng.randrange(4, len(pieces)) for _ in range(9)] for _ in range(5000)]
    texts = [text.decode() for text in ours.decode(tokens).numpy()]
    assert_equal(tokens, texts, theirs.decode_batch(tokens))


@pytest.mark.slow
def test_texts_of_long_tokens_are_read_to_their_end():
    """GPT-2 has tokens of 128 spaces: 20 of them are not too long for a model of 21 tokens."""
    pairs = [("a" * 2**n, "a" * 2**n) for n in range(7)]
    long = ByteBPETokenizer(bpe_in_python.vocabulary(pairs, SPECIAL), pairs)
    text = "a" * 128 * 18
    ids, truncated, _ = encode(long, tf.constant([text, text + "b", text + "bb"]), 21)
    assert ids.row_lengths().numpy().tolist() == [20, 21, 21]
    assert truncated.numpy().tolist() == [False, False, True]
