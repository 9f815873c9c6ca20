"""Exports of a token classifier give the run's labels and probabilities, from strings and ids."""

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from exporting import asked
from phrases import bpe_tokenizer
from pipelines import with_larger_weights

from keras_transformer.cli.main import cli
from keras_transformer.export import LiteRTOptions, export_litert, export_saved_model
from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass
from keras_transformer.models import TokenClassifier, TokenClassifierConfig
from keras_transformer.pipelines import TokenClassificationPipeline
from keras_transformer.tasks.token_classification.codec import (
    TokenClassification,
    TokenClassificationCodec,
)

TEXTS = ["in 3 days", "after 12 hours and 30 minutes", "weeks", "", "Grüße aus Köln", "x " * 40]
LABELS = ("O", "B-X", "I-X", "B-Y")


@pytest.fixture(scope="module")
def token_classifier():
    tokenizer = bpe_tokenizer()
    ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    config = TokenClassifierConfig(
        vocab_size=tokenizer.vocab_size, **ids, num_layers=2, d_model=24, d_ff=40, num_heads=3,
        max_length=20, dropout=0.0, position="learned", labels=LABELS,
    )  # fmt: skip
    return TokenClassificationPipeline(with_larger_weights(TokenClassifier(config)), tokenizer)


@pytest.fixture(scope="module")
def version(token_classifier, tmp_path_factory):
    """The report of a SavedModel."""
    path = tmp_path_factory.mktemp("token_classifier")
    return export_saved_model(token_classifier, path, TEXTS)


@pytest.fixture(scope="module")
def file(token_classifier, tmp_path_factory):
    """The report of a .tflite file."""
    return export_file(
        token_classifier, tmp_path_factory.mktemp("token_classifier") / "x.tflite", "none"
    )


def export_file(token_classifier, path, quantize):
    options = {"batch_sizes": (1, 3), "lengths": [7, 20]}
    return export_litert(token_classifier, path, TEXTS, **asked(LiteRTOptions, quantize, **options))


def assert_same(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        assert (result.labels, result.truncated) == (wanted.labels, wanted.truncated)
        np.testing.assert_allclose(result.probabilities, wanted.probabilities, atol=1e-5)


@pytest.mark.long
@pytest.mark.slow
def test_files_give_the_labels_of_the_run(token_classifier, version, file, tmp_path):
    expected = token_classifier.answer(TEXTS)
    assert len({label for result in expected for label in result.labels}) > 2
    assert expected[-1].truncated and len(expected[-1].labels) == 40
    assert_same(SavedModelSinglePass(version["path"]).answer_batch(TEXTS), expected)
    loaded = LiteRTSinglePass(file["path"])
    assert_same(loaded.answer_batch(TEXTS), expected)
    assert set(file["signatures"]) == {
        f"label_{batch}x{length}" for batch in (1, 3) for length in (7, 20)
    }
    assert loaded.metadata["labels"] == list(LABELS) and "first token" in loaded.metadata["source"]
    assert export_file(token_classifier, tmp_path / "x.tflite", "int8")["bytes"] < file["bytes"]


@pytest.mark.slow
def test_the_session_loader_labels_words_and_tokens(token_classifier, version):
    expected = token_classifier.answer(TEXTS[:2])
    inputs, rest = token_classifier.codec.encode(tf.constant(TEXTS[:2]))
    with SessionModel(version["path"]) as model:
        answer = model.run("serving_default", sentences=TEXTS[:2])
        pieces = model.run("tokens", source=inputs["source"])
        for wrong in ([[7, 8]], [[7] * 30 + [3]], [[10**6, 3]]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="`source` must"):
                model.run("tokens", source=np.array(wrong, np.int32))
    for number, result in enumerate(expected):
        count = len(result.labels)
        labels = [label.decode() for label in answer["labels"][number]]
        assert tuple(labels[:count]) == result.labels and not any(labels[count:])
        first = rest["first"].numpy()[number, :count]
        assert tuple(pieces["label"][number, first].astype(str)) == result.labels
        np.testing.assert_allclose(
            pieces["probabilities"][number, first], result.probabilities, atol=1e-5
        )


@pytest.mark.slow
def test_rows_of_wrong_ids_have_no_label(file):
    loaded = LiteRTSinglePass(file["path"])
    right = loaded.tokenizers.source.encode(["in 3"]).to_list()[0]
    good = [*right, *[0] * (7 - len(right))]
    for wrong in ([9999, 3, 0, 0, 0, 0, 0], [0] * 7, [3, 7, 3, 0, 0, 0, 0]):
        answer = loaded.run_signature("label_3x7", source=np.array([good, wrong, good], np.int32))
        np.testing.assert_array_equal(answer["probabilities"][1], 0)
        np.testing.assert_array_equal(answer["label"][1], -1)
        alone = loaded.run(source=np.array([right]))["probabilities"][0]
        np.testing.assert_allclose(answer["probabilities"][0], alone, atol=1e-6)
        np.testing.assert_array_equal(answer["probabilities"][0], answer["probabilities"][2])


@pytest.mark.slow
def test_predict_opens_the_files(token_classifier, version, file, tmp_path):
    lines = tmp_path / "in.txt"
    lines.write_text("\n".join(TEXTS) + "\n")
    for model in (version["path"], file["path"]):
        done = CliRunner().invoke(cli, ["predict", str(model), "--input", str(lines)])
        assert done.exit_code == 0, done.stderr
        assert done.stdout.splitlines() == token_classifier(TEXTS)
        assert done.stderr.count("line 6: longer than the model's limit") == 1
        counts = [len(line.split()) for line in done.stdout.splitlines()]
        assert counts == [len(text.split()) for text in TEXTS]


@pytest.mark.slow
def test_the_readme_names_labels_and_axes(version):
    with open(f"{version['path']}/README.md", encoding="utf-8") as file:
        text = file.read()
    assert "`labels` string [B, W]" in text and "`B-Y`" in text and '["in 3 days"]' in text
    assert "| `tokens` | `source` int32 [B, S] |" in text


def labelled(labels, *rows, truncated=False):
    return TokenClassification(tuple(labels.split()), truncated, np.array(rows, "float32"))


def test_the_comparison_of_a_token_classifier():
    codec = TokenClassificationCodec(bpe_tokenizer(), 20, LABELS)
    ours = [labelled("O B-X", [0.4, 0.39997, 0.2, 0], [0, 1, 0, 0])]

    def judge(answer, *quantize, **options):
        limits = Limits(*quantize, **options)
        return AnswerAgreement(codec, ["a b"], ours, limits).judge([answer], "x")

    tied = labelled("B-X B-X", [0.39997, 0.4, 0.2, 0], [0, 1, 0, 0])
    assert judge(tied)["agreement"] == 0
    with pytest.raises(ExportError, match="'a b' became 'O O', not 'O B-X'"):
        judge(labelled("O O", *ours[0].probabilities))
    with pytest.raises(ExportError, match="a probability differs .* by 0.1"):
        judge(labelled("O B-X", [0.4, 0.39997, 0.2, 0], [0.1, 0.9, 0, 0]))
    with pytest.raises(ExportError, match="differs .* by nan"):
        judge(labelled("O", [0.4, 0.39997, 0.2, 0]))
    worse = labelled("O O", [0.4, 0.39997, 0.2, 0], [0.6, 0.4, 0, 0])
    report = judge(worse, "int8", max_score_loss=1)
    assert report["score_error"] == pytest.approx(-np.log(0.4) / 2, abs=1e-5)
    with pytest.raises(ExportError, match="the span_f1 falls from 100.0 to 0.0"):
        judge(worse, "int8", max_score_loss=1, references=["O B-X"])


@pytest.mark.slow
def test_a_file_returns_the_entities_of_the_run(token_classifier, file, tmp_path):
    texts = ["in 3 days, weeks", "Grüße  aus\tKöln!", ""]
    loaded = LiteRTSinglePass(file["path"])
    loaded = loaded.with_settings(spans=True)
    for result, wanted in zip(
        loaded.answer_batch(texts), token_classifier.entities(texts), strict=True
    ):
        places = [(one.label, one.start, one.end) for one in result.entities]
        assert places == [(one.label, one.start, one.end) for one in wanted.entities]
    source = tmp_path / "in.txt"
    source.write_text("in 3 days, weeks\n\n", encoding="utf-8")
    result = CliRunner().invoke(
        cli, ["predict", str(file["path"]), "--spans", "--input", str(source)]
    )
    assert result.stdout.splitlines()[1] == "[]", result.output
