"""The report of an export: one line on stdout, everything in the run and with `--json`."""

import json

import pytest
from click.testing import CliRunner
from pipelines import translator, write_run

from keras_transformer.cli.main import cli
from keras_transformer.export.report import Report
from keras_transformer.tasks.run import Run

MANY = {"agreement": 1.0, "identical": 200, "sentences": 200, "token_agreement": 1.0}


@pytest.mark.parametrize(
    ("results", "seconds", "line"),
    [
        ({**MANY, "path": "demo.tflite", "bytes": 6_140_000}, 41.2,
         "demo.tflite: 6.1 MB, 200 of 200 outputs identical to the run's, 41 s"),
        ({**MANY, "path": "serving/1", "bytes": 123_456_789, "identical": 199,
          "agreement": 0.995, "token_agreement": 0.9987}, 125,
         "serving/1: 123 MB, 199 of 200 outputs identical to the run's (99.9 % of the tokens), "
         "2 min 5 s"),
        ({"agreement": 1.0, "identical": 7, "sentences": 7, "bytes": 840_100}, 2.34,
         "x: 840 kB, 7 of 7 outputs identical to the run's, 2.3 s"),
        ({"agreement": 0.5, "bytes": 1_440_000_000}, 9.97,
         "x: 1.4 GB, 50.0 % of the outputs identical to the run's, 10 s"),
        ({"agreement": 1.0, "bytes": 12}, 60,
         "x: 12 bytes, 100.0 % of the outputs identical to the run's, 1 min 0 s"),
        ({"agreement": 0.0, "identical": 0, "sentences": 9, "number_difference": 0.00756,
          "bytes": 23_600_000}, 5,
         "x: 23.6 MB, the numbers of 9 outputs differ from the run's by at most 0.0076, 5.0 s"),
        ({"agreement": 1.0}, 59.6, "x: 100.0 % of the outputs identical to the run's, 1 min 0 s"),
    ],
)  # fmt: skip
def test_the_summary_has_size_agreement_and_time(results, seconds, line):
    report = Report("x", results, "lines.txt", seconds)
    assert report.summary() == line
    assert report.has_differences == (results["agreement"] < 1)
    assert report.fields().items() >= {**results, "checked_with": "lines.txt"}.items()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(translator(), tmp_path_factory.mktemp("runs") / "run")


def export(run, tmp_path, *options):
    (tmp_path / "lines").write_text("in 3 weeks\nin 5 days\n")
    words = ["export", "ctranslate2", run, tmp_path / "x", "--sentences", tmp_path / "lines"]
    done = CliRunner().invoke(cli, [*map(str, words), *options])
    assert done.exit_code == 0, done.output
    return done.stdout, json.loads((Run(run).exports / "ctranslate2.json").read_text("utf-8"))


def test_an_export_prints_one_line_and_keeps_its_report_in_the_run(run, tmp_path):
    stdout, stored = export(run, tmp_path)
    size = sum(file.stat().st_size for file in (tmp_path / "x").iterdir())
    assert stored["bytes"] == size and stored["identical"] == stored["sentences"] == 2
    assert stored["checked_with"] == str(tmp_path / "lines") and "processor" in stored
    (line,) = stdout.splitlines()
    assert line.startswith(f"{tmp_path}/x: ")
    assert "2 of 2 outputs identical to the run's, " in line and line.endswith(" s")


def test_json_prints_the_whole_report(run, tmp_path):
    stdout, stored = export(run, tmp_path, "--json")
    assert json.loads(stdout) == stored
    assert {"path", "bytes", "agreement", "differences", "seconds"} <= stored.keys()


def test_differences_are_named_with_the_file_that_has_them(run, tmp_path, monkeypatch):
    """A quantised model may differ; here a text is changed after the export has been checked."""
    monkeypatch.setattr(
        "keras_transformer.export.ctranslate2.export.export_ctranslate2",
        lambda *values, **options: {"agreement": 0.5, "identical": 1, "sentences": 2, "bytes": 9},
    )
    stdout, _ = export(run, tmp_path)
    place = Run(run).exports / "ctranslate2.json"
    assert "1 of 2 outputs identical" in stdout and stdout.endswith(f"; differences in {place}\n")
