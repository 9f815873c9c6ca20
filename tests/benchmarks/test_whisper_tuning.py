"""Checks of `benchmarks/whisper_tuning.py`, with a program in place of eSpeak NG."""

import os
import re

import fake_espeak
import pytest
from support import run_benchmark


@pytest.mark.slow
@pytest.mark.long
def test_both_error_rates_are_printed(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    program = fake_espeak.write(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    options = "--folder", tmp_path / "tuning", "--updates", "2", "--examples", "100"
    done = run_benchmark("whisper_tuning.py", *options)
    assert not done.returncode, done.stderr
    before, after = done.stdout.splitlines()
    assert re.fullmatch(r"before: WER 1\.\d+, CER \d+\.\d+", before)
    assert re.fullmatch(r"after: WER \d\.\d+, CER \d+\.\d+", after)
