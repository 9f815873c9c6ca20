"""Checks of `benchmarks/students.py` that must pass before its results can be trusted."""

import functools
import json
import math
import os

import numpy as np
import pytest
import yaml
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
    assert "ours" in engines and len(engines) + len(report["skipped"]) == 4
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


def test_missing_engines_are_left_out_and_their_install_commands_shown(monkeypatch, capsys):
    import students

    monkeypatch.setattr(students, "has_browser", lambda: False)
    monkeypatch.setattr(students, "missing", lambda: "Chromium")
    chosen, skipped = students.look_for([*students.ENGINES], None, None)
    assert "bergamot" not in chosen and "ours-browser" not in chosen
    assert [line for line in skipped if line.startswith("bergamot is skipped: ")] == [
        "bergamot is skipped: bergamot is missing; it needs Python 3.10 with `pip install "
        "--no-deps bergamot`, and --bergamot-python."
    ]
    assert capsys.readouterr().out.splitlines() == skipped
    assert not students.has_bergamot("/no/such/python")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engines=theirs"], "'theirs' is not one of ours, ours-browser, bergamot, "),
        (["--shortlists=some"], "'some' is not one of without, with."),
        (["--batches=0"], "'0' is not a list of positive numbers."),
    ],
)
def test_wrong_options_are_reported_in_one_line(arguments, message):
    done = benchmark(*arguments)
    assert done.returncode and message in done.stderr
    assert "Traceback" not in done.stderr


def test_sentences_and_shortlists_resemble_a_natural_language():
    from student_parts.task import STUDENTS, sentences, tokens_of

    from keras_transformer.text.shortlist import Shortlist

    student = STUDENTS["smoke"]
    sources = student.sources(97)
    assert sources.shape == (97, 24) and (sources[:, -1] == 3).all() and (sources[:, :-1] > 3).all()
    assert [tokens_of(text) for text in sentences(student, 97)] == sources[:, :-1].tolist()
    counts = np.bincount(sources[:, :-1].ravel(), minlength=256)
    # Shares of 1 / (rank + 2.7)**1.2: ratios 3.0 and 8.2.
    assert counts[4] > 2 * counts[8] > 4 * counts[40]
    shortlist = Shortlist.from_counts(student.counts(), 256, 50, 50)
    lengths = np.diff(shortlist.offsets)
    assert shortlist.ids.min() >= 50 and lengths.min() > 20 and lengths.max() <= 50
    one, many = (len(shortlist.candidates(student.sources(size))) for size in (1, 97))
    assert one < many


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


def test_ratios_are_relative_to_bergamot_on_the_same_runtime(tmp_path):
    from student_parts.report import add_engines
    from student_parts.task import STUDENTS

    file = tmp_path / "file"
    file.write_bytes(b"12345")
    times = {"ours": [1.0, 3.0], "bergamot": [2.0, 2.0], "ours-browser": [4.0, 4.0]}
    measured = {
        name: {"seconds": seconds, "peak_bytes": 7, "files": [file, file], "agreement": 1.0}
        for name, seconds in times.items()
    }
    report = {"students": []}
    add_engines(report, STUDENTS["smoke"], {"batch": 2, "shortlist": True}, measured)
    rows = {row["engine"]: row for row in report["students"]}
    assert rows["ours"]["ratio"]["all"] == [2.0, 2 / 3] and rows["ours"]["rival"] == "bergamot"
    assert rows["ours-browser"]["ratio"] is rows["bergamot"]["ratio"] is None
    assert rows["ours"]["words_per_second"]["all"] == [46.0, 46 / 3]
    assert rows["ours"]["file_bytes"] == 10


@pytest.mark.parametrize("lists", [[], ["lex.bin"]])
def test_the_settings_of_the_engine_are_yaml(lists):
    from student_parts.bergamot import configuration

    order = {"files": ["a model.bin", "vocab.spm", *lists], "length_factor": 1.34}
    settings = yaml.safe_load(configuration(order))
    assert settings["models"] == ["a model.bin"] and settings["vocabs"] == ["vocab.spm"] * 2
    assert settings["gemm-precision"] == "int8shiftAlphaAll" and settings["beam-size"] == 1
    assert settings["max-length-factor"] == 1.34 and settings["skip-cost"] is True
    assert settings.get("shortlist") == ([*lists, False] if lists else None)


def test_the_memory_of_a_page_is_the_memory_of_its_process():
    from student_parts.browser import ancestors, peak_of_page

    processes = {7: (5, "1 kB", ""), 5: (2, "1 kB", ""), 2: (1, "1 kB", "")}
    assert list(ancestors(7, processes)) == [5, 2, 1]
    assert peak_of_page(os.getpid()) is None  # no page is open
