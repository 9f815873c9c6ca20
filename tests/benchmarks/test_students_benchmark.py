"""Checks of `benchmarks/students.py` that must pass before its results can be trusted."""

import functools
import json
import math

import numpy as np
import pytest
from support import run_benchmark

benchmark = functools.partial(run_benchmark, "students.py")
FIGURES = {
    "size", "batch", "shortlist", "engine", "words_per_second", "seconds", "rival", "ratio",
    "file_bytes", "peak_bytes", "agreement",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.long
def test_every_available_engine_translates_the_smallest_student(tmp_path):
    """Outputs of different lengths would stop the benchmark."""
    pytest.importorskip("ai_edge_litert")
    output = tmp_path / "figures.json"
    done = benchmark(
        "--size=smoke", "--batches=1,3", "--repeats=2", "--seconds=0", "--json", output
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    assert set(report) == {
        "machine", "settings", "skipped", "commands", "candidates", "students"
    }  # fmt: skip
    rows = report["students"]
    engines = {row["engine"] for row in rows}
    assert "ours" in engines and len(engines) + len(report["skipped"]) == 5
    assert len(rows) == 4 * len(engines)
    first = "export litert FOLDER/run FOLDER/litert.tflite --sentences "
    assert report["commands"][0].startswith(first)
    for row in rows:
        assert set(row) == FIGURES
        words = row["batch"] * 23
        times, speeds = row["seconds"]["all"], row["words_per_second"]["all"]
        np.testing.assert_allclose(speeds, [words / seconds for seconds in times])
        # By chance, one of 252 tokens is the same. The two engines round differently, and after the
        # first token that differs all later ones differ as well.
        assert row["agreement"] > (0.9 if row["engine"].startswith("ours") else 0.1), row
    assert report["candidates"].keys() == {"1", "3"}
    assert "words/s" in done.stdout


def test_outputs_of_different_lengths_are_not_timed():
    from measurements import BenchmarkError
    from student_parts.task import SOURCE_LENGTH, STUDENTS
    from students import agreement, check_lengths

    student = STUDENTS["smoke"]
    whole = [[5] * 32] * 2
    check_lengths({"ours": whole, "bergamot": whole}, student)
    with pytest.raises(BenchmarkError, match=r"bergamot generated outputs of \[31, 32\] tokens"):
        check_lengths({"ours": whole, "bergamot": [[5] * 31, [5] * 32]}, student)
    assert math.ceil(student.length_factor * SOURCE_LENGTH) == 32  # as the engine computes it
    assert agreement([[5, 6], [7, 8]], [[5, 6], [7, 9]]) == 0.75
