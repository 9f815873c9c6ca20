"""The benchmark of the presets, run on the smallest preset."""

import json

import pytest
from support import run_benchmark

from keras_transformer.models import PRESETS


@pytest.mark.slow
@pytest.mark.long
def test_a_preset_trains_and_translates(tmp_path):
    output = tmp_path / "results.json"
    done = run_benchmark(
        "presets.py", "--presets=tiny", "--vocab-size=100", "--precision=float32", "--json", output
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())["presets"]["tiny"]
    training, translation = result["training"], result["translation"]
    assert training["parameters"] == translation["parameters"]
    assert training["peak_bytes"] > translation["peak_bytes"] > 4 * training["parameters"]
    assert training["seconds"] > 0 and translation["seconds"] > 0
    assert f"{training['parameters']:,}" in done.stdout


def test_the_measured_presets_exist():
    from presets import VOCABULARIES

    assert set(VOCABULARIES) <= set(PRESETS)
