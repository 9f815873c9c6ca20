"""Exports of a mask filler give the words of the run, from strings and from ids."""

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from exporting import asked
from pipelines import filler

from keras_transformer.cli.main import cli
from keras_transformer.export import LiteRTOptions, export_litert, export_saved_model
from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass
from keras_transformer.pipelines import Filling

TEXTS = ["a <mask> runs", "the big <mask> and<mask>", "<mask>", "a dog and <mask> " * 9]


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    """The report of a SavedModel."""
    return export_saved_model(filler(), tmp_path_factory.mktemp("filler"), TEXTS)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The reports of .tflite files by quantisation."""
    folder, options = tmp_path_factory.mktemp("filler"), {"batch_sizes": (1, 3), "lengths": [6, 11]}
    return {
        name: export_litert(
            filler(), folder / f"{name}.tflite", TEXTS, **asked(LiteRTOptions, name, **options)
        )
        for name in ("none", "int8")
    }


def assert_same(results, atol=1e-5):
    for result, wanted in zip(results, filler().answer(TEXTS), strict=True):
        assert (result.words, result.truncated) == (wanted.words, wanted.truncated)
        np.testing.assert_allclose(result.probabilities, wanted.probabilities, rtol=0, atol=atol)


@pytest.mark.long
@pytest.mark.slow
def test_files_give_the_words_of_the_run(version, files):
    assert version["agreement"] == files["none"]["agreement"] == 1
    assert_same(SavedModelSinglePass(version["path"]).answer_batch(TEXTS))
    loaded = LiteRTSinglePass(files["none"]["path"])
    assert_same(loaded.answer_batch(TEXTS))
    names = {f"fill_{rows}x{length}" for rows in (1, 3) for length in (6, 11)}
    assert {*files["none"]["signatures"]} == names
    assert loaded.metadata["tokens"]["mask"] == 4 and loaded.metadata["mask"] == "<mask>"
    assert files["int8"]["score_error"] < 0.1
    results = LiteRTSinglePass(files["int8"]["path"]).answer_batch(TEXTS)
    for result, wanted in zip(results, filler().answer(TEXTS), strict=True):
        np.testing.assert_allclose(result.probabilities, wanted.probabilities, atol=0.05)


@pytest.mark.slow
def test_the_session_loader_fills_strings_and_ids(version):
    expected = filler().answer(TEXTS[:2])
    inputs, _ = filler().codec.encode(tf.constant(TEXTS[:2]))
    source = inputs["source"].numpy()
    with SessionModel(version["path"]) as model:
        answer = model.run("serving_default", sentences=TEXTS[:2])
        of_ids = model.run("tokens", source=source)
        nothing = model.run("serving_default", sentences=["no mask", ""])
        for wrong in ([[7, 8]], [[7] * 30 + [3]], [[10**6, 3]]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="`source` must"):
                model.run("tokens", source=np.array(wrong, np.int32))
    assert answer["masks"].tolist() == [1, 2]
    assert nothing["words"].shape[:2] == (2, 0) and nothing["masks"].tolist() == [0, 0]
    for number, result in enumerate(expected):
        count = len(result.words)
        words = answer["words"][number].astype(str)
        assert tuple(map(tuple, words[:count])) == result.words and not words[count:].any()
        at_masks = of_ids["words"][number][source[number] == 4].astype(str)
        assert tuple(map(tuple, at_masks)) == result.words
        elsewhere = source[number] != 4
        assert not of_ids["words"][number][elsewhere].any()
        np.testing.assert_array_equal(of_ids["tokens"][number][elsewhere], -1)
        np.testing.assert_array_equal(of_ids["probabilities"][number][elsewhere], 0)


@pytest.mark.slow
def test_rows_of_wrong_ids_have_no_words(files):
    loaded = LiteRTSinglePass(files["none"]["path"])
    good = [5, 4, 7, 3, 0, 0]
    for wrong in ([9999, 4, 3, 0, 0, 0], [0] * 6, [3, 4, 3, 0, 0, 0]):
        answer = loaded.run_signature("fill_3x6", source=np.array([good, wrong, good], np.int32))
        np.testing.assert_array_equal(answer["probabilities"][1], 0)
        np.testing.assert_array_equal(answer["tokens"][1], -1)
        np.testing.assert_array_equal(answer["tokens"][0], answer["tokens"][2])
        assert (answer["tokens"][0, 1] >= 0).all() and (answer["tokens"][0, [0, 2]] == -1).all()


@pytest.mark.slow
def test_predict_opens_the_files(version, files, tmp_path):
    lines = tmp_path / "in.txt"
    lines.write_text("\n".join([*TEXTS[:3], "none", ""]) + "\n")
    for path in (version["path"], files["none"]["path"]):
        done = CliRunner().invoke(cli, ["predict", str(path), "--input", str(lines)])
        assert done.exit_code == 0, done.stderr
        rows = [line.split("\t")[::2] for line in done.stdout.splitlines()]
        expected = [text.split("\t")[::2] for text in filler()(TEXTS[:3])]
        assert rows == [*expected, [""], [""]]
        assert "line 4: must have a mask, <mask>. Received: none; left empty" in done.stderr


@pytest.mark.slow
def test_the_readme_names_mask_and_axes(version):
    with open(f"{version['path']}/README.md", encoding="utf-8") as file:
        text = file.read()
    assert "`words` string [B, M, K]" in text and "`tokens` int32 [B, S, K]" in text
    assert "`<mask>`" in text and '["a <mask> runs"]' in text
    assert '["words"][0].numpy())' in text  # several strings: they cannot be decoded at once


def result(words, *shares):
    return Filling((tuple(words),), np.array([shares], "float32"), False)


def test_the_comparison_of_a_mask_filler():
    ours = [result("abc", 0.5, 0.3, 0.1)]

    def judge(answer, *quantize, **options):
        limits = Limits(*quantize, **options)
        return AnswerAgreement(filler().codec, ["x"], ours, limits).judge([answer], "m")

    same = judge(result("abc", 0.50004, 0.3, 0.1))
    assert same["agreement"] == 1 and same["probability_difference"] == pytest.approx(4e-5, 0.01)
    with pytest.raises(ExportError, match=r"'x' became 'a.t?c.t?b', not 'a.t?b.t?c'"):
        judge(result("acb", 0.5, 0.3, 0.1))
    with pytest.raises(ExportError, match="a probability differs .* by 0.1"):
        judge(result("abc", 0.6, 0.3, 0.1))
    with pytest.raises(ExportError, match="differs .* by nan"):
        judge(Filling((), np.zeros((0, 3), "float32"), False))
    report = judge(result("bac", 0.4, 0.35, 0.1), "int8", max_score_loss=1)
    assert report["score_error"] == pytest.approx(np.log(0.5 / 0.35), abs=1e-5)
    with pytest.raises(ExportError, match=r"the accuracy falls from 100\.0 to 0\.0"):
        judge(result("bac", 0.4, 0.35, 0.1), "int8", max_score_loss=1, references=["a"])
