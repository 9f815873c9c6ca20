"""The variants of parametrised tests that `make test` and `.ci/run` run.

`@pytest.mark.fast_variants(4)` keeps four variants of a fast test in `make test`, at equal
distances in the order of the parameters; the others are `slow` and `long`, but with `ci=8` eight of
them are left to `.ci/run`. `@pytest.mark.slow_variants(2)` keeps two variants of a slow test in
`.ci/run`; the others are `long`. Each variant of such a test takes half a second or more, and
they share most of the code that they test. `make test-all` runs all of them.
"""

import collections

import pytest


def mark_variants(items):
    """Marks the variants that the markers of their tests do not keep."""
    groups = collections.defaultdict(list)
    for item in items:
        groups[item.nodeid.partition("[")[0]].append(item)
    for group in groups.values():
        fast = [item for item in group if not _has(item, "slow")]
        slow = [item for item in group if _has(item, "slow") and not _has(item, "long")]
        if kept := group[0].get_closest_marker("fast_variants"):
            others = [*_left_out(fast, kept.args[0])]
            for item in others:
                item.add_marker(pytest.mark.slow)
            for item in _left_out(others, kept.kwargs.get("ci", 0)):
                item.add_marker(pytest.mark.long)
        if kept := group[0].get_closest_marker("slow_variants"):
            for item in _left_out(slow, kept.args[0]):
                item.add_marker(pytest.mark.long)


def _has(item, name):
    return item.get_closest_marker(name) is not None


def _left_out(variants, kept):
    """Yields all variants but `kept` of them, at equal distances."""
    kept = min(kept, len(variants))
    for number, item in enumerate(variants):
        if (number + 1) * kept // len(variants) == number * kept // len(variants):
            yield item
