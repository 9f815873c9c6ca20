"""WordPiece against the algorithm in Python and, if it is installed, against `tokenizers`."""

import collections
import unicodedata

import bert_in_python
import numpy as np
import pytest
import tensorflow as tf
from hostile_texts import SOME, assert_equal, hostile, rows
from marks import slow

from keras_transformer.text.bert_normalizer import BertNormalizer
from keras_transformer.text.tokenizers import Tokenizers, WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LINES = [
    "A dog runs over the green hill.", "Two men, in shirts: \"hello\"!", "unaffable", "", "   ",
    "Ünïcödé ÉCOLE Straße İstanbul ǅ Σίσυφος", "中文字符 and 日本語テキスト 한국어",
    "a\tb\nc\rd\u00a0e\u3000f",
    "e\u0301 e\u0323\u0301 \u0301 x\u200dy z\ufeff", "tab\u0000nul\ufffd\u0007bell",
    "snow☃man 😀😀 $5.00 a_b^c",
    "x" * 100, "x" * 101, "é" * 100, "é" * 101, "字" * 200, "[CLS] is text",
    "##s ## #s", "don't can't",
]  # fmt: skip


def vocabulary(lines, lowercase):
    """Letters, frequent words and their parts, so that WordPiece has a choice."""
    texts = [word for line in lines for word in bert_in_python.words(line, lowercase) if word]
    letters = sorted({letter for word in [*texts, *SOME] for letter in word if letter != "x"})
    counts = collections.Counter(texts)
    parts = [word for word, _ in counts.most_common(1500)]
    parts += [word[:size] for word in parts for size in (2, 3, 5)]
    parts += [f"##{word[-size:]}" for word in parts for size in (1, 2, 3) if len(word) > size]
    names = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *parts]
    return {name: number for number, name in enumerate(dict.fromkeys(filter(str.strip, names)))}


def stable():
    """Returns code points that are unchanged since Unicode 3.2, for any version of Python."""
    old = unicodedata.ucd_3_2_0
    points = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    return [
        p for p in points if old.category(p) == unicodedata.category(p) not in ("Cn", "Mc", "No")
        and old.normalize("NFD", p) == unicodedata.normalize("NFD", p)
    ]  # fmt: skip


def make_tokenizer(ids, lowercase):
    return WordPieceTokenizer(list(ids), BertNormalizer(lowercase=lowercase))


@pytest.mark.parametrize("lowercase", [slow(True), False])
def test_ids_equal_those_of_the_algorithm(lowercase):
    ids = vocabulary(LINES, lowercase)
    texts = [*LINES, *hostile(3000, 1, stable())]
    expected = [bert_in_python.ids(text, ids, lowercase) for text in texts]
    assert_equal(texts, rows(make_tokenizer(ids, lowercase), texts), expected)
    kinds = {number for row in expected for number in row}
    assert len(kinds) > 100 and ids["[UNK]"] in kinds


@pytest.fixture(scope="module")
def corpus(data_dir):
    lines = []
    for name in ("multi30k", "sst2"):
        for path in sorted((data_dir / name).glob("*")):
            if path.suffix in (".en", ".de", ".fr", ".cs", ".tsv", ".txt"):
                lines += path.read_text("utf-8").split("\n")
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_equal_those_of_the_package_tokenizers(corpus, lowercase):
    """Multi30K, SST-2 and 100,000 strings of arbitrary code points."""
    tokenizers = pytest.importorskip("tokenizers")
    ids = vocabulary([*LINES, *corpus[:20000]], lowercase)
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))
    theirs.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    theirs.post_processor = tokenizers.processors.BertProcessing(
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
    )
    ours = make_tokenizer(ids, lowercase)
    for texts in (LINES, corpus, list(hostile(100_000, 2))):
        assert_equal(texts, rows(ours, texts), [e.ids for e in theirs.encode_batch(texts)])


@pytest.mark.parametrize(
    "options",
    [
        {"clean_text": False},
        {"handle_chinese_chars": False},
        {"strip_accents": False},
        {"strip_accents": True, "lowercase": False},
    ],
)
def test_each_option_of_the_normaliser_works_as_in_tokenizers(options):
    normalizers = pytest.importorskip("tokenizers").normalizers
    pre_tokenizers = pytest.importorskip("tokenizers").pre_tokenizers
    ours, theirs = BertNormalizer(**options), normalizers.BertNormalizer(**options)
    texts = [*LINES, *hostile(2000, 3)]
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    expected = [[word for word, _ in split(theirs.normalize_str(text))] for text in texts]
    found = ours.map()(texts).numpy()
    assert_equal(texts, [[w for w in text.decode().split(" ") if w] for text in found], expected)


@pytest.mark.parametrize("options", [{}, slow({"lowercase": False, "clean_text": False})])
def test_the_normaliser_looks_at_every_code_point_that_changes(options):
    """It visits only some of the million code points."""
    normalizer = BertNormalizer(**options)
    changes, table = normalizer.changes(), normalizer.translation()
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    changed = {point: table[point] for point in points if table[point] != chr(point)}
    texts = {point: "".join(map(chr, text)) for point, text in changes.items()}
    assert changed == {point: text for point, text in texts.items() if text != chr(point)}


@pytest.mark.slow
def test_it_works_in_a_saved_model_outside_python(tmp_path):
    ids = vocabulary(LINES, True)
    module = tf.Module()
    module.tokenizer = make_tokenizer(ids, True)
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


def test_ids_become_text():
    tokenizer = make_tokenizer(vocabulary(LINES, True), True)
    encoded = tokenizer.encode(["A dog runs over the hill", "", "Straße"])
    texts = tokenizer.decode(encoded.to_tensor(tokenizer.pad_id)).numpy()
    assert [text.decode() for text in texts] == ["a dog runs over the hill", "", "straße"]
    assert tokenizer.pieces(encoded[1].numpy()) == ["[CLS]", "[SEP]"]
    assert tokenizer.tokenize([""]).to_list() == [[]]


def test_it_is_restored_from_its_files():
    ids = vocabulary(LINES, False)
    tokenizer = WordPieceTokenizer(list(ids), BertNormalizer(lowercase=False), longest_word=7)
    files = Tokenizers.of(tokenizer).files()
    assert list(files) == ["tokenizer.wordpiece.json"]
    again = Tokenizers.from_files(files.get).source
    texts = [*LINES, "longest longester"]
    assert again.encode(texts).to_list() == tokenizer.encode(texts).to_list()
    assert again.identity() == tokenizer.identity() != make_tokenizer(ids, True).identity()
    with pytest.raises(ValueError, match=r"tokenizer\.wordpiece\.json: the WordPiece vocabulary"):
        Tokenizers.from_files({"tokenizer.wordpiece.json": b"{}"}.get)


def test_wrong_tokens_are_reported():
    with pytest.raises(ValueError, match=r"must not repeat a piece\. Received twice: 'a'\."):
        WordPieceTokenizer([*SPECIAL, "a", "b", "a"])
    with pytest.raises(ValueError, match=r"must have the piece '\[CLS\]', which is `bos`\."):
        WordPieceTokenizer(["[PAD]", "[UNK]", "[SEP]"])
    with pytest.raises(ValueError, match=r"WordPiece has no random segmentations"):
        make_tokenizer(vocabulary(LINES, True), True).sample(["a"], 0.1, 1)
