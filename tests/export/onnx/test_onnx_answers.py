"""An .onnx file of a model that answers in one pass gives the answers of the model in memory."""

import numpy as np
import pytest
from click.testing import CliRunner
from onnx_files import RIGHT, batch_of, wrong_rows
from pipelines import LINES, classifier, write_run

import keras_transformer
from keras_transformer.cli.main import cli
from keras_transformer.export import OnnxOptions, export_onnx
from keras_transformer.export.onnx.model import OnnxModel

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "classifier.onnx"
    report = export_onnx(classifier(), path, LINES, OnnxOptions())
    assert report["agreement"] == 1.0 and report["probability_difference"] < 1e-5
    return path


def test_answers_are_those_of_the_model(file):
    loaded, expected = keras_transformer.open(file), classifier().answer(LINES)
    answers = loaded.answer(LINES, batch_size=3)
    assert [answer.label for answer in answers] == [answer.label for answer in expected]
    probabilities = [[a.probabilities for a in side] for side in (answers, expected)]
    assert np.ptp(probabilities[1], axis=0).max() > 0.05
    np.testing.assert_allclose(*probabilities, atol=1e-5)
    assert loaded.answer([]) == []


def test_rows_are_independent_of_padding_and_of_invalid_rows(file):
    model = OnnxModel(file)
    wrong = wrong_rows(30)
    outputs = model.run(source=batch_of([*wrong, *RIGHT]))
    assert (outputs["probabilities"][: len(wrong)] == 0).all()
    assert (outputs["label"][: len(wrong)] == -1).all()
    wide = model.run(source=batch_of(RIGHT, width=11))
    for number, row in enumerate(RIGHT):
        alone = model.run(source=np.array([row], np.int32))["probabilities"][0]
        np.testing.assert_allclose(outputs["probabilities"][len(wrong) + number], alone, atol=1e-5)
        np.testing.assert_allclose(wide["probabilities"][number], alone, atol=1e-5)


@pytest.mark.slow
def test_a_run_is_exported_and_predicts_by_the_command_line(tmp_path):
    run, path = write_run(classifier(), tmp_path / "run"), tmp_path / "x.onnx"
    lines = "\n".join(LINES)
    (tmp_path / "lines.txt").write_text(lines + "\n")
    arguments = ["export", "onnx", run, path, "--sentences", tmp_path / "lines.txt"]
    done = CliRunner().invoke(cli, [*map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    outputs = {
        CliRunner().invoke(cli, ["predict", str(p)], input=lines).stdout for p in (run, path)
    }
    assert len(outputs) == 1 and len(outputs.pop().splitlines()) == len(LINES)
    done = CliRunner().invoke(cli, ["predict", str(path), "--beam", "2"], input=lines)
    assert done.exit_code == 2 and "--beam has no effect on" in done.stderr
