"""Where the modules of the benchmarks are found."""

import pytest
from support import BENCHMARKS


@pytest.fixture(autouse=True)
def beside_the_script(monkeypatch):
    """The files of `benchmarks/` find each other as the script's own folder lets them."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
