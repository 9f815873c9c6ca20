"""The variants that markers keep are spread, and the others get the right marks."""

import pytest
from variants import mark_variants


class Item:
    def __init__(self, nodeid, *markers):
        self.nodeid, self.markers = nodeid, [marker.mark for marker in markers]

    def get_closest_marker(self, name):
        return next((marker for marker in self.markers if marker.name == name), None)

    def add_marker(self, marker):
        self.markers.append(marker.mark)

    @property
    def marks(self):
        return {marker.name for marker in self.markers} & {"slow", "long"}


def items_of(test, *markers, count=7):
    return [Item(f"tests/test_x.py::{test}[{number}]", *markers) for number in range(count)]


def test_variants_at_equal_distances_stay_fast():
    items = items_of("test_some", pytest.mark.fast_variants(2))
    others = items_of("test_all")
    mark_variants([*items, *others])
    assert [number for number, item in enumerate(items) if not item.marks] == [3, 6]
    assert items[0].marks == {"slow", "long"}
    assert not any(item.marks for item in others)


def test_other_variants_can_be_left_to_ci():
    items = items_of("test_some", pytest.mark.fast_variants(1, ci=2), count=5)
    mark_variants(items)
    assert [item.marks for item in items[1::2]] == [{"slow"}, {"slow"}]
    assert [item.marks for item in items[::2]] == [{"slow", "long"}, {"slow", "long"}, set()]


def test_slow_variants_at_equal_distances_stay_in_ci():
    kept = pytest.mark.slow_variants(7)
    items = items_of("test_some", pytest.mark.slow, kept, count=14)
    fast, long = (
        Item("tests/test_x.py::test_some[fast]", kept),
        Item("tests/test_x.py::test_some[a]", kept, pytest.mark.slow, pytest.mark.long),
    )
    mark_variants([*items, fast, long])
    assert [number for number, item in enumerate(items) if "long" not in item.marks] == list(
        range(1, 14, 2)
    )
    assert not fast.marks


def test_more_variants_than_there_are_are_all_kept():
    items = items_of("test_some", pytest.mark.fast_variants(9), count=2)
    mark_variants(items)
    assert not any(item.marks for item in items)
