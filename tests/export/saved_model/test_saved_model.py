import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from support import listing
from tensorflow.core.protobuf import saved_model_pb2

from keras_transformer import Transformer, Translator
from keras_transformer.export.parity import ExportError, copy_translator
from keras_transformer.export.saved_model import export as saved_model
from keras_transformer.export.saved_model.export import export_saved_model
from keras_transformer.export.saved_model.signatures import make_endpoints
from keras_transformer.export.saved_model.verify import SessionModel, check_operations, verify
from keras_transformer.export.saved_model.warmup import Request
from keras_transformer.tasks.strings import map_sorted

SIGNATURES = ["serving_default", "n_best", "tokens", "beam_tokens", "search"]

# A server's program: TensorFlow and TensorFlow Text, nothing of ours. Bytes are hexadecimal.
SERVER = """
import json, sys
import numpy as np
sys.modules["keras_transformer"] = None  # to import it is an error
import tensorflow as tf
from tensorflow.python.framework import op_def_registry
requests, operations = map(json.loads, sys.argv[2:])
foreign = [name for name in operations if op_def_registry.get(name) is None]
import tensorflow_text
session = tf.compat.v1.Session(graph=tf.Graph())
with session.graph.as_default():
    meta = tf.compat.v1.saved_model.loader.load(session, ["serve"], sys.argv[1])
answers = {"foreign": foreign}
for name, inputs in requests.items():
    signature = meta.signature_def[name]
    if "sentences" in inputs:
        inputs["sentences"] = [bytes.fromhex(value) for value in inputs["sentences"]]
    feed = {info.name: inputs.pop(name) for name, info in signature.inputs.items()}
    assert not inputs
    outputs = {output: info.name for output, info in signature.outputs.items()}
    outputs = session.run(outputs, feed)
    for output, value in outputs.items():
        if value.dtype == object:
            outputs[output] = np.vectorize(bytes.hex)(value)
    answers[name] = {output: value.tolist() for output, value in outputs.items()}
print(json.dumps(answers))
"""


def graph_of(path):
    proto = saved_model_pb2.SavedModel.FromString(pathlib.Path(path, "saved_model.pb").read_bytes())
    return proto.meta_graphs[0].graph_def


@pytest.fixture(scope="module")
def operations(serving):
    """Names of all operations in the graph and in its library of functions."""
    graph = graph_of(serving[0] / "1")
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return {node.op for node in nodes} - {f.signature.name for f in graph.library.function}


@pytest.fixture(scope="module")
def serve(serving):
    return tf.saved_model.load(serving[0] / "1").signatures["serving_default"]


def test_the_report_says_what_was_written_and_checked(serving, sentences):
    directory, report = serving
    assert report["path"] == str(directory / "1")
    assert (report["sentences"], report["agreement"]) == (len(sentences), 1.0)
    assert report["signatures"] == [*SIGNATURES, "alignment"]
    assert report["bytes"] == sum(p.stat().st_size for p in directory.rglob("*") if p.is_file())
    assert json.loads(json.dumps(report)) == report


def test_the_folder_is_as_tensorflow_serving_expects_it(serving):
    directory, _ = serving
    assert os.listdir(directory) == ["1"]
    assert {
        "1/saved_model.pb",
        "1/variables/variables.index",
        "1/assets.extra/tf_serving_warmup_requests",
        "1/batching_parameters.txt",
        "1/README.md",
    } <= set(listing(directory))
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


@pytest.fixture(scope="module")
def answers(serving, operations, translator, sentences, python):
    requests = {}
    for endpoint in make_endpoints(translator, alignment=(-1, None)):
        inputs = {name: value.numpy() for name, value in endpoint.example(sentences).items()}
        if "sentences" in inputs:
            inputs["sentences"] = np.vectorize(bytes.hex)(inputs["sentences"])
        requests[endpoint.name] = {name: value.tolist() for name, value in inputs.items()}
    assert list(requests) == [*SIGNATURES, "alignment"]
    return json.loads(
        python(SERVER, serving[0] / "1", json.dumps(requests), json.dumps(sorted(operations)))
    )


def test_a_server_without_our_package_gives_the_same(answers, translator, sentences):
    answer, ours = answers["serving_default"], translator.translate_batch(sentences)
    texts = [bytes.fromhex(text).decode() for text in answer["translation"]]
    assert texts == [output.text for output in ours]
    assert answer["truncated"] == [output.truncated for output in ours]
    assert answer["score"] == pytest.approx([output.score for output in ours], abs=1e-4)


def test_so_do_the_other_signatures(answers, translator, sentences):
    for endpoint in make_endpoints(translator, alignment=(-1, None))[1:]:
        ours = endpoint.function(**endpoint.example(sentences))
        answer = answers[endpoint.name]
        assert set(answer) == set(ours)
        for name, value in ours.items():
            if value.dtype.is_floating:
                np.testing.assert_allclose(answer[name], value, rtol=1e-5, atol=1e-4)
            elif value.dtype == tf.string:
                assert answer[name] == np.vectorize(bytes.hex)(value.numpy()).tolist()
            else:
                assert answer[name] == value.numpy().tolist()


def test_every_operation_is_tensorflows_or_one_of_sentencepieces_three(answers, operations):
    assert len(operations) > 30
    pieces = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
    assert set(answers["foreign"]) == pieces  # what TensorFlow alone does not know
    assert not [name for name in operations if name.startswith("Xla")]


BATCHES = {
    "0": [],
    "1": ["in 17 weeks"],
    "empty": [""],
    "mixed": ["", "in 17 weeks", "", "after 3 hours and 12 minutes"],
    "1 MB": ["x" * 1_000_000, "in 17 weeks"],
    "1 MB of words": ["in 3 weeks " * 100_000],
    "control": ["in 17\x00 weeks", "\x01\x02", "\n", "in\t17\tweeks\r\n", "\u2028", "\ufeff"],
    "300": ["in 3 weeks"] * 300,
    "scripts": ["日本語", "🙂" * 50, "e\u0301"],
}


@pytest.mark.slow
def test_any_batch_gets_its_answers(serve, translator):
    for name, batch in BATCHES.items():
        answers = serve(sentences=tf.constant(batch, tf.string, [len(batch)]))
        ours = translator.translate_batch(batch)
        texts = [text.decode() for text in answers["translation"].numpy()]
        assert texts == [output.text for output in ours], name
        assert answers["truncated"].numpy().tolist() == [output.truncated for output in ours], name
        assert len(texts) == len(batch), name


def test_bytes_that_are_not_utf8_do_not_disturb_their_neighbours(serve):
    batch = [b"in 17 weeks", b"in \xff\xfe 17 weeks", b"\x80", b"\xed\xa0\x80"]
    together = serve(sentences=tf.constant(batch))["translation"].numpy()
    assert together[0] == serve(sentences=tf.constant(batch[:1]))["translation"].numpy()[0]
    for text in together:
        text.decode()  # the answers are UTF-8


@pytest.mark.slow
def test_versions_are_counted_up_and_mixed_precision_becomes_float32(light, sentences, tmp_path):
    directory = tmp_path / "serving"
    for version in ("2", "10"):
        (directory / version).mkdir(parents=True)
        (directory / version / "saved_model.pb").write_bytes(b"an older one")
    mixed = Transformer(light.model.config, dtype="mixed_bfloat16")
    mixed.set_weights(light.model.get_weights())
    report = export_saved_model(Translator(mixed, light.source_tokenizer), directory, sentences)
    assert report["path"] == str(directory / "11")
    assert (report["agreement"], report["signatures"]) == (1.0, SIGNATURES)
    assert sorted(os.listdir(directory)) == ["10", "11", "2"]
    assert (directory / "2" / "saved_model.pb").read_bytes() == b"an older one"
    assert "DT_BFLOAT16" not in str(graph_of(report["path"]))


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


def test_sizes_to_compile_for_are_checked_before_any_work(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    with pytest.raises(ValueError, match="`batch_sizes` must be positive and increasing"):
        export_saved_model(translator, tmp_path / "x", ["in 3"], jit=True, batch_sizes=(4, 1))
    assert listing(tmp_path) == []


@pytest.mark.parametrize("lengths", [(16,), (16, 32)])
def test_lengths_end_in_the_longest(translator, tmp_path, monkeypatch, lengths):
    refuse(monkeypatch)
    message = f"`lengths` must end in the translator's max_length, 20. Received: .*{lengths[-1]}"
    with pytest.raises(ValueError, match=message):
        export_saved_model(translator, tmp_path / "x", ["in 3"], jit=True, lengths=lengths)
    assert listing(tmp_path) == []


def test_a_layer_that_is_not_there_is_refused_before_any_work(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    with pytest.raises(ValueError, match=r"`alignment` must be a pair .*alignment=\(2, None\)"):
        export_saved_model(translator, tmp_path / "x", ["in 3"], alignment=(2, None))
    assert listing(tmp_path) == []


def test_nothing_to_check_with_is_refused_before_any_work(translator, tmp_path, monkeypatch):
    refuse(monkeypatch)
    with pytest.raises(ValueError, match="at least one sentence"):
        export_saved_model(translator, tmp_path / "serving", [])
    assert listing(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("which, place", [(0, (7, 3)), (-1, (3, 7))])
def test_an_export_that_differs_by_one_weight_is_found_out(
    light, sentences, tmp_path, monkeypatch, which, place
):
    """The table, or the copy of it that makes the logits."""
    save = tf.saved_model.save

    def save_another(module, *args, **kwargs):
        table = module.weights[which]
        assert sorted(table.shape) == sorted(light.model.target_embedding.table.shape)
        changed = table.numpy()
        changed[place] += 0.05
        table.assign(changed)
        save(module, *args, **kwargs)

    monkeypatch.setattr(tf.saved_model, "save", save_another)
    with pytest.raises(ExportError, match="differ"):
        export_saved_model(light, tmp_path / "new" / "serving", sentences)
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_what_only_python_can_load_is_found_out(light, tmp_path, monkeypatch):
    """Python finds variables that are saved as part of a Keras model; a server does not."""
    save, copies = tf.saved_model.save, []

    def copy(*arguments):
        copies.append(copy_translator(*arguments))
        return copies[-1]

    def save_model(module, folder, **kwargs):
        module.weights, module.keras_model = module.weights[-1:], copies[0].model
        save(module, folder, **kwargs)

    monkeypatch.setattr(saved_model, "copy_translator", copy)
    monkeypatch.setattr(tf.saved_model, "save", save_model)
    with pytest.raises(ExportError, match="serving: TensorFlow Serving could not .* find variable"):
        export_saved_model(light, tmp_path / "serving", ["in 17 weeks"])
    assert listing(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SIGNATURES)
def test_every_signature_is_checked(serving, translator, sentences, name, monkeypatch):
    """With each sentence's answer in the place of another's, from the loaded model."""
    run = SessionModel.run

    def exchanged(model, signature, **inputs):
        outputs = run(model, signature, **inputs)
        return (
            {key: value[::-1] for key, value in outputs.items()} if signature == name else outputs
        )

    monkeypatch.setattr(SessionModel, "run", exchanged)
    expected = map_sorted(translator.translate_batch, sentences[:6], 64)
    with pytest.raises(ExportError, match=f"serving, {name}: .* differ .*not kept"):
        verify(serving[0] / "1", "serving", make_endpoints(translator), sentences[:6], [], expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, change",
    [
        ("tokens", lambda value: value[:, ::-1]),
        ("source_pieces", lambda value: value[:, ::-1]),
        ("target_pieces", lambda value: value[:, ::-1]),
        ("alignment", lambda value: value[:, :, ::-1]),
        ("alignment", lambda value: value * 1.01),
        ("alignment", lambda value: value * np.nan),
        ("alignment", lambda value: np.pad(value, [(0, 0), (0, 0), (0, 1)])),
    ],
)
def test_every_output_of_an_alignment_is_checked(serving, translator, sentences, name, change):
    endpoints = make_endpoints(translator, alignment=(-1, None))[::5]
    answer = endpoints[1].function
    endpoints[1].function = lambda sentences: {
        key: change(value.numpy()) if key == name else value
        for key, value in answer(sentences).items()
    }
    expected = map_sorted(translator.translate_batch, sentences[:5], 64)
    with pytest.raises(ExportError, match=f"x, alignment: `{name}` of '.*' differs .*not kept"):
        verify(serving[0] / "1", "x", endpoints, sentences[:5], [], expected)


@pytest.mark.slow
def test_an_alignment_of_another_layer_is_found_out(deep, sentences, tmp_path, monkeypatch):
    def make(translator, search, n_best, graph_of=None, alignment=None):
        if graph_of is None:
            return make_endpoints(translator, search, n_best, alignment=alignment)
        return make_endpoints(translator, search, n_best, graph_of, (0, None))

    monkeypatch.setattr("keras_transformer.export.saved_model.export.make_endpoints", make)
    message = "serving, alignment: `alignment` of .* differs .* not kept"
    with pytest.raises(ExportError, match=message):
        export_saved_model(deep, tmp_path / "serving", sentences[:3], alignment=(-1, None))
    assert listing(tmp_path) == []


@pytest.mark.slow
def test_a_request_that_the_server_could_not_answer_at_its_start_is_found_out(
    serving, translator, sentences
):
    expected = map_sorted(translator.translate_batch, sentences, 64)
    request = Request("tokens", {"source": [[5, 6]]})
    with pytest.raises(ExportError, match="could not run it: .*must end each row in the id 3"):
        verify(serving[0] / "1", "x", make_endpoints(translator), sentences, [request], expected)


def test_operations_that_a_server_lacks_are_named():
    graph = tf.compat.v1.GraphDef()
    for operation in ("Add", "XlaSharding", "SentencepieceOp", "TokenizerFromHub", "AddV2"):
        graph.node.add(op=operation)
    message = "does not have the operations TokenizerFromHub, XlaSharding"
    with pytest.raises(ExportError, match=message):
        check_operations(graph)


def test_ctrl_c_leaves_nothing(light, tmp_path, monkeypatch):
    def stop(module, folder, **kwargs):
        pathlib.Path(folder, "variables").mkdir()
        pathlib.Path(folder, "variables", "half").write_bytes(b"of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(tf.saved_model, "save", stop)
    version = tmp_path / "serving" / "1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"an older one")
    before = listing(tmp_path)
    for directory in (tmp_path / "serving", tmp_path / "new" / "serving"):
        with pytest.raises(KeyboardInterrupt):
            export_saved_model(light, directory, ["in 17 weeks"])
    assert listing(tmp_path) == before


@pytest.mark.slow
def test_a_full_disk_is_one_clear_line(light, tmp_path, full_disk):
    with pytest.raises(OSError, match="serving .*File too large") as caught, full_disk(50_000):
        export_saved_model(light, tmp_path / "serving", ["in 17 weeks"])
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == []
