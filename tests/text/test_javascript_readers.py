"""WordPiece and byte-level BPE of `examples/browser` under Node.js, compared with the package."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf
from browsers import call, program
from hostile_texts import assert_equal
from marks import long, slow
from reader_cases import answers, members_of, rows, texts, vocabulary
from test_word_patterns import split

from keras_transformer.tasks.classification.pipeline import ClassificationCodec
from keras_transformer.tasks.token_classification.codec import TokenClassificationCodec
from keras_transformer.text import word_patterns
from keras_transformer.text.code_points import CODE_POINTS

PLAIN = [
    "", " ", "a dog", " a dog's  tail,\n12 times\t", "one two three four five six seven eight nine",
    "\ufeffa \u200b b", "x" * 500, "é" * 700, "語 " * 300, "a" + " " * 600, "the \u00a0hill 中文",
]  # fmt: skip
LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y", "S", "E"]


def written(members, folder):
    """Writes the members of an archive as files and returns their paths by name."""
    for name, content in members.items():
        (folder / name).write_bytes(content)
    return {name: str(folder / name) for name in members}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        long("cased"),
        "short",
        long("accents"),
        "gpt2",
        long("wordpiece"),
        "gpt2_digits",
        long("llama3"),
        "found",
        long("incomplete"),
        "qwen2",
    ],
)
def test_ids_offsets_and_texts_are_those_of_the_tokenizer(name, tmp_path):
    program("node")
    tokenizer = vocabulary(name)
    made = rows(tokenizer)
    expected = answers(tokenizer, texts(), made)
    files = written(members_of(tokenizer), tmp_path)
    found = call("vocabularies", files=files, sentences=texts(), rows=made)["result"]
    assert_equal(texts(), found["ids"], expected.ids)
    assert_equal(texts(), found["places"], expected.places)
    assert_equal(made, found["texts"], expected.texts)
    assert found["names"] == [tokenizer.pieces(row) for row in made]
    assert len({number for row in found["ids"] for number in row}) > 150


@pytest.mark.parametrize("name", ["wordpiece", "qwen2"])
def test_half_of_a_character_is_read_as_the_replacement_character(name, tmp_path):
    """JavaScript's strings may have one; Python's in UTF-8 never do."""
    program("node")
    tokenizer = vocabulary(name)
    halves = ["\ud800", "a\udc00 b", "\ud83d\ud83d\ude00", "é\ud800\u0301"]
    whole = ["\ufffd", "a\ufffd b", "\ufffd\U0001f600", "é\ufffd\u0301"]
    files = written(members_of(tokenizer), tmp_path)
    found = call("vocabularies", files=files, sentences=halves, rows=[])["result"]
    assert found["ids"] == tokenizer.tokenize(whole).to_list()


@pytest.mark.long
@pytest.mark.slow
def test_large_vocabularies_and_long_texts(tmp_path):
    """More tokens than a call of JavaScript may have arguments.

    In Python, the parts of a text between found tokens are not copies of the whole text.
    """
    program("node")
    members = members_of(vocabulary("wordpiece"))
    content = json.loads(members["tokenizer.wordpiece.json"])
    content["pieces"] += [f"[unused{number}]" for number in range(300_000)]
    members["tokenizer.wordpiece.json"] = json.dumps(content).encode()
    files = written(members, tmp_path)
    found = call("vocabularies", files=files, sentences=["a " * 200_000], rows=[])["result"]
    assert found["ids"] == [[content["pieces"].index("a")] * 200_000]
    (tmp_path / "bpe").mkdir()
    files = written(members_of(vocabulary("found")), tmp_path / "bpe")
    texts = ["é " * 200_000, "a  " * 20_000, "x" * 10_000]
    found = call("vocabularies", files=files, sentences=texts, rows=[])["result"]
    assert found["ids"] == vocabulary("found").tokenize(texts).to_list()


@pytest.mark.slow
@pytest.mark.parametrize("name", [long("short"), "wordpiece"])
def test_every_code_point_is_normalised_as_by_the_tokenizer(name, tmp_path):
    program("node")
    tokenizer = vocabulary(name)
    ranges = [(0, 0xD7FF), (0xE000, CODE_POINTS - 1)]
    texts = ["".join(map(chr, range(first, last + 1))) for first, last in ranges]
    expected = [text.decode() for text in tokenizer.normalizer.map()(texts).numpy()]
    files = written(members_of(tokenizer), tmp_path)
    assert call("spell", files=files, ranges=ranges)["result"] == expected


@pytest.mark.parametrize("pattern", word_patterns.PATTERNS)
def test_the_portable_pattern_finds_the_words_of_the_graph(pattern):
    """Python's `re` has other classes of characters, which the pattern does not use."""
    portable = re.compile(word_patterns.get(pattern).portable())
    assert not re.search(r"\\[^rn]", portable.pattern)
    found = [portable.findall(text) for text in texts()]
    assert_equal(texts(), found, split(pattern, texts()))


@pytest.mark.long
@pytest.mark.slow
def test_the_portable_pattern_knows_every_code_point():
    portable = re.compile(word_patterns.get("llama3").portable())
    points = [chr(p) for p in range(CODE_POINTS) if not 0xD800 <= p < 0xE000]
    for form in ("a{}1", " {} "):
        for begin in range(0, len(points), 100_000):
            near = [form.format(point) for point in points[begin : begin + 100_000]]
            assert_equal(near, [portable.findall(text) for text in near], split("llama3", near))


def metadata(codec, task, lengths):
    signatures = [
        {"name": f"{batch}x{length}", "batch_size": batch, "source_length": length}
        for length in lengths
        for batch in (1, 4)
    ]
    return {**codec.metadata(), "task": task, "signatures": signatures}


@pytest.mark.parametrize("name", [slow("found"), "wordpiece", "qwen2"])
def test_texts_are_classified_as_in_python(name, tmp_path):
    """The probabilities of the model here depend on the sum of the ids."""
    program("node")
    tokenizer = vocabulary(name)
    codec = ClassificationCodec(tokenizer, 9, LABELS)
    rows, rest = codec.encode(tf.constant(PLAIN))
    found = call(
        "answer", files=written(members_of(tokenizer), tmp_path), texts=PLAIN, method="classify",
        metadata=metadata(codec, "classification", (5, 9)),
    )["result"]  # fmt: skip
    sources = rows["source"].numpy()
    lengths = np.sum(sources != tokenizer.pad_id, axis=1)
    names = ["1x5" if length <= 5 else "1x9" for length in lengths]
    assert [name for name, _ in found["sources"]] == names and {*names} == {"1x5", "1x9"}
    padded = [
        [*row[:length], *[tokenizer.pad_id] * (int(name[2:]) - length)]
        for name, row, length in zip(names, sources.tolist(), lengths, strict=True)
    ]
    assert [row for _, row in found["sources"]] == padded
    labels = [LABELS[sum(row) % len(LABELS)] for row in padded]
    assert [answer["label"] for answer in found["answers"]] == labels
    assert {answer["probability"] for answer in found["answers"]} == {1}
    cut = [bool(flag) for flag in rest["truncated"]]
    assert [answer["truncated"] for answer in found["answers"]] == cut and {*cut} == {True, False}


@pytest.mark.parametrize("name", [slow("found"), "wordpiece", "qwen2"])
def test_words_are_labelled_as_in_python(name, tmp_path):
    """The label of a token here depends on its id."""
    program("node")
    tokenizer = vocabulary(name)
    codec = TokenClassificationCodec(tokenizer, 9, LABELS)
    rows, rest = codec.encode(tf.constant(PLAIN))
    probabilities = tf.one_hot(rows["source"] % len(LABELS), len(LABELS))
    expected = codec.results(
        {
            name: value.numpy()
            for name, value in codec.answers({"probabilities": probabilities}, rest).items()
        }
    )
    found = call(
        "answer", files=written(members_of(tokenizer), tmp_path), texts=PLAIN, method="label",
        metadata=metadata(codec, "token_classification", (9,)),
    )["result"]  # fmt: skip
    assert [row[:9] for _, row in found["sources"]] == [
        [*row, *[tokenizer.pad_id] * 9][:9] for row in rows["source"].numpy().tolist()
    ]
    for text, answer, result in zip(PLAIN, found["answers"], expected, strict=True):
        assert [word["label"] for word in answer["words"]] == [*result.labels], text
        assert answer["truncated"] == result.truncated, text
        words = [text.encode("utf-16-le")[2 * w["begin"] : 2 * w["end"]] for w in answer["words"]]
        assert words == [word["word"].encode("utf-16-le") for word in answer["words"]]
        assert words == [word.decode().encode("utf-16-le") for word in text.encode().split()]


def test_a_model_for_something_else_is_refused(tmp_path):
    program("node")
    codec = ClassificationCodec(vocabulary("qwen2"), 9, LABELS)
    request = {"files": written(members_of(codec.tokenizer), tmp_path), "texts": ["a"]}
    for task, method, lengths, message in (
        ("translation", "classify", (9,), "This page cannot use a model for translation."),
        (
            "token_classification",
            "classify",
            (9,),
            "The model is for token_classification, not for classification.",
        ),
        (
            "classification",
            "label",
            (9,),
            "The model is for classification, not for token_classification.",
        ),
    ):
        about = metadata(codec, task, lengths)
        answer = call("answer", metadata=about, method=method, **request)
        assert answer["error"].startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer.unicode.json": None}, "The file has no tokenizer.unicode.json: export it ag"),
        ({"tokenizer.bpe.json": b"{"}, "The vocabulary is damaged: tokenizer.bpe.json is"),
        ({"tokenizer.bpe.json": (b'"eos": "</s>"', b'"eos": ""')}, "The vocabulary is damaged"),
        ({"tokenizer.bpe.json": (b'"nfc"', b'"nfd"')}, "This page cannot normalise texts by nfd."),
    ],
)  # fmt: skip
def test_a_vocabulary_that_cannot_be_read_is_refused(changes, message, tmp_path):
    program("node")
    members = members_of(vocabulary("qwen2"))
    for name, change in changes.items():
        content = members.pop(name)
        if isinstance(change, tuple):
            assert change[0] in content
            change = content.replace(*change)
        if change is not None:
            members[name] = change
    files = written(members, tmp_path)
    answer = call("vocabularies", files=files, sentences=[], rows=[])
    assert answer["error"].startswith(message)
