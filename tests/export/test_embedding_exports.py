"""Exports of sentence embeddings give the run's vectors, from strings and ids."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from exporting import asked
from marks import long
from phrases import bpe_tokenizer
from pipelines import with_larger_weights

from keras_transformer.cli.main import cli
from keras_transformer.export import (
    LiteRTOptions,
    export_ctranslate2,
    export_litert,
    export_saved_model,
)
from keras_transformer.export.answer_agreement import AnswerAgreement
from keras_transformer.export.errors import ExportError
from keras_transformer.export.limits import Limits
from keras_transformer.export.litert.single_pass import LiteRTSinglePass
from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.export.saved_model.runtime import SavedModelSinglePass
from keras_transformer.models import EmbedderConfig, TextEmbedder
from keras_transformer.pipelines import Embedder
from keras_transformer.tasks.embedding.codec import TextVector
from keras_transformer.tasks.strings import traced_once
from keras_transformer.text.prompts import TextPrompts

TEXTS = ["in 3 days", "after 12 hours and 30 minutes", "weeks", "", "Grüße aus Köln", "x " * 40]


@pytest.fixture(scope="module")
def embedder():
    tokenizer = bpe_tokenizer()
    ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    config = EmbedderConfig(
        vocab_size=tokenizer.vocab_size, **ids, num_layers=2, d_model=24, d_ff=40, num_heads=3,
        max_length=20, dropout=0.0, dimensions=16,
    )  # fmt: skip
    return Embedder(with_larger_weights(TextEmbedder(config)), tokenizer)


@pytest.fixture(scope="module")
def version(embedder, tmp_path_factory):
    """The report of a SavedModel."""
    return export_saved_model(embedder, tmp_path_factory.mktemp("embedder"), TEXTS)


def assert_same(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        assert result.truncated == wanted.truncated
        np.testing.assert_allclose(result.values, wanted.values, atol=1e-5)


@pytest.mark.slow
def test_the_session_loader_returns_vectors_of_texts_and_tokens(embedder, version):
    expected = embedder.answer(TEXTS)
    inputs, _ = embedder.codec.encode(tf.constant(TEXTS))
    with SessionModel(version["path"]) as model:
        answer = model.run("serving_default", sentences=TEXTS)
        vectors = model.run("tokens", source=inputs["source"])["vector"]
    assert expected[-1].truncated and answer["truncated"].tolist() == [False] * 5 + [True]
    for result, one, two in zip(expected, answer["vector"], vectors, strict=True):
        np.testing.assert_allclose(one, result.values, atol=1e-5)
        np.testing.assert_allclose(two, result.values, atol=1e-5)


@pytest.mark.slow
def test_files_return_the_vectors_of_the_run(embedder, version, tmp_path, quantize="int8"):
    expected = embedder.answer(TEXTS)
    assert_same(SavedModelSinglePass(version["path"]).answer_batch(TEXTS), expected)
    options = {"batch_sizes": (1, 3), "lengths": [7, 20]}
    file = export_litert(
        embedder, tmp_path / "x.tflite", TEXTS, **asked(LiteRTOptions, quantize, **options)
    )
    loaded = LiteRTSinglePass(file["path"])
    results = loaded.answer_batch(TEXTS)
    assert set(file["signatures"]) == {f"embed_{b}x{n}" for b in (1, 3) for n in (7, 20)}
    if quantize == "none":
        assert_same(results, expected)
    distances = [a.score_of(b) for a, b in zip(results, expected, strict=True)]
    assert file["score_error"] == pytest.approx(np.mean(distances), abs=1e-6)
    assert max(distances) < {"none": 1e-6, "float16": 1e-3, "int8": 2e-2}[quantize]
    # An invalid row, without an end token, gets zeros and affects no other row.
    rows = np.array([[7, 8, 9, 0, 0, 0, 0], [7, 3, 0, 0, 0, 0, 0], [7, 8, 3, 0, 0, 0, 0]], "int32")
    (signature,) = (x for x in loaded.signatures if x.name == "embed_3x7")
    vectors = loaded.run(signature, source=rows)["vector"]
    np.testing.assert_array_equal(vectors[0], np.zeros(16))
    # The last operation divides by the length, in float32 whatever the file quantises.
    np.testing.assert_allclose(np.linalg.norm(vectors[1:], axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_predict_writes_a_line_of_numbers_for_each_text(embedder, version):
    text = "in 3 days\n\nweeks\n"
    done = CliRunner().invoke(cli, ["predict", str(version["path"])], input=text)
    assert done.exit_code == 0, done.output
    lines = done.stdout.split("\n")
    assert len(lines) == 4 and lines[1] == lines[3] == ""
    for line, text in ((lines[0], "in 3 days"), (lines[2], "weeks")):
        (vector,) = embedder.embed([text])
        np.testing.assert_allclose(np.array(line.split(" "), float), vector, atol=1e-5)


@pytest.mark.slow
def test_no_prompt_may_be_chosen_where_there_are_none(embedder, version):
    """As `search --model` does, to compare two models."""
    loaded = SavedModelSinglePass(version["path"]).with_settings(prompt="")
    (result,) = loaded.answer(["in 3 days"])
    np.testing.assert_allclose(result.values, embedder.embed(["in 3 days"])[0], atol=1e-5)


def test_a_wrong_direction_is_refused(embedder):
    expected = embedder.answer(TEXTS)
    turned = [TextVector(-result.values, result.truncated) for result in expected]
    limits = Limits(quantize="int8")
    with pytest.raises(ExportError, match="answers are off by 2 of cosine distance on average"):
        AnswerAgreement(embedder.codec, TEXTS, expected, limits).judge(turned, "x.tflite")


def test_vectors_that_are_equal_within_the_tolerance_agree(embedder):
    expected = embedder.answer(TEXTS)
    rounded = [TextVector(one.values + np.float32(2e-7), one.truncated) for one in expected]
    assert any(ours.text != theirs.text for ours, theirs in zip(expected, rounded, strict=True))
    report = AnswerAgreement(embedder.codec, TEXTS, expected).judge(rounded, "x.tflite")
    assert report["agreement"] == 1 and report["identical"] == len(TEXTS)
    assert report["differences"] == []


def test_a_tflite_file_reads_texts_in_one_graph(embedder):
    eager = []

    class Codec(type(embedder.codec)):
        def encode(self, **request):
            eager.append(tf.executing_eagerly())
            return super().encode(**request)

    loaded = LiteRTSinglePass.__new__(LiteRTSinglePass)
    loaded.codec = Codec(embedder.tokenizers, embedder.max_length)
    loaded._encoder = traced_once(loaded._trace_encoder)
    for texts in (TEXTS, ["one"], []):
        request = loaded.codec.request(texts)
        inputs, rest = loaded._encode(request)
        expected, others = embedder.codec.encode(**request)
        np.testing.assert_array_equal(inputs["source"], expected["source"])
        np.testing.assert_array_equal(rest["truncated"], others["truncated"])
    assert eager == [False]
    prompts = TextPrompts({"query": "in 3 days "})
    loaded.codec = loaded.codec.with_choices(prompts)
    loaded = loaded.with_settings(prompt="query")  # not the graph of the choice before
    inputs, _ = loaded._encode(loaded.codec.request(["weeks"]))
    expected, _ = embedder.codec.encode(tf.constant(["in 3 days weeks"]))
    np.testing.assert_array_equal(inputs["source"], expected["source"])


PROMPTS = {"query": "in 3 days ", "passage": "weeks "}


@pytest.fixture(scope="module")
def prompted(embedder):
    """An embedder with a default prompt, and the vectors by name of prompt; "": none."""
    pipeline = embedder.with_model(embedder.model).with_prompts(TextPrompts(PROMPTS, "query"))
    expected = {name: embedder.embed([text + line for line in TEXTS]) for name, text in
                {**PROMPTS, "": ""}.items()}  # fmt: skip
    return pipeline, {**expected, None: expected["query"]}


def exported(prompted, form, folder):
    """Exports the embedder, and returns the path."""
    if form == "saved-model":
        return pathlib.Path(export_saved_model(prompted, folder / "version", TEXTS)["path"])
    if form == "litert":
        export_litert(prompted, folder / "model.tflite", TEXTS)
        return folder / "model.tflite"
    export_ctranslate2(prompted, folder / "ct2", TEXTS)
    return folder / "ct2"


@pytest.mark.slow
@pytest.mark.parametrize("form", [long("saved-model"), "litert", "ctranslate2"])
def test_exports_have_the_prompts(prompted, form, tmp_path):
    pipeline, expected = prompted
    path = exported(pipeline, form, tmp_path)
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{text}\n" for text in TEXTS))
    for name, vectors in expected.items():
        options = [] if name is None else ["--prompt", name]
        done = CliRunner().invoke(cli, ["predict", str(path), "--input", str(texts), *options])
        assert done.exit_code == 0, done.output
        for text, line, vector in zip(TEXTS, done.stdout.splitlines(), vectors, strict=True):
            if text:  # an empty line has an empty answer
                np.testing.assert_allclose(np.array(line.split(" "), float), vector, atol=1e-5)
    done = CliRunner().invoke(
        cli, ["predict", str(path), "--input", str(texts), "--prompt", "other"]
    )
    assert done.exit_code and "--prompt must be one of" in done.output
    if form == "saved-model":
        assert "`query` ('in 3 days ')" in (path / "README.md").read_text()


@pytest.mark.slow
def test_a_causal_encoder_has_its_vectors_in_a_file(tmp_path):
    tokenizer = bpe_tokenizer()
    ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    config = EmbedderConfig(
        vocab_size=tokenizer.vocab_size, **ids, num_layers=1, d_model=24, d_ff=40, num_heads=3,
        max_length=20, position="rotary", norm="pre", normalization="rms", pooling="last",
        causal=True, after_pooling=["unit_length", {"kind": "dense", "units": 16}, "layer_norm"],
    )  # fmt: skip
    pipeline = Embedder(with_larger_weights(TextEmbedder(config)), tokenizer)
    file = export_litert(pipeline, tmp_path / "x.tflite", TEXTS)
    assert_same(LiteRTSinglePass(file["path"]).answer_batch(TEXTS), pipeline.answer(TEXTS))
    with pytest.raises(ExportError, match="rotary|`causal`"):
        export_ctranslate2(pipeline, tmp_path / "ct2", TEXTS)
