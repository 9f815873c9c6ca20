"""The export that XLA compiles."""

import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from phrases import phrases
from searching import by_greedy
from tensorflow.core.protobuf import saved_model_pb2

from keras_transformer.export.saved_model.loaders import SessionModel
from keras_transformer.export.saved_model.signatures import make_endpoints

slow = pytest.mark.slow  # the export of all shapes takes a minute

# Counts what XLA compiles: XLA writes every program that it compiles to a folder.
COUNT = """
import glob, json, sys
sys.modules["keras_transformer"] = None  # to import it is an error
path, tests, dump, batches = sys.argv[1:]
sys.path.insert(0, tests)
import numpy as np
from model_server import Server
def compiled():
    return len(glob.glob(dump + "/*.before_optimizations.txt"))
counts = [compiled()]
server = Server(path, "compiled")
counts.append(compiled())
for batch in json.loads(batches):
    for signature in ("serving_default", "n_best", "alignment"):
        server.run(signature, sentences=np.array(batch, object))
    counts.append(compiled())
print(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def version(compiled):
    return compiled[1]


@pytest.fixture(scope="module")
def model(version):
    with SessionModel(version) as model:
        yield model


@pytest.mark.long
@slow
def test_tokens_equal_those_of_the_search_without_a_compiler(model, compiled, translator):
    sentences = [source for source, _ in phrases()[4480:4580]]
    source = translator.encode(tf.constant(sentences))[0]
    tokens, scores = by_greedy(translator.model, source)
    assert len({tuple(row) for row in tokens.numpy()}) > 80
    answer = model.run("tokens", source=source)
    np.testing.assert_array_equal(answer["tokens"], tokens)
    np.testing.assert_allclose(answer["score"], scores, atol=1e-4)
    for endpoint in make_endpoints(translator, compiled[0], alignment=(0, 1)):
        example = endpoint.example(sentences)
        ours = endpoint.function(**example)
        answer = model.run(endpoint.name, **example)
        assert set(answer) == set(ours)
        for name, value in ours.items():
            if value.dtype.is_floating:
                np.testing.assert_allclose(answer[name], value, atol=1e-4)
            else:
                np.testing.assert_array_equal(answer[name], value)


@pytest.mark.long
@slow
def test_an_empty_batch_and_odd_sentences(model, compiled, translator):
    for batch in ([], [""], ["in 3 weeks", " ", "x" * 5000, ""]):
        ours = [output.text for output in translator.answer_batch(batch, compiled[0])]
        for signature in ("serving_default", "alignment"):
            answer = model.run(signature, sentences=np.array(batch, object))
            assert [text.decode() for text in answer["translation"]] == ours
        assert answer["alignment"].shape[2] == answer["source_pieces"].shape[1]


@slow
@pytest.mark.long
def test_all_is_compiled_when_the_model_is_loaded_and_nothing_later(
    version, python, tmp_path, monkeypatch
):
    pytest.importorskip("tensorflow_serving.apis")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={tmp_path} --xla_dump_hlo_as_text"
    monkeypatch.setenv("XLA_FLAGS", flags)
    batches = [["in 17 weeks"], [], ["in 3"] * 7, ["after 3 hours and 12 minutes and 30 days"] * 3]
    tests = pathlib.Path(__file__).parent
    counts = json.loads(python(COUNT, version, tests, tmp_path, json.dumps(batches * 2)))
    # Two lengths for each of five searches, which six signatures share.
    assert counts == [0] + [10] * 9


@pytest.mark.long
@slow
def test_the_readme_gives_the_shapes_and_the_start_of_the_server(version):
    text = (version / "README.md").read_text("utf-8")
    assert "batches of 2 and sources of\n16 and 20 tokens" in text
    assert "tensorflow/serving:2.20.0 --xla_cpu_compilation_enabled=true\n" in text
    assert "allowed_batch_sizes: 2\n" in (version / "batching_parameters.txt").read_text("utf-8")


@pytest.mark.long
@slow
def test_every_search_is_compiled(version):
    functions = (
        saved_model_pb2.SavedModel.FromString((version / "saved_model.pb").read_bytes())
        .meta_graphs[0]
        .graph_def.library.function
    )
    compiled = [function for function in functions if function.attr["_XlaMustCompile"].b]
    # The best, the n best, greedy search, the search of a request, and with attention.
    assert len({function.signature.name for function in compiled}) == 5
