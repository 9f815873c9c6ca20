"""Each report determines its summary, and no summary is in two splits."""

import re
from types import SimpleNamespace

import pytest

from keras_transformer.training.demos import reports
from keras_transformer.training.demos.reports import Reports
from keras_transformer.training.settings.sources import open_source

SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def pairs():
    return Reports().pairs(3000, seed=3)


def settings(data_dir, **changes):
    fields = {"source": "reports", "examples": 300, "seed": 1, "data_dir": data_dir}
    return SimpleNamespace(**{**fields, **changes})


def first(patterns, report):
    matches = [re.search(pattern, report) for pattern in patterns]
    values = [match[1] for match in matches if match]
    assert len(values) <= 1, report
    return values[0] if values else None


def read(report):
    """Derives the summary of a report with an independent parser."""
    end = r"\.(?= (?:The|All|It|An|A|Last|Somebody|There) |$)"  # not the full stop of "St. Lucia"
    place = first(
        [rf"The customer is from (.*?){end}", rf"The goods are sent to (.*?){end}"], report
    )
    price = first([rf"The price is (.*?){end}", rf"All of it costs (.*?){end}"], report)
    day = first([rf"It is due on (.*?){end}", rf"It must arrive by (.*?){end}"], report)
    summary = f"An order from {place}"
    summary += f" for {price}" if price else ""
    return summary + (f", due on {day}." if day else ".")


def test_a_summary_can_be_derived_from_its_report(pairs):
    for report, summary in pairs:
        assert read(report) == summary
    lengths = [
        report.replace("St. ", "").replace("U.S. ", "").count(". ") + 1 for report, _ in pairs
    ]
    assert min(lengths) == 1 and max(lengths) == 6


def test_most_reports_have_details_that_the_summary_omits(pairs):
    others = [reports.OTHER_PLACE, reports.OTHER_PRICE, reports.OTHER_DAY]
    others += [reports.LANGUAGE, reports.WEIGHT]
    for templates in others:
        beginning = [template.partition("{}")[0] for template in templates]
        for text in beginning:
            share = sum(text in report for report, _ in pairs) / len(pairs)
            assert 0.1 < share < 0.2, text
    for part in (" for ", ", due on "):
        share = sum(part in summary for _, summary in pairs) / len(pairs)
        assert 0.8 < share < 0.9


def test_the_seed_determines_the_reports(pairs):
    assert Reports().pairs(50, seed=3) == pairs[:50]
    assert Reports().pairs(50, seed=4) != pairs[:50]


def test_held_out_contents_are_in_a_single_split(tmp_path):
    data = open_source(settings(tmp_path))
    rows = {split: list(data.rows(split).as_numpy_iterator()) for split in SPLITS}
    assert {split: len(found) for split, found in rows.items()} == {
        "train": 240,
        "validation": 30,
        "test": 30,
    }
    for side in (0, 1):
        texts = [row[side] for split in SPLITS for row in rows[split]]
        assert len(set(texts)) == len(texts) == 300
    assert [(a.decode(), b.decode()) for a, b in rows["train"]] == [
        pair for pair in Reports().pairs(300, 1) if pair[0].encode() in dict(rows["train"])
    ]
    again = open_source(settings(tmp_path))  # from disk
    assert list(again.rows("test").as_numpy_iterator()) == rows["test"]
    assert "cldr_reports/300-seed1-babel" in data.description
