"""Glossaries, lists of banned phrases, and terms as words of texts."""

import pytest

from keras_transformer.text.terms import Finder, contains, read_glossary, read_phrases


def test_lines_with_the_same_source_term_list_spellings(tmp_path):
    path = tmp_path / "glossary.tsv"
    path.write_text("\ufeffdog\tHund\n\nhot dog\tWurst\ndog\tHunde\ndog\tHund\n", "utf-8")
    assert read_glossary(path) == {"dog": ("Hund", "Hunde"), "hot dog": ("Wurst",)}


@pytest.mark.parametrize("line", ["dog", "dog\t", "\tHund", "dog\tHund\tHunde"])
def test_a_bad_line_of_a_glossary_is_named(tmp_path, line):
    path = tmp_path / "glossary.tsv"
    path.write_text(f"cat\tKatze\n{line}\n", "utf-8")
    with pytest.raises(ValueError, match=r"glossary.tsv, line 2: a line of a glossary is a source"):
        read_glossary(path)


def test_phrases_are_lines_and_an_empty_file_is_an_error(tmp_path):
    path = tmp_path / "banned.txt"
    path.write_text("ein Hund\n\n Katze \n", "utf-8")
    assert read_phrases(path) == ("ein Hund", "Katze")
    path.write_text("\n", "utf-8")
    with pytest.raises(ValueError, match=r"banned.txt has no phrases"):
        read_phrases(path)


@pytest.mark.parametrize(
    "text, terms",
    [
        ("A dog, a cat", ["dog"]),
        ("Dog!", ["dog"]),
        ("dogs and DOG", []),
        ("a hot dog and a dog and a dog", ["hot dog", "dog"]),
        ("hot - dog", ["dog"]),
        ("我爱狗", ["狗"]),
        ("", []),
    ],
)
def test_terms_are_found_as_whole_words_and_the_longest_wins(text, terms):
    assert Finder(["dog", "hot dog", "狗"])(text) == terms


def test_a_text_contains_a_term_as_whole_words():
    assert contains("(Ein Hund)", "ein Hund") and contains("der Hund.", "Hund")
    assert not contains("Hunde", "Hund") and not contains("ein", "ein Hund")
