"""Exports of a question answerer give the answers of the run, from strings and from ids."""

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
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
from keras_transformer.models import SpanPredictor, SpanPredictorConfig
from keras_transformer.pipelines import QuestionAnswerer
from keras_transformer.tasks.question_answering.codec import Answer, AnswerCodec

EXAMPLES = [
    ("in 3 days", "12 hours and 30 minutes, or 3 weeks."),
    ("when", "in 3 days"),
    ("", "weeks"),
    ("when", ""),
    ("Grüße?", "Grüße aus Köln 👋"),
    ("what " * 30, "after 12 hours and 30 minutes; " * 4),
]


@pytest.fixture(scope="module")
def answerer():
    tokenizer = bpe_tokenizer()
    ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    config = SpanPredictorConfig(
        vocab_size=tokenizer.vocab_size, **ids, num_layers=2, d_model=24, d_ff=40, num_heads=3,
        max_length=20, dropout=0.0, position="learned", max_answer=5, stride=4,
    )  # fmt: skip
    return QuestionAnswerer(with_larger_weights(SpanPredictor(config)), tokenizer)


@pytest.fixture(scope="module")
def files(answerer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("answerer")
    version = export_saved_model(answerer, folder / "m", EXAMPLES)
    kinds = {
        quantize: export_litert(
            answerer,
            folder / f"{quantize}.tflite",
            EXAMPLES,
            LiteRTOptions(quantize, batch_sizes=(1, 3), lengths=[9, 20]),
        )
        for quantize in ("none", "int8")
    }
    return version, kinds


def places(results):
    """Returns answers and their positions in the passages."""
    return [(r.text, r.begin, r.end, r.truncated) for r in results]


@pytest.mark.slow
def test_files_give_the_answers_of_the_run(answerer, files):
    version, kinds = files
    expected = answerer.answer(EXAMPLES)
    assert expected[-1].truncated and len({result.text for result in expected}) > 3
    for runtime in (SavedModelSinglePass(version["path"]), LiteRTSinglePass(kinds["none"]["path"])):
        assert runtime.answer_batch([]) == []
        results = runtime.answer_batch(EXAMPLES)
        assert places(results) == places(expected)
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result.probabilities, wanted.probabilities, atol=1e-5)
    loaded = LiteRTSinglePass(kinds["none"]["path"])
    assert set(kinds["none"]["signatures"]) == {
        f"answer_{batch}x{length}" for batch in (1, 3) for length in (9, 20)
    }
    assert loaded.metadata["max_answer"] == 5 and loaded.metadata["stride"] == 4
    assert "bos" in loaded.metadata["source"]
    assert kinds["int8"]["bytes"] < kinds["none"]["bytes"]


@pytest.mark.slow
def test_the_session_loader_answers_strings_and_rows(answerer, files):
    version, _ = files
    expected = answerer.answer(EXAMPLES[:2])
    questions, passages = zip(*EXAMPLES[:2], strict=True)
    inputs, rest = answerer.codec.encode(tf.constant(questions), tf.constant(passages))
    with SessionModel(version["path"]) as model:
        answer = model.run("serving_default", question=list(questions), passage=list(passages))
        rows = model.run("tokens", source=inputs["source"])
        with pytest.raises(tf.errors.InvalidArgumentError, match="`source` must"):
            model.run("tokens", source=np.array([[7, 8]], np.int32))
    assert [text.decode() for text in answer["answer"]] == [result.text for result in expected]
    assert answer["begin"].tolist() == [result.begin for result in expected]
    again = answerer.codec.results(
        {name: value.numpy() for name, value in answerer.codec.answers(rows, rest).items()}
    )
    assert places(again) == places(expected)


@pytest.mark.slow
def test_rows_of_wrong_ids_have_no_answer(answerer, files):
    _, kinds = files
    loaded = LiteRTSinglePass(kinds["none"]["path"])
    inputs, _ = answerer.codec.encode(tf.constant(["in"]), tf.constant(["3 days"]))
    right = inputs["source"].numpy()[0]
    good = [*right, *[0] * (20 - len(right))]
    bos, eos = answerer.codec.tokenizer.bos_id, answerer.codec.tokenizer.eos_id
    for wrong in ([9999, bos, 7, eos], [0] * 4, [7, 8, eos], [7, bos, 8, bos, eos], [bos, 7]):
        rows = np.array([good, [*wrong, *[0] * (20 - len(wrong))], good], np.int32)
        answer = loaded.run_signature("answer_3x20", source=rows)
        for name in ("start", "end"):
            np.testing.assert_array_equal(answer[name][1], np.float32(-1e9))
            np.testing.assert_array_equal(answer[name][0], answer[name][2])
            assert (answer[name][0] > -1e8).any()


@pytest.mark.slow
def test_predict_opens_the_files(answerer, files, tmp_path):
    version, kinds = files
    lines = tmp_path / "in.txt"
    texts = ["\t".join(example) for example in EXAMPLES]
    lines.write_text("\n".join(texts) + "\n")
    for model in (version["path"], kinds["none"]["path"]):
        done = CliRunner().invoke(cli, ["predict", str(model), "--input", str(lines)])
        assert done.exit_code == 0, done.stderr
        assert done.stdout.splitlines() == answerer(EXAMPLES)
        assert done.stderr.count("line 6: longer than the model's limit") == 1
    lines.write_text("\n".join(["no tab", texts[0]]) + "\n")
    for model in (version["path"], kinds["none"]["path"]):
        done = CliRunner().invoke(cli, ["predict", str(model), "--input", str(lines)])
        assert done.exit_code == 0
        assert done.stdout.splitlines() == ["", answerer(EXAMPLES[:1])[0]]
        assert "line 1: must be a question, a tab and a passage. Received: no" in done.stderr


@pytest.mark.slow
def test_the_readme_names_requests_and_axes(files):
    version, _ = files
    with open(f"{version['path']}/README.md", encoding="utf-8") as file:
        text = file.read()
    assert '"question": ["in 3 days"]' in text and "`answer` string [B]" in text
    assert "| `tokens` | `source` int32 [R, S] |" in text


def answer(first, last, start, end, truncated=False):
    probabilities = np.array([start, end], "float32")
    words = ("one", "two", "three")[first : last + 1]
    value = float(probabilities[0, first] * probabilities[1, last])
    return Answer(" ".join(words), 0, 1, value, truncated, (first, last), probabilities)


def test_the_comparison_of_an_answerer():
    codec = AnswerCodec(bpe_tokenizer(), 20, 5, None)
    start, end = [0.4, 0.39999, 0.1], [0.1, 0.8, 0.1]
    ours = [answer(0, 1, start, end)]

    def judge(theirs, *quantize, **options):
        limits = Limits(*quantize, **options)
        agreement = AnswerAgreement(codec, [("q", "one two three")], ours, limits)
        return agreement.judge([theirs], "x")

    assert judge(answer(1, 1, start, end))["agreement"] == 0, "tied"
    with pytest.raises(ExportError, match="became 'one two three', not 'one two'"):
        judge(answer(0, 2, start, end))
    with pytest.raises(ExportError, match="a probability differs .* by 0.1"):
        judge(answer(0, 1, [0.5, 0.4, 0.1], end))
    with pytest.raises(ExportError, match="only one of the two models read all"):
        judge(answer(0, 1, start, end, truncated=True))
    report = judge(answer(0, 1, [0.2, 0.2, 0.1], end), "int8", max_score_loss=1)
    assert report["score_error"] == pytest.approx(np.log(2), abs=1e-5)
    with pytest.raises(ExportError, match="the exact_match falls from 100.0 to 0.0"):
        judge(answer(0, 2, start, end), "int8", max_score_loss=1, references=[["One two"]])
