"""The benchmark of a reranker of Debian's descriptions: its texts, BM25 and metrics."""

import math

PACKAGES = """\
Package: a-doc
Source: a (1.0)
Description-md5: 1

Package: a
Description-md5: 2

Package: b
Description-md5: 3

Package: c
Description-md5: 4

"""
TRANSLATION = """\
Description-md5: 1
Description-en: manual of a
 The manual.

Description-md5: 2
Description-en: program a
 It sorts lines.
 .
 It is fast.

Description-md5: 3
Description-en: Program A
 Another one.

Description-md5: 4
Description-en: library c
 It draws.

"""


def test_there_is_one_package_for_each_source_and_no_title_twice(tmp_path):
    from reranking import packages_of

    for name, text in (("packages", PACKAGES), ("translation", TRANSLATION)):
        (tmp_path / name).write_text(text)
    found = packages_of(tmp_path / "packages", tmp_path / "translation")
    assert found == {
        "a": ("program a", "It sorts lines. It is fast."),
        "c": ("library c", "It draws."),
    }


def test_bm25_and_metrics_are_their_formulas():
    from reranking import bm25_search, metrics_of

    passages = ["a b b c", "b", "c c d", "e"]
    words, mean = [text.split() for text in passages], 9 / 4

    def score(query, text):
        total = 0.0
        for word in {*query.split()}:
            with_word = sum(word in other for other in words)
            if with_word:
                weight = math.log(1 + (4 - with_word + 0.5) / (with_word + 0.5))
                times = text.count(word)
                norm = 1.2 * (0.25 + 0.75 * len(text) / mean)
                total += weight * times * 2.2 / (times + norm)
        return total

    for query in ("b c", "d", "A", "x", "c b b e"):
        scores = [score(query.lower(), text) for text in words]
        expected = sorted(range(4), key=lambda place: -scores[place])[:3]
        assert bm25_search([query], passages, 3) == [expected]
    assert metrics_of([4, 7, 9], 7) == {"mrr_at_10": 0.5, "recall_at_1": 0, "recall_of_all": 1}
    assert metrics_of([4, 7, 9], 1) == {"mrr_at_10": 0.0, "recall_at_1": 0, "recall_of_all": 0}
