"""Marks of single variants: `["llama", slow("t5"), long("whisper")]`."""

import pytest


def slow(*values, **options):
    """Returns a variant that `make test` leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)


def long(*values, **options):
    """Returns a variant that `.ci/run` leaves out as well."""
    return pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.long], **options)


def slow_except(variants, *fast, mark=slow):
    """Returns all variants; only some of them run in `make test`, or in `.ci/run`."""
    return [variant if variant in fast else mark(variant) for variant in variants]


def rows(table, fast, slow=()):
    """Returns rows of a dictionary with their names; those only in `slow` are marked."""
    marks = {**dict.fromkeys(slow, pytest.mark.slow), **dict.fromkeys(fast, ())}
    return [
        pytest.param(table[name], marks=marks[name], id=name) for name in table if name in marks
    ]
