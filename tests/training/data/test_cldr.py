"""The phrases: a source text has one target, phrases read naturally, and builds are complete."""

import itertools
import os
import re
from types import SimpleNamespace

import pytest
from babel import Locale, dates, numbers

from keras_transformer.training.data.sources import cldr
from keras_transformer.training.data.sources.dice import Dice
from keras_transformer.training.data.sources.phrases import MAX_CHARACTERS, PhraseBook
from keras_transformer.training.data.sources.words import Words
from keras_transformer.training.settings.sources import open_source

SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def book():
    return PhraseBook(Locale("en"), Locale("de"))


@pytest.fixture(scope="module")
def phrases(book):
    return book.phrases(8000, seed=3)


def settings(data_dir, **changes):
    fields = {
        "source": "cldr",
        "source_language": "en",
        "target_language": "de",
        "examples": 300,
        "seed": 1,
        "data_dir": data_dir,
    }
    return SimpleNamespace(**{**fields, **changes})


def pairs_of(data):
    return {split: list(data.rows(split).as_numpy_iterator()) for split in SPLITS}


def refused(options, match):
    with pytest.raises(ValueError, match=match) as error:
        open_source(options)
    assert "\n" not in str(error.value)


# Phrases


@pytest.mark.slow
@pytest.mark.parametrize("languages", ["en de", "de en", "ja en", "hi fr", "ar ru"])
def test_no_source_text_has_two_targets(languages):
    book = PhraseBook(*map(Locale, languages.split()))
    meanings = {}
    for source, target in itertools.islice(book.draw(5), 6000):
        assert meanings.setdefault(source, target) == target
    assert len(meanings) > 5000


def test_dates_that_are_equal_in_two_formats_keep_one_target(book):
    """ "May 4, 2025" is both the long and the medium format of English, not of German."""
    dice = Dice(1)
    meanings = dict(book.date(dice) for _ in range(5000))
    may = {text for text in meanings if re.fullmatch(r"May \d+, \d{4}", text)}
    assert len(may) > 50
    for text in may:
        day, year = re.findall(r"\d+", text)
        assert meanings[text] == f"{day}. Mai {year}"


@pytest.mark.slow
def test_both_sides_are_rendered_by_babel_from_one_value(book):
    """Parses the phrases in one language and renders them in the other."""
    counts = dict.fromkeys(("time", "number", "medium date", "weeks", "percent"), 0)
    for source, target in itertools.islice(book.draw(9), 20000):
        if match := re.fullmatch(r"(\d+):(\d\d) (AM|PM)", source):
            hour = int(match[1]) % 12 + 12 * (match[3] == "PM")
            assert target == f"{hour:02d}:{match[2]}"
            counts["time"] += 1
        elif re.fullmatch(r"[\d,]+(\.\d+)?", source):
            value = numbers.parse_decimal(source, locale="en")
            assert numbers.parse_decimal(target, locale="de") == value
            counts["number"] += 1
        elif re.fullmatch(r"(?!May)[A-Z][a-z]{2} \d+, \d{4}", source):
            month, day, year = re.split(r",? ", source)
            names = dates.get_month_names("abbreviated", locale="en")
            number = next(key for key, name in names.items() if name == month)
            assert target == f"{int(day):02d}.{number:02d}.{year}"
            counts["medium date"] += 1
        elif match := re.fullmatch(r"(in )?(\d+) weeks?( ago)?", source):
            word = "Woche" if match[2] == "1" else "Wochen"
            preposition = "in " if match[1] else "vor " if match[3] else ""
            assert target == f"{preposition}{match[2]} {word}"
            counts["weeks"] += 1
        elif source.endswith("%") and ":" not in source:
            assert target == source.replace(".", ",").replace("%", " %")
            counts["percent"] += 1
    assert min(counts.values()) > 20, counts


@pytest.mark.parametrize(
    "pattern",
    [
        r"[A-Z]\w+, [A-Z]\w+, and [A-Z]\w+",  # Japan, Peru, and Chad
        r"[A-Z]\w+ or [A-Z]\w+",
        r"\w+day, \w+ \d+, \d{4}",
        r"\d+/\d+/\d\d, \d+:\d\d [AP]M",
        r"[1-4](st|nd|rd|th) quarter \d{4}",
        r"\w{3} \d+ – \d+, \d{4}",
        r"\d\d:\d\d – \d\d:\d\d",
        r"[\d.]+ (thousand|million|billion|trillion)",
        r"[\d,.]+ kilo\w+",
        r"[\d,]+\.\d\d [\w &]+ dollars",
        r"[\d,.]+ [\w &]+ per (kilogram|liter|hour|square meter)",
        r"in \d+ (days|weeks|months|years)",
        r"\d+ (seconds|minutes|hours|days) ago",
        r"[\w ]+: [\d,.]+ \w+",
        r".+ \(\w+ \d+, \d{4}\)",
    ],
)
def test_phrases_of_every_kind_are_drawn(phrases, pattern):
    assert sum(bool(re.fullmatch(pattern, text)) for text in phrases) >= 5


def test_phrases_are_short_and_typed_with_plain_spaces(phrases):
    for text in itertools.chain(phrases, phrases.values()):
        assert 0 < len(text) <= MAX_CHARACTERS
        assert text == " ".join(text.split(" ")).strip()
        assert not re.search("[\u00a0\u2000-\u200f\u202f\u00ad]", text)


def test_the_seed_determines_the_phrases(book, phrases):
    assert PhraseBook(Locale("en"), Locale("de")).phrases(8000, seed=3) == phrases
    fewer = book.phrases(1000, seed=3)
    assert list(fewer.items()) == list(phrases.items())[:1000]
    other = book.phrases(1000, seed=4)
    assert len(other.keys() & fewer.keys()) < 200


def test_ambiguous_words_are_left_out():
    words = Words.of(Locale("en"), Locale("de"))
    names = [pair for pool in (words.countries, words.languages) for pair in pool]
    assert len(dict(names)) == len(set(names))
    assert ("Georgia", "Georgien") in words.countries
    assert ("Georgian", "Georgisch") in words.languages
    assert not {"Unknown Region", "Pseudo-Accents", "Unknown language"} & dict(names).keys()
    # German has one word for the purity of gold and for the mass of a diamond, English has two.
    assert {"concentr-karat", "mass-carat"} <= set(words.units)
    back = Words(Locale("de"), Locale("en"))
    assert len({"concentr-karat", "mass-carat"} & set(back.units)) == 1


def test_amounts_are_in_current_currencies():
    currencies = Words.of(Locale("en"), Locale("de")).currencies
    names = {numbers.get_currency_name(code, locale="en") for code in currencies}
    assert {"Euro", "US Dollar", "Japanese Yen", "Swiss Franc"} <= names
    assert not {"German Mark", "French Franc"} & names


@pytest.mark.parametrize("language", ["cch", "pt_BR", "ar_EG"])
def test_a_locale_with_few_words_has_fewer_kinds_of_phrases(language):
    """Some locales lack names, units, currencies or whole formats."""
    for languages in (("en", language), (language, "en")):
        book = PhraseBook(*map(Locale.parse, languages))
        for kind in dict.fromkeys(book._kinds):
            dice = Dice(1)
            for _ in range(10):
                assert all(isinstance(text, str) and text for text in kind(dice))
        assert len(book.phrases(300, seed=1)) == 300


@pytest.mark.slow
def test_more_phrases_than_possible_are_refused(book):
    few = PhraseBook(Locale("en"), Locale("de"))
    few._kinds = [few.relative_time]
    with pytest.raises(ValueError, match="`examples` must not .*examples=2000, but en and de gave"):
        few.phrases(2000, seed=1)


# Dataset


def test_the_splits_share_no_source_text(tmp_path):
    data = open_source(settings(tmp_path))
    pairs = pairs_of(data)
    assert {split: len(pairs[split]) for split in SPLITS} == {
        "train": 240,
        "validation": 30,
        "test": 30,
    }
    assert [data.count(split) for split in SPLITS] == [240, 30, 30]
    sources = [source for split in SPLITS for source, _ in pairs[split]]
    assert len(set(sources)) == 300
    expected = PhraseBook(Locale("en"), Locale("de")).phrases(300, seed=1)
    merged = {s.decode(): t.decode() for split in SPLITS for s, t in pairs[split]}
    assert merged == expected


def test_two_thousand_pairs_are_held_out_of_a_large_corpus(monkeypatch):
    """Tests the split generator without building to disk."""
    builder = cldr.CldrPhrases(config=cldr.CldrConfig(examples=30000), data_dir="/nonexistent")
    monkeypatch.setattr(builder, "_generate_examples", list)
    monkeypatch.setattr(
        PhraseBook, "phrases", lambda self, count, seed: {str(n): str(n) for n in range(count)}
    )
    splits = builder._split_generators(None)
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 26000,
        "validation": 2000,
        "test": 2000,
    }
    for name in ("validation", "test"):  # sampled from the whole range, not from its end
        indices = [int(source) for source, _ in splits[name]]
        assert min(indices) < 300 and max(indices) > 29700


@pytest.mark.slow
def test_a_dataset_is_built_once_and_read_again(tmp_path, capfd):
    first = pairs_of(open_source(settings(tmp_path)))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.tfrecord*")}
    assert len(files) == 3
    assert pairs_of(open_source(settings(tmp_path))) == first
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.tfrecord*")}
    assert capfd.readouterr().out == ""
    assert pairs_of(open_source(settings(tmp_path / "elsewhere"))) == first


@pytest.mark.slow
def test_other_settings_make_other_data(tmp_path):
    base = pairs_of(open_source(settings(tmp_path)))
    for changes in ({"seed": 2}, {"examples": 310}, {"target_language": "fr"}):
        assert pairs_of(open_source(settings(tmp_path, **changes))) != base
    assert pairs_of(open_source(settings(tmp_path))) == base


def test_the_default_folder_is_that_of_tfds(tmp_path, monkeypatch):
    options = settings(tmp_path)
    del options.data_dir
    made = []
    monkeypatch.setattr(
        cldr, "CldrPhrases", lambda config, data_dir: made.append(data_dir) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        open_source(options)
    assert made == [None]


def test_an_interrupted_build_leaves_nothing_and_can_be_repeated(tmp_path, monkeypatch):
    generate = cldr.CldrPhrases._generate_examples

    def broken(self, pairs):
        yield from itertools.islice(generate(self, pairs), 20)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cldr.CldrPhrases, "_generate_examples", broken)
        with pytest.raises(KeyboardInterrupt):
            open_source(settings(tmp_path))
    assert not list(tmp_path.rglob("*.tfrecord*"))
    assert len(pairs_of(open_source(settings(tmp_path)))["train"]) == 240


@pytest.mark.slow
def test_two_processes_may_build_at_once(tmp_path, monkeypatch):
    """One of them finishes while the other is in the middle."""
    generate, others = cldr.CldrPhrases._generate_examples, []

    def slow(self, pairs):
        if not others:
            others.append(None)
            others.append(pairs_of(open_source(settings(tmp_path))))
        yield from generate(self, pairs)

    monkeypatch.setattr(cldr.CldrPhrases, "_generate_examples", slow)
    assert pairs_of(open_source(settings(tmp_path))) == others[1]
    assert not [name for name in os.listdir(tmp_path / "cldr_phrases") if "incomplete" in name]


def test_a_read_only_folder_is_reported(tmp_path):
    (tmp_path / "file").write_text("no folder")
    refused(settings(tmp_path / "file"), "`data_dir` must be a folder that can be written. .*file")


@pytest.mark.parametrize(
    "language, similar",
    [("engl", "en"), ("pt_XX", "pt_"), ("", "en, de"), ("zh-Hans-XX", "zh_Hans"), (7, "en, de")],
)
def test_an_unknown_locale_is_reported_in_one_line_with_valid_ones(tmp_path, language, similar):
    for argument in ("source_language", "target_language"):
        refused(
            settings(tmp_path, **{argument: language}),
            f"`{argument}` must be a locale of CLDR, such as .*({similar}).* "
            f"Received: {argument}={language!r}",
        )


def test_the_same_locale_twice_is_refused(tmp_path):
    refused(settings(tmp_path, target_language="EN"), "must differ. Received: 'en' and 'EN'")


def test_locales_may_be_written_as_in_web_standards(tmp_path):
    data = open_source(settings(tmp_path, source_language="pt-br", target_language="zh-Hant"))
    assert "pt_BR-zh_Hant-300-seed1-babel" in data.description
    assert data.count("train") == 240
