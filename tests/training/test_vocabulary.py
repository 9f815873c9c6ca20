"""A vocabulary is reproducible, loses no text, and fits its corpus."""

import random
import re
import sys
import tempfile
import unicodedata
from types import SimpleNamespace

import pytest
import regex
import sentencepiece

from keras_transformer.text.tokenizers import SentencePieceTokenizer
from keras_transformer.training import vocabulary
from keras_transformer.training.vocabulary import learn_vocabulary

IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
WORDS = [
    "ein", "zwei", "drei", "Größe", "2024", "17", "m²", "½", "…", "™", "ﬁ", "naïve", "ệ", "Москва",
    "東京", "～", "“ja”", "Ω",
]  # fmt: skip


def sample_text(lines=400):
    rng = random.Random(5)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(lines)]


def settings(**changes):
    fields = {"size": 80, "model_type": "bpe", "split_digits": True, "character_coverage": 1.0}
    return SimpleNamespace(**{**fields, **changes})


def processor(text=None, **changes):
    model = learn_vocabulary(text or sample_text(), settings(**changes))
    return sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_size_special_tokens_and_kind_are_as_requested(model_type):
    pieces = processor(size=57, model_type=model_type)
    assert pieces.vocab_size() == 57
    assert [pieces.pad_id(), pieces.unk_id(), pieces.bos_id(), pieces.eos_id()] == [0, 1, 2, 3]
    proto = sentencepiece.sentencepiece_model_pb2.ModelProto.FromString(
        pieces.serialized_model_proto()
    )
    kinds = {"unigram": 1, "bpe": 2}
    assert proto.trainer_spec.model_type == kinds[model_type]


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_the_same_text_gives_the_same_bytes(model_type):
    text = sample_text()
    options = settings(size=57, model_type=model_type)
    first = learn_vocabulary(text, options)
    assert learn_vocabulary(iter(text), options) == first
    assert learn_vocabulary([line.encode() for line in text], options) == first
    assert learn_vocabulary(text[:200], options) != first
    assert tempfile.gettempdir().encode() not in first  # no trace of the machine


def test_the_same_sample_of_a_large_corpus_is_drawn(monkeypatch):
    # 100 sentences with "x" and 900 without: a sample contains both, in either order.
    text = ["x y"] * 100 + sample_text(900)
    monkeypatch.setattr(vocabulary, "MAX_SENTENCES", 150)
    first = learn_vocabulary(text, settings(size=75))
    assert learn_vocabulary(text, settings(size=75)) == first
    pieces = sentencepiece.SentencePieceProcessor(model_proto=first)
    for word in ("x", "Москва"):
        assert pieces.unk_id() not in pieces.encode(word)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("m² ½ … ™ ﬁ Ω ～", "m² ½ … ™ ﬁ Ω ～"),  # nothing is folded
        ("Gro\u0308ße", "Größe"),
        ("nai\u0308ve", "naïve"),
        ("e\u0323\u0302", "ệ"),  # both marks separate
        ("\u1eb9\u0302", "ệ"),  # one mark separate
        ("\u2126", "Ω"),  # the sign "ohm" is canonically equivalent to the letter
        ("ein\u00a0zwei\u202fdrei\u3000ein\tzwei", "ein zwei drei ein zwei"),
        ("  ein   zwei ", "ein zwei"),
        ("\ufeffein zw\u200bei", "ein zwei"),
    ],
)
def test_text_is_normalised_to_nfc_with_plain_spaces_and_no_further(text, expected):
    pieces = processor()
    assert pieces.decode(pieces.encode(text)) == expected


@pytest.mark.slow
def test_every_unicode_character_is_composed_as_in_python():
    pieces = processor()
    characters = [
        chr(code)
        for code in range(0x21, sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000  # surrogates
        and not 0xAC00 <= code <= 0xD7A3  # Hangul
        and not chr(code).isspace()
    ]
    changed = [c for c in characters if unicodedata.normalize("NFD", c) != c]
    assert len(changed) > 2000
    for character in changed:
        decomposed = unicodedata.normalize("NFD", character)
        expected = "▁" + unicodedata.normalize("NFC", character)
        assert pieces.normalize(character) == expected
        assert pieces.normalize(decomposed) == expected
    for character in characters[::97]:
        if unicodedata.normalize("NFC", character) == character:
            kept = "" if IGNORABLE.fullmatch(character) else f"▁{character}"
            assert pieces.normalize(character) == kept
    invisible = [character for character in characters if IGNORABLE.fullmatch(character)]
    assert len(invisible) > 4000 and pieces.normalize("".join(invisible)) == ""


INVISIBLE = "\u00ad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u200e\u2060\u2069\u3164\ufe0f\ufeff"
INVISIBLE += "\ufff0\U0001d173\U000e0001\U000e0fff"


def test_invisible_characters_that_training_never_saw_are_dropped():
    model = learn_vocabulary(sample_text(), settings())
    pieces, graph = sentencepiece.SentencePieceProcessor(), SentencePieceTokenizer(model)
    pieces.load_from_serialized_proto(model)
    for character in INVISIBLE:
        texts = [f"e{character}in", f"{character}ein{character} zwei{character}", character]
        plain = [text.replace(character, "") for text in texts]
        assert pieces.encode(texts) == pieces.encode(plain)
        assert graph.encode(texts).to_list() == graph.encode(plain).to_list()
    assert pieces.encode(INVISIBLE) == [] and pieces.normalize("\u2001\u00a0x") == "▁x"
    assert pieces.unk_id() in pieces.encode("e\u0ea1in")  # visible


def test_joiners_that_training_has_seen_stay():
    joined = "می\u200cخواهم"
    pieces = processor([*sample_text(), *([joined] * 50)], size=80)
    assert pieces.decode(pieces.encode(joined)) == joined
    assert pieces.encode(f"{joined}\u200d\u00ad") == pieces.encode(joined)
    assert pieces.encode(joined.replace("\u200c", "")) != pieces.encode(joined)
    assert pieces.decode(pieces.encode("ein\u200b")) == "ein"  # always dropped


def test_every_digit_is_a_token():
    assert processor().encode("2024", out_type=str) == ["▁", "2", "0", "2", "4"]
    whole = processor(["2024 2025"] * 50, size=16, split_digits=False)
    assert len(whole.encode("2024", out_type=str)) < 5


def test_characters_beyond_the_coverage_are_unknown():
    text = ["ein"] * 999 + ["東"]
    covered = processor(text, size=11, character_coverage=1.0)
    assert covered.unk_id() not in covered.encode("東")
    uncovered = processor(text, size=10, character_coverage=0.99)
    assert uncovered.unk_id() in uncovered.encode("東")
    assert uncovered.decode(uncovered.encode("ein 東")).split() == ["ein", "⁇"]


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_a_size_too_large_for_the_text_is_reported_with_the_largest_possible(model_type):
    text = sample_text(30)
    with pytest.raises(
        ValueError, match="vocabulary.size. must be at most .*vocabulary.size=9000"
    ) as error:
        learn_vocabulary(text, settings(size=9000, model_type=model_type))
    largest = int(re.search(r"at most (\d+)", str(error.value))[1])
    assert "\n" not in str(error.value)
    assert processor(text, size=largest, model_type=model_type).vocab_size() == largest
    with pytest.raises(ValueError, match=f"`vocabulary.size` must be at most {largest} "):
        learn_vocabulary(text, settings(size=largest + 1, model_type=model_type))


def test_a_size_too_small_for_the_characters_is_reported_with_the_smallest_possible():
    text = sample_text()
    with pytest.raises(
        ValueError, match="vocabulary.size. must be at least .*vocabulary.size=20"
    ) as error:
        learn_vocabulary(text, settings(size=20))
    smallest = int(re.search(r"at least (\d+)", str(error.value))[1])
    assert processor(text, size=smallest).vocab_size() == smallest
    with pytest.raises(ValueError, match=f"vocabulary.size. must be at least {smallest}, to"):
        learn_vocabulary(text, settings(size=smallest - 1))


@pytest.mark.parametrize("text", [[], [""], ["  ", b""]])
def test_an_empty_text_is_refused(text):
    with pytest.raises(ValueError, match="training data must have text .*: no text at all"):
        learn_vocabulary(text, settings())


def test_any_other_failure_is_reported_in_one_line():
    with pytest.raises(ValueError, match="the vocabulary cannot be learned: ") as error:
        learn_vocabulary(["ein"] * 9, settings(model_type="nonsense"))
    assert "\n" not in str(error.value)


def test_an_error_of_the_source_is_passed_on_unchanged():
    def broken():
        yield "ein zwei"
        raise FileNotFoundError("train.en is gone")

    with pytest.raises(FileNotFoundError, match="train.en is gone"):
        learn_vocabulary(broken(), settings())


def test_no_file_is_left_and_nothing_is_printed(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    learn_vocabulary(sample_text(), settings())
    with pytest.raises(ValueError):
        learn_vocabulary([], settings())
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
@pytest.mark.slow
def test_real_text_survives_a_round_trip_character_by_character(data_dir):
    folder = data_dir / "multi30k"
    text = [
        line.rstrip("\n")
        for name in ("train.en", "train.de")
        for line in (folder / name).open(encoding="utf-8")
    ]
    pieces = processor(text, size=8000, split_digits=False)
    for line in text[::5]:
        expected = " ".join(unicodedata.normalize("NFC", line).split())
        assert pieces.decode(pieces.encode(line)) == expected
