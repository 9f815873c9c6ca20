"""The tables of variants name tests that exist, and the variants that are kept are spread."""

import ast
import functools
import pathlib

import pytest
from variants import CI_VARIANTS, FAST_VARIANTS, SLOW_VARIANTS, mark_variants

ROOT = pathlib.Path(__file__).parents[1]


class Item:
    def __init__(self, nodeid, *markers):
        self.nodeid, self.markers = nodeid, [*markers]

    def get_closest_marker(self, name):
        return next((marker for marker in self.markers if marker.name == name), None)

    def add_marker(self, marker):
        self.markers.append(marker)


@functools.cache
def functions_of(file):
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", sorted({*FAST_VARIANTS, *CI_VARIANTS, *SLOW_VARIANTS}))
def test_every_entry_is_a_test(name):
    file, _, function = name.partition("::")
    assert function in functions_of(file)


def test_variants_at_equal_distances_stay_fast(monkeypatch):
    name = "tests/layers/test_keras_masks.py::test_self_attention"
    monkeypatch.setitem(FAST_VARIANTS, name, 2)
    items = [Item(f"{name}[{number}]") for number in range(7)] + [Item("tests/x.py::test_y[a]")]
    mark_variants(items)
    assert [number for number, item in enumerate(items) if not item.markers] == [3, 6, 7]
    assert {marker.name for marker in items[0].markers} == {"slow", "long"}


def test_no_test_is_in_both_tables_of_fast_ones():
    assert not FAST_VARIANTS.keys() & CI_VARIANTS.keys()


def test_a_fast_test_can_be_left_to_ci(monkeypatch):
    name = "tests/layers/test_dropout.py::test_dtypes_and_xla"
    monkeypatch.delitem(FAST_VARIANTS, name)
    monkeypatch.setitem(CI_VARIANTS, name, 0)
    item = Item(name)
    mark_variants([item])
    assert [marker.name for marker in item.markers] == ["slow"]


def test_slow_variants_at_equal_distances_stay_in_ci(monkeypatch):
    name = (
        "tests/decoding/test_cached_kinds.py::test_greedy_search_equals_the_search_without_a_cache"
    )
    monkeypatch.setitem(SLOW_VARIANTS, name, 7)
    items = [Item(f"{name}[{number}]", pytest.mark.slow) for number in range(14)]
    mark_variants([*items, Item(f"{name}[fast]"), Item(f"{name}[long]", pytest.mark.long)])
    kept = [number for number, item in enumerate(items) if not item.get_closest_marker("long")]
    assert kept == list(range(1, 14, 2))
