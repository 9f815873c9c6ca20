import io
import json
import os
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from marks import long
from support import listing
from tensorflow.core.protobuf import saved_model_pb2

from keras_transformer import Transformer, Translator
from keras_transformer.export.runtime import reason
from keras_transformer.export.saved_model.export import export_saved_model
from keras_transformer.export.saved_model.inputs import with_checked_shapes
from keras_transformer.export.saved_model.loaders import LOADERS
from keras_transformer.export.saved_model.runtime import SavedModelTranslator
from keras_transformer.export.saved_model.signatures import make_endpoints
from keras_transformer.opening.stream import answer_stream

SIGNATURES = ["serving_default", "n_best", "tokens", "beam_tokens", "search"]

# A server's program: TensorFlow and TensorFlow Text without our package. Bytes are hexadecimal.
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
    """The names of all operations in the graph and in its library of functions."""
    graph = graph_of(serving[0] / "1")
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return {node.op for node in nodes} - {f.signature.name for f in graph.library.function}


@pytest.fixture(scope="module")
def serve(serving):
    return tf.saved_model.load(serving[0] / "1").signatures["serving_default"]


@pytest.mark.slow
def test_the_report_states_what_was_written_and_checked(serving, sentences):
    directory, report = serving
    assert report["path"] == str(directory / "1")
    assert (report["sentences"], report["agreement"]) == (len(sentences), 1.0)
    assert report["signatures"] == [*SIGNATURES, "alignment"]
    assert report["bytes"] == sum(p.stat().st_size for p in directory.rglob("*") if p.is_file())
    assert json.loads(json.dumps(report)) == report


@pytest.mark.slow
def test_the_folder_has_the_layout_of_tensorflow_serving(serving):
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


@pytest.mark.slow
def test_strings_in_strings_and_scores_out(serve):
    inputs = serve.structured_input_signature[1]
    assert inputs == {"sentences": tf.TensorSpec([None], tf.string, "sentences")}
    dtypes = {name: spec.dtype for name, spec in serve.structured_outputs.items()}
    flags = {"truncated": tf.bool, "complete": tf.bool}
    assert dtypes == {"translation": tf.string, "score": tf.float32, **flags}


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


@pytest.mark.slow
def test_a_server_without_our_package_gives_the_same(answers, translator, sentences):
    answer, ours = answers["serving_default"], translator.answer_batch(sentences)
    texts = [bytes.fromhex(text).decode() for text in answer["translation"]]
    assert texts == [output.text for output in ours]
    assert answer["truncated"] == [output.truncated for output in ours]
    assert answer["complete"] == [output.complete for output in ours]
    assert answer["score"] == pytest.approx([output.score for output in ours], abs=1e-4)


@pytest.mark.slow
def test_other_signatures_give_the_same_on_a_server(answers, translator, sentences):
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


@pytest.mark.slow
def test_operations_are_those_of_tensorflow_and_three_of_sentencepiece(answers, operations):
    assert len(operations) > 30
    pieces = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
    assert set(answers["foreign"]) == pieces  # operations that TensorFlow alone does not know
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
        ours = translator.answer_batch(batch)
        texts = [text.decode() for text in answers["translation"].numpy()]
        assert texts == [output.text for output in ours], name
        assert answers["truncated"].numpy().tolist() == [output.truncated for output in ours], name
        assert len(texts) == len(batch), name


@pytest.mark.slow
def test_bytes_that_are_not_utf8_do_not_affect_their_neighbours(serve):
    batch = [b"in 17 weeks", b"in \xff\xfe 17 weeks", b"\x80", b"\xed\xa0\x80"]
    together = serve(sentences=tf.constant(batch))["translation"].numpy()
    assert together[0] == serve(sentences=tf.constant(batch[:1]))["translation"].numpy()[0]
    for text in together:
        text.decode()  # fails unless the answers are UTF-8


@pytest.mark.long
@pytest.mark.slow
def test_version_numbers_increase_and_mixed_precision_becomes_float32(light, sentences, tmp_path):
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


BROKEN = b"in \xff weeks"


@pytest.mark.slow
@pytest.mark.parametrize(("load", "program"), [LOADERS[0], long(*LOADERS[1])])
def test_a_string_that_is_not_utf8_is_translated_as_by_translate(serving, load, program):
    """Its translation is empty, and the other sentences of the batch are unaffected."""
    strings = [b"in 3 weeks", BROKEN, b"after 12 hours"]
    with load(serving[0] / "1") as model:
        for name in ("serving_default", "n_best", "alignment"):
            mixed, alone = (
                {key: np.asarray(value) for key, value in answer.items()}
                for answer in (
                    model.run(name, sentences=tf.constant(batch))
                    for batch in (strings, [strings[0], strings[2]])
                )
            )
            for key in ("translation", "truncated"):
                np.testing.assert_array_equal(np.delete(mixed[key], 1, axis=0), alone[key])
            np.testing.assert_allclose(np.delete(mixed["score"], 1, axis=0), alone["score"], 1e-5)
            assert set(np.ravel(mixed["translation"][1])) == {b""} and not mixed["truncated"][1]
            np.testing.assert_array_equal(mixed["score"][1], np.float32(-1e9))
    lines = io.BytesIO()
    warnings = []
    answer_stream(SavedModelTranslator(serving[0]), iter(strings), lines, warnings.append)
    texts = lines.getvalue().split(b"\n")
    with load(serving[0] / "1") as model:
        answer = model.run("serving_default", sentences=tf.constant(strings))
    assert texts[:3] == np.asarray(answer["translation"]).tolist() and len(warnings) == 1


@pytest.mark.slow
def test_tensors_of_a_wrong_rank_are_refused(serving):
    """TensorFlow Serving refuses them itself; a column used to be answered like a list."""
    model = tf.saved_model.load(str(serving[0] / "1"))
    sentence, ids = tf.constant("in 3 weeks"), tf.constant([7, 3])
    wrong = {
        "serving_default": [{"sentences": sentence}, {"sentences": sentence[None, None]}],
        "n_best": [{"sentences": sentence[None, None]}],
        "alignment": [{"sentences": sentence}],
        "tokens": [{"source": ids}, {"source": ids[None, None]}],
        "beam_tokens": [{"source": ids}],
    }
    settings = {"beam_size": [2], "length_penalty": [1.0], "max_length": [9]}
    settings = {name: tf.constant(value) for name, value in settings.items()}
    wrong["search"] = [
        {"sentences": sentence, **settings},
        {"sentences": sentence[None], **settings, "beam_size": tf.constant([[2]])},
    ]
    for name, requests in wrong.items():
        for request in requests:
            with pytest.raises(tf.errors.InvalidArgumentError, match=WRONG_SHAPE):
                model.signatures[name](**request)
    answer = model.signatures["serving_default"](sentences=sentence[None])
    assert answer["translation"].shape == [1]


WRONG_SHAPE = r"Shape of tensor \S+ \[[0-9,]*\] is not compatible with expected shape \[\?"


def test_a_function_refuses_tensors_of_other_shapes(tmp_path):
    specs = {
        "x": tf.TensorSpec([None], tf.int32, name="x"),
        "y": tf.TensorSpec([None, 2], tf.int32, name="y"),
    }
    module = tf.Module()
    module.f = tf.function(
        with_checked_shapes(lambda x, y: {"sum": tf.reduce_sum(x) + tf.reduce_sum(y)}, specs),
        input_signature=list(specs.values()),
    )
    tf.saved_model.save(module, tmp_path, signatures=module.f)
    run = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    assert run(x=tf.constant([1]), y=tf.constant([[2, 3]]))["sum"] == 6
    for x, y in ((1, [[2, 3]]), ([[1]], [[2, 3]]), ([1], [2, 3])):
        with pytest.raises(tf.errors.InvalidArgumentError, match=WRONG_SHAPE) as caught:
            run(x=tf.constant(x), y=tf.constant(y))
        assert re.search(WRONG_SHAPE, reason(caught.value))


def test_an_error_message_omits_the_place_in_the_graph():
    places = "Graph execution error:\n\nDetected at node X defined at (most recent call last):\n"
    for trace in ("<stack traces unavailable>\n", '  File "x.py", line 7, in f\n'):
        error = ValueError(f"{places}{trace}It is wrong.\n\t [[{{{{node X}}}}]]")
        assert reason(error) == "It is wrong."
    assert reason(ValueError("")) == ""


@pytest.mark.long
@pytest.mark.slow
def test_each_signature_is_shown_before_it_is_traced_and_called(light, sentences, tmp_path):
    stages = []
    report = export_saved_model(light, tmp_path / "m", sentences[:3], progress=stages.append)
    wheres = [f"as {program} loads it" for _, program in LOADERS]
    for name in report["signatures"]:
        assert stages.index(f"tracing {name}") < stages.index("writing the graphs")
        for where in wheres:
            begin = stages.index(f"calling {name} {where}")
            assert stages[begin + 1] == f"calling {name} {where}: 3 of 3 texts"
    (warm_up,) = (stage for stage in stages if stage.startswith("answering"))
    assert re.fullmatch(f"answering [1-9][0-9]* requests of the warm-up {wheres[0]}", warm_up)
    assert stages[-1] == "comparing the answers"
