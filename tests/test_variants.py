"""The table of variants names tests that exist, and the variants that stay fast are spread."""

import ast
import pathlib

import pytest
from variants import FAST_VARIANTS, mark_variants

ROOT = pathlib.Path(__file__).parents[1]


class Item:
    def __init__(self, nodeid):
        self.nodeid, self.markers = nodeid, []

    def get_closest_marker(self, name):
        return next((marker for marker in self.markers if marker.name == name), None)

    def add_marker(self, marker):
        self.markers.append(marker)


@pytest.mark.parametrize("name", FAST_VARIANTS)
def test_every_entry_is_a_test(name):
    file, _, function = name.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_variants_at_equal_distances_stay_fast():
    name = "tests/layers/test_keras_masks.py::test_self_attention"
    items = [Item(f"{name}[{number}]") for number in range(7)] + [Item("tests/x.py::test_y[a]")]
    mark_variants(items)
    assert [number for number, item in enumerate(items) if not item.markers] == [3, 6, 7]
    assert {marker.name for marker in items[0].markers} == {"slow", "long"}
