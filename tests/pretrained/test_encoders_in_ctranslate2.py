"""Encoders in CTranslate2: states, vectors and answers, and what is refused or damaged."""

import functools
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import zipfile

import documents
import encoder_folders
import masked_heads
import numpy as np
import pipelines
import pytest
import test_sentence_encoders
from click.testing import CliRunner
from marks import long, slow, slow_except
from pipelines import SIZES, tokenizer, with_larger_weights, write_run
from support import listing

from keras_transformer import Greedy, from_pretrained
from keras_transformer.cli.main import cli
from keras_transformer.export import (
    CTranslate2Options,
    ExportError,
    export_ctranslate2,
    export_litert,
    export_saved_model,
)
from keras_transformer.export.ctranslate2 import answered
from keras_transformer.export.ctranslate2.opened import open_ctranslate2
from keras_transformer.installation import install_hint
from keras_transformer.models import (
    ClassifierConfig,
    SpanPredictor,
    SpanPredictorConfig,
    TextClassifier,
)
from keras_transformer.pipelines import QuestionAnswerer, TextClassificationPipeline
from keras_transformer.pretrained.read import read_checkpoint
from keras_transformer.tasks.embedding.codec import TextVector
from keras_transformer.training.converted import write_converted

ctranslate2 = pytest.importorskip("ctranslate2", reason=install_hint("ctranslate2"))

PYTHON = os.environ.get("KERAS_TRANSFORMER_TRANSFORMERS", sys.executable)
SCRIPT = pathlib.Path(__file__).with_name("ctranslate2_converter.py")
TEXTS = ["a cat runs", "the big dog", "a dog", "", "the cat and the big dog runs", "a dog " * 9]
PAIRS = [("a cat", "the big dog runs. a cat"), ("the dog", "a dog"), ("", "a cat and a dog")]
FAMILIES = ["distilbert", "roberta", "xlm-roberta", "camembert", "bert"]


def masked(family):
    """The mask token of a family."""
    return "[MASK]" if family in ("bert", "distilbert") else "<mask>"


def rows_of(ids, real, types):
    """Returns lists of ids without padding, and their token types or `None`."""
    rows = [row[kept].tolist() for row, kept in zip(ids, real, strict=True)]
    return rows, None if types is None else types.tolist()


@pytest.mark.parametrize("family", [long("distilbert"), long("roberta"), slow("bert")])
def test_ctranslate2_alone_returns_the_states_of_the_checkpoint(family, tmp_path):
    """Rows of several lengths, each with the second text of a pair where the family has types."""
    settings, tensors = masked_heads.write_folder(tmp_path / "hf", family)
    pipeline = from_pretrained(tmp_path / "hf")
    export_ctranslate2(pipeline, tmp_path / "m", [f"a good {masked(family)}"])
    ids, types = masked_heads.random_rows(family, settings)
    real = ids != settings["pad_token_id"]
    types = types if family == "bert" else None
    assert types is None or types.any()
    rows, kinds = rows_of(ids, real, types)
    loaded = ctranslate2.Encoder(str(tmp_path / "m"), intra_threads=1)
    states = np.array(loaded.forward_batch(rows, token_type_ids=kinds).last_hidden_state)
    expected = masked_heads.states_of(family, tensors, settings, ids, types)
    np.testing.assert_allclose(states[real], expected[real], rtol=0, atol=1e-5)
    model = open_ctranslate2(tmp_path / "m", num_threads=1).model
    logits = masked_heads.forward(family, tensors, settings, ids, types)
    np.testing.assert_allclose(model(ids)[real], logits[real], rtol=0, atol=1e-4)
    np.testing.assert_allclose(model.encode(ids)[real], expected[real], rtol=0, atol=1e-5)


@functools.cache
def pair_answerer():
    """Segments, whose embedding is not scaled but the tokens' is."""
    config = SpanPredictorConfig(vocab_size=30, **SIZES, max_answer=4, segments="from_bos")
    return QuestionAnswerer(with_larger_weights(SpanPredictor(config)), tokenizer())


@functools.cache
def pre_norm_classifier():
    """A pooler, and everything else in which natively trained encoders differ from BERT."""
    changes = {"norm": "pre", "position": "t5", "pooling": "max", "pooler": True}
    fields = {**SIZES, **changes, "feed_forward": "gated", "activation": "silu"}
    config = ClassifierConfig(vocab_size=30, **fields, labels=pipelines.LABELS)
    return TextClassificationPipeline(with_larger_weights(TextClassifier(config)), tokenizer())


MAKERS = {
    "labels": pipelines.classifier,
    "pooler": pre_norm_classifier,
    "vectors": pipelines.embedder,
    "words": pipelines.token_classifier,
    "masks": pipelines.filler,
    "answers": pipelines.answerer,
    "answers of pairs with segments": pair_answerer,
}
MASKED = [f"{text} <mask>" for text in TEXTS]


def examples_of(name):
    return MASKED if name == "masks" else PAIRS if name.startswith("answers") else TEXTS


def assert_same(results, expected, atol=1e-5):
    for result, wanted in zip(results, expected, strict=True):
        assert result.truncated == wanted.truncated
        assert isinstance(result, TextVector) or result.choice == wanted.choice
        np.testing.assert_allclose(result.numbers, wanted.numbers, rtol=0, atol=atol)


@pytest.mark.parametrize("name", slow_except(MAKERS, "answers of pairs with segments", mark=long))
def test_every_task_answers_as_the_run_does(name, tmp_path):
    pipeline, examples = MAKERS[name](), examples_of(name)
    report = export_ctranslate2(pipeline, tmp_path / "m", examples)
    assert report["sentences"] == len(examples)
    assert report["agreement"] == 1 or name == "vectors"  # which differ by rounding
    loaded = open_ctranslate2(tmp_path / "m", num_threads=1)
    assert type(loaded) is type(pipeline)
    expected = pipeline.answer(examples)
    numbers = np.concatenate([np.ravel(result.numbers) for result in expected])
    assert len({*numbers.round(3)}) > 3
    together = loaded.answer_batch(examples)
    assert_same(together, expected)
    assert_same([loaded.answer_batch([example])[0] for example in examples], together)
    assert loaded.answer_batch([]) == []


@pytest.mark.long
@pytest.mark.slow
def test_a_program_without_this_package_pools_the_states_itself(tmp_path, monkeypatch):
    """The program of the documents: the mean of the tokens, of unit length."""
    test_sentence_encoders.bert(tmp_path / "hf")
    test_sentence_encoders.add_modules(tmp_path / "hf")
    embedder = from_pretrained(tmp_path / "hf")
    export_ctranslate2(embedder, tmp_path / "similar-ct2", ["a dog", "the cat is good"])
    assert not (tmp_path / "similar-ct2" / "head.npz").exists()
    monkeypatch.chdir(tmp_path)
    (block,) = documents.blocks("docs/ctranslate2.md", "python")
    vectors = documents.run([block])["vectors"]
    np.testing.assert_allclose(vectors, embedder.embed(["a dog", "cat"]), atol=1e-5)


@pytest.mark.slow
def test_quantised_vectors_point_in_nearly_the_same_direction(tmp_path, quantize="int8"):
    embedder = pipelines.embedder()
    exact = export_ctranslate2(embedder, tmp_path / "exact", TEXTS)
    report = export_ctranslate2(embedder, tmp_path / "m", TEXTS, CTranslate2Options(quantize))
    loaded = open_ctranslate2(tmp_path / "m", compute_type="float32")
    cosines = np.sum(loaded.embed(TEXTS) * embedder.embed(TEXTS), axis=1)
    limit = embedder.codec.max_score_loss[quantize]
    assert (cosines > 1 - limit).all()
    assert (loaded.embed(TEXTS) != open_ctranslate2(tmp_path / "exact").embed(TEXTS)).any()
    assert report["in_float32"]["score_error"] == pytest.approx(np.mean(1 - cosines), abs=1e-6)
    assert report["bytes"] < exact["bytes"]
    stored = json.loads((tmp_path / "m" / "config.json").read_text())["agreement"]
    assert stored["in_float32"] == report["in_float32"]


@pytest.mark.slow
def test_a_head_that_differs_is_detected(tmp_path, monkeypatch, quantize="int8"):
    pipeline, write = pipelines.classifier(), answered.write_head

    def write_wrong(draft, model):
        weight = model.parts.weights("head")["output_layer/kernel"]
        before = weight.numpy()
        weight.assign(before[:, ::-1] * 4)
        write(draft, model)
        weight.assign(before)

    monkeypatch.setattr(answered, "write_head", write_wrong)
    with pytest.raises(ExportError, match=r"x: .* (differs|off) .* not kept"):
        export_ctranslate2(pipeline, tmp_path / "x", TEXTS, CTranslate2Options(quantize))
    assert listing(tmp_path) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a classifier."""
    folder = tmp_path_factory.mktemp("classifier") / "m"
    export_ctranslate2(pipelines.classifier(), folder, TEXTS)
    return folder


ARRAYS = ("pooling/query", "output_layer/kernel", "output_layer/bias")


class Hostile:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def pickled(path):
    np.savez(path, **{name: np.array([Hostile()], object) for name in ARRAYS})


def other_shape(path):
    with np.load(path) as file:
        arrays = dict(file)
    arrays["output_layer/kernel"] = arrays["output_layer/kernel"].T
    np.savez(path, **arrays)


def much_larger(path):
    """A header that asks for 4 TiB, for the same model as `of_much_width`."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (2**40,)}
    with zipfile.ZipFile(path, "w") as archive:
        for name in ARRAYS:
            file = io.BytesIO()
            np.lib.format.write_array_header_1_0(file, header)
            archive.writestr(f"{name}.npy", file.getvalue())


def compressed_and_damaged(path):
    with np.load(path) as file:
        np.savez_compressed(path, **{name: file[name] for name in ARRAYS})
    with zipfile.ZipFile(path) as archive:
        first = archive.infolist()[0]
    content = bytearray(path.read_bytes())
    begin = first.header_offset + 30 + len(first.filename) + 20  # in the compressed bytes
    content[begin : begin + 9] = b"\xff" * 9
    path.write_bytes(bytes(content))


def without_ending(path):
    with np.load(path) as file, zipfile.ZipFile(f"{path}.new", "w") as archive:
        for name in file:
            archive.writestr(name, file[name].tobytes())
    pathlib.Path(f"{path}.new").replace(path)


def in_float64(path):
    with np.load(path) as file:
        arrays = {name: file[name].astype("float64") for name in file}
    np.savez(path, **arrays)


def of_much_width(path):
    config = json.loads(path.read_text())
    config["model"]["encoder"]["d_model"] = 2**40
    path.write_text(json.dumps(config))


def without_model(path):
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "model": {"encoder": 3}}))


def of_another_task(path):
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "task": "time_series"}))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("head.npz", pathlib.Path.unlink, r"m/head\.npz is damaged or missing\. Export"),
        ("head.npz", lambda path: path.write_bytes(b"PK"), r"head\.npz is damaged or missing"),
        ("head.npz", lambda path: path.write_bytes(pickle.dumps(Hostile())), "damaged or missing"),
        ("head.npz", pickled, r"head\.npz is damaged or missing"),
        ("head.npz", other_shape, r"head\.npz does not belong to this model, whose head has "),
        ("head.npz", much_larger, r"head\.npz does not belong to this model, whose head has "),
        ("head.npz", compressed_and_damaged, r"head\.npz is damaged or missing"),
        ("head.npz", without_ending, r"head\.npz is damaged or missing"),
        ("head.npz", in_float64, r"head\.npz is damaged or missing"),
        ("config.json", of_much_width, r"head\.npz does not belong to this model, whose head has"),
        ("config.json", without_model, r"config\.json is damaged: it does not describe a model of"),
        ("config.json", of_another_task, r"config\.json is damaged: it does not describe a model"),
        ("model.bin", pathlib.Path.unlink, r"was not written by .*model\.bin is missing"),
    ],
)
def test_damaged_folders_are_reported(folder, tmp_path, name, change, message):
    (tmp_path / "m").mkdir()
    for file in folder.iterdir():
        (tmp_path / "m" / file.name).write_bytes(file.read_bytes())
    change(tmp_path / "m" / name)
    with pytest.raises(ValueError, match=message) as caught:
        open_ctranslate2(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_an_opened_folder_is_not_exported_again(folder, tmp_path):
    for export in (export_ctranslate2, export_saved_model, export_litert):
        with pytest.raises(ExportError, match="opened from an export cannot be exported. Open the"):
            export(open_ctranslate2(folder), tmp_path / "m", TEXTS)
    assert listing(tmp_path) == []


def test_a_search_and_numbers_out_of_range_are_refused(folder):
    with pytest.raises(ValueError, match=r"`search` has no effect on .*m, a model for classif"):
        open_ctranslate2(folder, Greedy())
    with pytest.raises(ValueError, match="`num_parallel_calls` must be an integer of at least 1"):
        open_ctranslate2(folder, num_parallel_calls=0)
    with pytest.raises(ValueError, match="has no attention weights. Open the run"):
        open_ctranslate2(folder).attention("a cat")


def test_predict_and_its_options(folder):
    def predict(*options):
        return CliRunner().invoke(cli, ["predict", str(folder), *options], input="a cat\n\na dog\n")

    done = predict()
    first, second = pipelines.classifier()(["a cat", "a dog"])
    assert (done.exit_code, done.stdout) == (0, f"{first}\n\n{second}\n"), done.output
    for options in (["--beam", "3"], ["--max-length", "3"], ["--greedy"]):
        done = predict(*options)
        assert (
            done.exit_code == 2 and f"{options[0]} has no effect on {folder}, a mo" in done.stderr
        )
    done = predict("--dimensions", "3")
    assert done.exit_code == 2 and "has no effect on" in done.stderr


@pytest.mark.slow
def test_the_commands_export_and_embed(tmp_path):
    embedder = pipelines.embedder()
    run = write_run(embedder, tmp_path / "run")
    (tmp_path / "in.txt").write_text("a cat runs\nthe big dog\n")
    command = ["export", "ctranslate2", run, tmp_path / "m", "--sentences", tmp_path / "in.txt"]
    done = CliRunner().invoke(cli, [*map(str, command), "--quantize", "float16"])
    assert done.exit_code == 0, done.output
    arguments = ["predict", str(tmp_path / "m"), "--dimensions", "3"]
    done = CliRunner().invoke(cli, arguments, input="a cat runs\n")
    found = np.array(done.stdout.split(), float)
    # The weights are rounded to float16, which has a precision of about 1e-3.
    np.testing.assert_allclose(found, embedder.embed(["a cat runs"], 3)[0], atol=1e-3)


@pytest.mark.parametrize(
    ("family", "message"),
    [
        slow("albert", r"`embedding_size`"),
        slow("mpnet", "`attention_position`"),
        slow("deberta-v2", "`attention_position`"),
        ("modernbert", "local attention"),
    ],
)
def test_families_that_ctranslate2_cannot_express_are_refused_by_name(family, message, tmp_path):
    encoder_folders.write_folder(tmp_path / "hf", family)
    pipeline = from_pretrained(tmp_path / "hf")
    with pytest.raises(ExportError, match=f"cannot express .*{message}"):
        export_ctranslate2(pipeline, tmp_path / "m", ["a dog"])
    assert not (tmp_path / "m").exists()


def test_the_command_refuses_a_run_before_its_weights_are_read(tmp_path, monkeypatch):
    encoder_folders.write_folder(tmp_path / "hf", "albert")
    run = write_converted(read_checkpoint(tmp_path / "hf"), tmp_path / "run")
    monkeypatch.setattr("keras_transformer.tasks.open_run", None)
    arguments = ["export", "ctranslate2", str(run.path), str(tmp_path / "m")]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 1 and "cannot express embeddings with a width" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_folder_of_ctranslate2s_own_converter_has_the_same_states(family, tmp_path):
    probe = [PYTHON, "-c", "import torch, transformers, ctranslate2"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip(
            "KERAS_TRANSFORMER_TRANSFORMERS names no Python with torch, transformers and "
            "ctranslate2"
        )
    settings, _ = masked_heads.write_folder(tmp_path / "hf", family)
    done = subprocess.run(
        [PYTHON, SCRIPT, tmp_path / "hf", tmp_path / "theirs"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    pipeline = from_pretrained(tmp_path / "hf")
    export_ctranslate2(pipeline, tmp_path / "ours", [f"a good {masked(family)}"])
    ids, types = masked_heads.random_rows(family, settings)
    real = ids != settings["pad_token_id"]
    rows, kinds = rows_of(ids, real, types if family == "bert" else None)
    states = [
        np.array(
            ctranslate2.Encoder(str(tmp_path / name), intra_threads=1)
            .forward_batch(rows, token_type_ids=kinds)
            .last_hidden_state
        )
        for name in ("ours", "theirs")
    ]
    np.testing.assert_allclose(states[0][real], states[1][real], rtol=0, atol=1e-5)
