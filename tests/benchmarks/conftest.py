"""Makes the modules of `benchmarks/` importable."""

import pytest
from support import BENCHMARKS


@pytest.fixture(autouse=True)
def beside_the_script(monkeypatch):
    """Puts `benchmarks/` on the import path, as running one of its scripts does."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
