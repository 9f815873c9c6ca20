import json
import os
import pathlib

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_transformer import Transformer, Translator
from keras_transformer.export.parity import ExportError
from keras_transformer.export.saved_model import export_saved_model

# What a server does: TensorFlow and TensorFlow Text, nothing of ours.
SERVER = """
import json, sys
import tensorflow as tf
import tensorflow_text
session = tf.compat.v1.Session(graph=tf.Graph())
with session.graph.as_default():
    meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], sys.argv[1])
signature = meta.signature_def["serving_default"]
outputs = {name: info.name for name, info in signature.outputs.items()}
batch = [bytes.fromhex(sentence) for sentence in json.loads(sys.argv[2])]
answers = session.run(outputs, {signature.inputs["sentences"].name: batch})
assert not [name for name in sys.modules if name.startswith("keras_transformer")]
print(json.dumps({
    "translation": [text.hex() for text in answers["translation"].tolist()],
    "score": answers["score"].tolist(),
    "truncated": answers["truncated"].tolist(),
}))
"""

# What TensorFlow alone registers, asked before anything else could register more.
CORE = """
import sys
import tensorflow as tf
from tensorflow.python.framework import op_def_registry
unknown = [name for name in sys.argv[1:] if op_def_registry.get(name) is None]
print(" ".join(unknown))
"""


@pytest.fixture(scope="module")
def serve(serving):
    return tf.saved_model.load(serving[0] / "1").signatures["serving_default"]


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_report_says_what_was_written_and_checked(serving, sentences):
    directory, report = serving
    assert report["path"] == str(directory / "1")
    assert (report["sentences"], report["agreement"]) == (len(sentences), 1.0)
    assert report["bytes"] == sum(p.stat().st_size for p in directory.rglob("*") if p.is_file())
    assert json.loads(json.dumps(report)) == report


def test_the_folder_is_as_tensorflow_serving_expects_it(serving):
    directory, _ = serving
    assert os.listdir(directory) == ["1"]
    assert {"1/saved_model.pb", "1/variables/variables.index"} <= set(listing(directory))
    assert (directory / "1").stat().st_mode & 0o777 == 0o777 & ~umask()


def umask():
    value = os.umask(0)
    os.umask(value)
    return value


def test_strings_in_strings_and_scores_out(serve):
    inputs = serve.structured_input_signature[1]
    assert inputs == {"sentences": tf.TensorSpec([None], tf.string, "sentences")}
    dtypes = {name: spec.dtype for name, spec in serve.structured_outputs.items()}
    assert dtypes == {"translation": tf.string, "score": tf.float32, "truncated": tf.bool}


def test_a_server_without_our_package_gives_the_same(serving, translator, sentences, python):
    batch = json.dumps([sentence.encode().hex() for sentence in sentences])
    answers = json.loads(python(SERVER, serving[0] / "1", batch))
    ours = translator.translate_batch(sentences)
    texts = [bytes.fromhex(text).decode() for text in answers["translation"]]
    assert texts == [each.text for each in ours]
    assert answers["truncated"] == [each.truncated for each in ours]
    assert answers["score"] == pytest.approx([each.score for each in ours], abs=1e-4)


def graph_of(path):
    proto = saved_model_pb2.SavedModel.FromString(pathlib.Path(path, "saved_model.pb").read_bytes())
    return proto.meta_graphs[0].graph_def


def test_every_operation_is_tensorflows_or_one_of_sentencepieces_three(serving, python):
    graph = graph_of(serving[0] / "1")
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    functions = {f.signature.name for f in graph.library.function}
    names = {node.op for node in nodes} - functions
    assert len(names) > 30
    pieces = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
    assert pieces <= names
    assert not [name for name in names if name.startswith("Xla")]
    assert set(python(CORE, *sorted(names)).split()) == pieces


@pytest.mark.parametrize(
    "batch",
    [
        [],
        ["in 17 weeks"],
        [""],
        ["", "in 17 weeks", "", "after 3 hours and 12 minutes"],
        ["x" * 1_000_000, "in 17 weeks"],
        ["in 3 weeks " * 100_000],
        ["in 17\x00 weeks", "\x01\x02", "\n", "in\t17\tweeks\r\n", "\u2028", "\ufeff"],
        ["in 3 weeks"] * 300,
        ["日本語", "🙂" * 50, "e\u0301"],
    ],
    ids=["0", "1", "empty", "mixed", "1 MB", "1 MB of words", "control", "300", "scripts"],
)
def test_any_batch_gets_its_answers(serve, translator, batch):
    answers = serve(sentences=tf.constant(batch, tf.string, [len(batch)]))
    ours = translator.translate_batch(batch)
    texts = [text.decode() for text in answers["translation"].numpy()]
    assert texts == [each.text for each in ours]
    assert answers["truncated"].numpy().tolist() == [each.truncated for each in ours]
    assert len(texts) == len(batch)


def test_bytes_that_are_not_utf8_do_not_disturb_their_neighbours(serve):
    batch = [b"in 17 weeks", b"in \xff\xfe 17 weeks", b"\x80", b"\xed\xa0\x80"]
    together = serve(sentences=tf.constant(batch))["translation"].numpy()
    assert together[0] == serve(sentences=tf.constant(batch[:1]))["translation"].numpy()[0]
    for text in together:
        text.decode()  # the answers are UTF-8


def test_versions_are_counted_up(translator, tmp_path):
    directory = tmp_path / "serving"
    for version in ("2", "10"):
        (directory / version).mkdir(parents=True)
        (directory / version / "saved_model.pb").write_bytes(b"an older one")
    report = export_saved_model(translator, directory, ["in 17 weeks"])
    assert report["path"] == str(directory / "11")
    assert sorted(os.listdir(directory)) == ["10", "11", "2"]
    assert (directory / "2" / "saved_model.pb").read_bytes() == b"an older one"


def refuse(monkeypatch):
    def save(*args, **kwargs):
        raise AssertionError("work was done before the refusal")

    monkeypatch.setattr(tf.saved_model, "save", save)


def test_a_folder_of_something_else_is_left_alone(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("1")
    before = listing(tmp_path)
    with pytest.raises(ExportError, match="thesis holds other things .*chapter.txt"):
        export_saved_model(translator, tmp_path / "thesis", ["in 17 weeks"])
    assert listing(tmp_path) == before


def test_neither_a_file_nor_a_version_is_a_place_for_versions(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    (tmp_path / "file").write_text("1")
    with pytest.raises(ExportError, match="file is a file"):
        export_saved_model(translator, tmp_path / "file", ["in 17 weeks"])
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ExportError, match="1 is itself a SavedModel.*the folder above"):
        export_saved_model(translator, tmp_path / "1", ["in 17 weeks"])


def test_nothing_to_check_with_is_refused_before_any_work(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    with pytest.raises(ValueError, match="at least one sentence"):
        export_saved_model(translator, tmp_path / "serving", [])
    assert listing(tmp_path) == []


def test_an_export_that_differs_by_one_weight_is_found_out(
    translator, sentences, tmp_path, disturb, monkeypatch
):
    save = tf.saved_model.save

    def save_another(*args, **kwargs):
        table = translator.model.target_embedding.table
        before = table.numpy()
        disturb()
        save(*args, **kwargs)
        table.assign(before)

    monkeypatch.setattr(tf.saved_model, "save", save_another)
    with pytest.raises(ExportError, match="differ"):
        export_saved_model(translator, tmp_path / "new" / "serving", sentences)
    assert listing(tmp_path) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt])
def test_whatever_stops_it_nothing_is_left(translator, tmp_path, monkeypatch, error):
    def stop(*args, **kwargs):
        raise error

    monkeypatch.setattr(tf.saved_model, "load", stop)
    version = tmp_path / "serving" / "1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"an older one")
    before = listing(tmp_path)
    with pytest.raises(error):
        export_saved_model(translator, tmp_path / "serving", ["in 17 weeks"])
    with pytest.raises(error):
        export_saved_model(translator, tmp_path / "new" / "serving", ["in 17 weeks"])
    assert listing(tmp_path) == before


def test_a_full_disk_is_one_clear_line(translator, tmp_path, full_disk):
    with pytest.raises(OSError, match="serving .*File too large") as caught, full_disk(50_000):
        export_saved_model(translator, tmp_path / "serving", ["in 17 weeks"])
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == []


def test_a_mixed_precision_model_is_exported_in_float32(translator, sentences, tmp_path):
    mixed = Transformer(translator.model.config, dtype="mixed_bfloat16")
    mixed.set_weights(translator.model.get_weights())
    report = export_saved_model(
        Translator(mixed, translator.tokenizer), tmp_path / "serving", sentences
    )
    assert report["agreement"] == 1.0
    assert "DT_BFLOAT16" not in str(graph_of(report["path"]))
