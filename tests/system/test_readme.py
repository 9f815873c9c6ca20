"""The README's tables and chart have the values of `benchmarks/results.json`."""

import importlib.util
import json
import re
import sys

import pytest
from documents import ROOT, read

RESULTS = json.loads(read("benchmarks/results.json"))
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def table(heading):
    """Returns the rows below the header that begins with `heading`, as lists of cells."""
    lines = read("README.md").split("\n")
    (first,) = [n for n, line in enumerate(lines) if line.startswith(f"| {heading}")]
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])


def test_the_table_of_quality_has_the_results():
    assert table("quality") == RESULTS["quality"]["rows"]


def test_the_table_of_speed_has_the_results():
    rows = RESULTS["decoding"]["rows"]
    assert table("milliseconds") == [[name, *map("{:,}".format, times)] for name, *times in rows]


def test_the_results_equal_those_on_the_benchmarks_page():
    """A value that is measured again must be replaced in both."""
    there = set(NUMBER.findall(read("docs/benchmarks.md")))
    values = [cell for row in table("quality") for cell in row[1:]]
    values += [cell for row in table("milliseconds") for cell in row[1:]]
    numbers = {number for value in values for number in NUMBER.findall(value)}
    assert len(numbers) > 15
    assert numbers <= there, f"not on docs/benchmarks.md: {sorted(numbers - there)}"


def test_the_chart_is_drawn_from_the_results(tmp_path, monkeypatch):
    """The texts of the committed chart equal those of a new one; outlines depend on fonts."""
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("chart", ROOT / "benchmarks" / "chart.py")
    chart = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "chart", chart)
    spec.loader.exec_module(chart)
    committed = chart.CHART.read_text(encoding="utf-8")
    monkeypatch.setattr(chart, "CHART", tmp_path / "speed.svg")
    chart.main()
    drawn = chart.CHART.read_text(encoding="utf-8")
    texts = [re.findall(r"<text[^>]*>([^<]+)</text>", svg) for svg in (committed, drawn)]
    assert texts[0] == texts[1] and "1,733" in texts[0]
