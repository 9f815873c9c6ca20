"""The modules of `examples/browser` under Node.js, compared with the Python package."""

import functools
import io
import itertools
import random
import types
import urllib.parse
import zipfile

import pytest
import sentencepiece
import tensorflow as tf
from browsers import call, program
from sentencepiece import sentencepiece_model_pb2

from keras_transformer.tasks.strings import encode
from keras_transformer.text.byte_pairs import CHARACTERS
from keras_transformer.text.tokenizers import ByteBPETokenizer, Tokenizers
from keras_transformer.tokenizers import SentencePieceTokenizer
from keras_transformer.training.vocabulary import learn_vocabulary

WORDS = [
    "größer", "straße", "ein", "zwei", "drei", "m²", "½", "…", "naïve", "Ελλάδα", "Москва", "東京",
    "“quoted”", "3,5", "in", "17", "weeks", "2031", "März", "café", "Übung", "the", "Việt",
]  # fmt: skip
WORDS += map("".join, itertools.product(["haus", "wald", "see"], ["bau", "tor"], ["", "er", "ung"]))
ODD = [
    "\u00a0", "\u3000", "  ", "\t", "\u200b", "\ufeff", "e\u0301", "a\u0308", "e\u0323\u0302",
    "▁", "▁▁", "\0", "😀", "👩\u200d👧", "한국", "ｶﾞ", "ﬁ", "①", "Ａ", "<s>", "</s>", "<unk>",
    " ⁇ ", "⁇", "ж", "語", "\u0300", "\u2028", "1234567890", "É", "eeeee", "\x85", "\uffff",
    "\u00ad", "\u200c", "\u2060", "\ufe0f", "\U000e0041",
]  # fmt: skip


def plain_text(rng):
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(300)]


def odd_text(rng):
    """Returns sentences that no user would type, and every odd token on its own."""
    pieces = WORDS + ODD + list("abcdefghij 0123456789.,-")
    sentences = [
        "".join(piece + rng.choice(["", " ", "", "  "]) for piece in rng.choices(pieces, k=length))
        for length in range(1, 15)
        for _ in range(30)
    ]
    return [*sentences, *ODD, "", " ", "   ", "weeks" * 400, "ж" * 500]


@functools.cache
def vocabulary(model_type, split_digits):
    settings = types.SimpleNamespace(
        size=90, model_type=model_type, split_digits=split_digits, character_coverage=0.995
    )
    return learn_vocabulary(plain_text(random.Random(1)), settings)


def with_standard_normalization(vocab_size=180, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(plain_text(random.Random(1))), model_writer=model, model_type="bpe",
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, minloglevel=2, vocab_size=vocab_size, **options,
    )  # fmt: skip
    return model.getvalue()


@pytest.mark.parametrize(
    "model",
    [lambda: vocabulary("bpe", False), with_standard_normalization],
    ids=["numbers", "nmt_nfkc"],
)
def test_ids_and_text_are_those_of_the_tokenizer(model, tmp_path):
    program("node")
    rng = random.Random(2)
    (tmp_path / "tokenizer.model").write_bytes(model())
    tokenizer = SentencePieceTokenizer.load(tmp_path / "tokenizer.model")
    sentences = plain_text(rng)[:100] + odd_text(rng)
    rows = [[1], [1, 1, 5], [5, 1]]
    rows += [rng.choices(range(4, tokenizer.vocab_size), k=k % 13) for k in range(500)]
    answer = call(
        "tokenize", model=str(tmp_path / "tokenizer.model"), sentences=sentences,
        rows=[[2, *row, 3, 0] for row in rows],
    )["result"]  # fmt: skip
    for sentence, ours, ids in zip(
        sentences, answer["ids"], tokenizer.encode(sentences).to_list(), strict=True
    ):
        assert [*ours, 3] == ids, ascii(sentence)
    expected = tokenizer.decode(tf.ragged.constant(rows)).numpy()
    assert answer["texts"] == [text.decode() for text in expected]


def change(**fields):
    """Returns a function that changes a model, such as `trainer_spec__byte_fallback=True`."""

    def apply(proto):
        for name, value in fields.items():
            message, _, field = name.partition("__")
            setattr(getattr(proto, message), field, value)

    return apply


def add_piece(kind):
    return lambda proto: proto.pieces.add(piece="<mask>", score=0, type=kind)


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (change(trainer_spec__model_type=3), "is neither a BPE nor a unigram model"),
        (change(trainer_spec__model_type=4), "is neither a BPE nor a unigram model"),
        (change(trainer_spec__byte_fallback=True), "encodes unknown characters as bytes"),
        (change(trainer_spec__treat_whitespace_as_suffix=True), "does not treat white space in"),
        (change(normalizer_spec__add_dummy_prefix=False), "does not treat white space in"),
        (change(normalizer_spec__remove_extra_whitespaces=False), "does not treat white space in"),
        (change(normalizer_spec__escape_whitespaces=False), "does not treat white space in"),
        (change(denormalizer_spec__precompiled_charsmap=b"123"), "has rules for decoding"),
        (add_piece(4), "has user-defined pieces"),
        (add_piece(5), "is a BPE model with unused pieces"),
        (lambda proto: proto.pieces.pop(1), "has no unknown piece"),
    ],
)
def test_a_vocabulary_of_another_kind_is_refused(alter, message, tmp_path):
    program("node")
    proto = sentencepiece_model_pb2.ModelProto.FromString(vocabulary("bpe", True))
    alter(proto)
    (tmp_path / "other.model").write_bytes(proto.SerializeToString())
    answer = call("tokenize", model=str(tmp_path / "other.model"), sentences=["a"], rows=[])
    assert answer["error"].startswith(f"This page cannot use the vocabulary: it {message}")


def test_a_damaged_vocabulary_is_refused(tmp_path):
    program("node")
    for content in (vocabulary("bpe", True)[:-10], b"\x0f" * 40):
        (tmp_path / "damaged.model").write_bytes(content)
        answer = call("tokenize", model=str(tmp_path / "damaged.model"), sentences=[], rows=[])
        assert answer["error"] == "The vocabulary is damaged."


def test_sentences_are_truncated_as_by_the_translator(tmp_path):
    program("node")
    (tmp_path / "tokenizer.model").write_bytes(vocabulary("bpe", True))
    tokenizer = SentencePieceTokenizer(vocabulary("bpe", True))
    sentences = [
        "", "  ", "in 17 weeks", "weeks " * 30, "in", "1" * 5, "1" * 6, "1" * 7,
        " " * 500, " " * 500 + "in", "ж" * 223, "ж" * 224, "ж" * 225, "a" + "語" * 200,
    ]  # fmt: skip
    signature = {"beam_size": None, "batch_size": 1, "source_length": 7, "target_length": 7}
    metadata = {"max_length": 7, "tokens": {"pad": 0, "eos": 3}, "signatures": [signature]}
    model = str(tmp_path / "tokenizer.model")
    answer = call("truncated", model=model, sentences=sentences, metadata=metadata)["result"]
    ids, truncated, empty = encode(tokenizer, tf.constant(sentences), 7)
    expected = zip(ids.to_list(), truncated.numpy(), empty.numpy(), strict=True)
    assert answer == [[row, bool(cut), bool(nothing)] for row, cut, nothing in expected]
    changed = {**metadata, "signatures": [{**signature, "batch_size": 4}]}
    answer = call("truncated", model=model, sentences=[], metadata=changed)
    message = "The file has no signature for a single input: export it with batch size 1."
    assert answer["error"].endswith(message)


def test_the_address_of_a_model_is_relative_to_the_page():
    """The worker, whose script may be in another folder, gets whole addresses."""
    program("node")
    page = "https://example.com/app/page.html?lang=de#top"
    urls = [
        "model.tflite", "../models/model.tflite?version=2", "/model.onnx", "//example.org/a.onnx",
        "https://example.org/model.tflite", "blob:https://example.com/9d2c",
    ]  # fmt: skip
    result = call("addresses", page=page, urls=urls)["result"]
    assert result == [urllib.parse.urljoin(page, url) for url in urls]


def test_the_archive_after_a_file_is_read(tmp_path):
    program("node")
    path = tmp_path / "model.tflite"
    path.write_bytes(b"a model" * 9)
    assert call("unpack", file=str(path)) == {"result": []}
    with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("tokenizer.model", bytes(range(256)))
        archive.writestr("metadata.json", "{}")
    members = [["tokenizer.model", bytes(range(256)).hex()], ["metadata.json", b"{}".hex()]]
    assert call("unpack", file=str(path)) == {"result": members}
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.txt", "a" * 99)
    members.append(["more.txt", (b"a" * 99).hex()])
    assert call("unpack", file=str(path)) == {"result": members}
    with zipfile.ZipFile(path, "a", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("most.txt", "a" * 99)
    error = "most.txt is compressed by the unknown method 12."
    assert call("unpack", file=str(path)) == {"error": error}


@pytest.mark.parametrize(
    ("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_missing_programs_skip_a_test_but_fail_it_in_ci(monkeypatch, required, outcome):
    monkeypatch.setenv("KERAS_TRANSFORMER_REQUIRE_BROWSER", required)
    with pytest.raises(outcome, match="is not tested: no nothing-of-this-name here"):
        program("nothing-of-this-name")


def recognizer_of_bytes(tmp_path, **metadata):
    """Metadata of a recogniser with two signatures, and the files of its byte-level vocabulary."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<|en|>", "<|de|>", "<|do|>", "<|no|>", "<|0.0|>"]
    tokenizer = ByteBPETokenizer([*special, *CHARACTERS], [], no_text=special[4:])
    both, files = Tokenizers.of(tokenizer), {}
    for name, content in (both.files() | both.code_points()).items():
        (tmp_path / name).write_bytes(content)
        files[name] = str(tmp_path / name)
    signatures = [
        {
            "name": f"transcribe_{batch}x{size}",
            "batch_size": batch,
            "source_length": size,
            "target_length": 1,
            "beam_size": None,
        }
        for batch in (4, 1)
        for size in (50, 20)
    ]
    base = {"task": "speech_recognition", "signatures": signatures, "tokens": {}}
    speech = {"sample_rate": 100, "hop_length": 5, "max_seconds": 0.5}
    return files, base | {"speech": speech} | metadata


def ids_of(text):
    return [9 + byte for byte in text.encode()]


def test_a_recording_gets_the_shortest_signature_and_its_prompt_is_not_part_of_the_text(tmp_path):
    program("node")
    files, metadata = recognizer_of_bytes(tmp_path, prompt_length=1)
    tokens = [*ids_of("x"), 8, *ids_of(" ab"), 8, *ids_of("é"), 2, 1]
    calls = [[20, {}], [21, {}], [51, {}], [4, {}], [9, {"language": "de"}]]
    request = {"files": files, "metadata": metadata, "tokens": tokens}
    result = call("transcribe", calls=calls, **request)["result"]
    assert result["texts"] == [
        " abé", " abé",
        "The recording lasts 0.51 s, and the model reads at most 0.5 s: cut it into parts.",
        "The recording is too short: 4 samples.", "The model has no choice of language.",
    ]  # fmt: skip
    assert result["given"] == [
        ["transcribe_1x20", {"samples": [0.5] * 20, "lengths": [20]}],
        ["transcribe_1x50", {"samples": [0.5] * 21 + [0] * 29, "lengths": [21]}],
    ]
    metadata["task"] = "translation"
    answer = call("transcribe", calls=[], **request)
    assert answer["error"] == "This page cannot use a model for translation."


@pytest.mark.parametrize(
    ("no_speech", "mean", "thresholds", "text"),
    [
        (0.61, -1.1, (0.6, -1.0), ""),
        (0.59, -1.1, (0.6, -1.0), "a"),
        (0.61, -0.9, (0.6, -1.0), "a"),
        (0.61, -1.1, (1.0, -1.0), "a"),
        (0.61, -1.1, None, "a"),
    ],
)
def test_a_recording_without_speech_has_no_text(no_speech, mean, thresholds, text, tmp_path):
    program("node")
    names = "no_speech_threshold", "log_probability_threshold"
    silence = thresholds and dict(zip(names, thresholds, strict=True))
    files, metadata = recognizer_of_bytes(tmp_path, prompt_length=0, silence=silence)
    request = {"files": files, "metadata": metadata, "tokens": [*ids_of("a"), 2]}
    numbers = {"no_speech": [no_speech], "mean_log_probability": [mean]}
    result = call("transcribe", calls=[[9, {}]], numbers=numbers, **request)["result"]
    assert result["texts"] == [text]


def test_choices_are_numbers_and_the_length_of_a_prompt_depends_on_them(tmp_path):
    program("node")
    choices = {
        "prompt": [4, 6], "languages": {"en": 4, "de": 5}, "tasks": {"do": 6},
        "no_timestamps_id": 7, "timestamp_id": 8, "language": "auto", "task": "do",
        "timestamps": False,
    }  # fmt: skip
    files, metadata = recognizer_of_bytes(tmp_path, choices=choices)
    calls = [
        [9, {}], [9, {"language": "de", "timestamps": True}], [9, {"language": "fr"}],
        [9, {"voice": "x"}],
    ]  # fmt: skip
    tokens = [*ids_of("abcdef"), 2]
    request = {"files": files, "metadata": metadata, "tokens": tokens, "calls": calls}
    result = call("transcribe", **request)["result"]
    assert result["texts"] == [
        "def", "cdef",
        "The model does not know the language fr.", "The model has no choice of voice.",
    ]  # fmt: skip
    numbers = [{key: row[key] for key in row if key not in ("samples", "lengths")}
               for _, row in result["given"]]  # fmt: skip
    assert numbers == [
        {"language": [-1], "task": [6], "timestamps": [0]},
        {"language": [5], "task": [6], "timestamps": [1]},
    ]
