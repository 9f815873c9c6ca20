"""Exports as read by a client and by a server of TensorFlow Serving."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf
from documents import blocks, run

from keras_transformer import Beam
from keras_transformer.export.saved_model.buckets import Buckets
from keras_transformer.export.saved_model.generated import page_of
from keras_transformer.export.saved_model.guide import batching_parameters, model_name
from keras_transformer.export.saved_model.signatures import make_endpoints
from keras_transformer.export.saved_model.warmup import sentence_of_length

grpc = pytest.importorskip("grpc")
pytest.importorskip("tensorflow_serving.apis")

from model_server import Server, read_warmup  # noqa: E402
from serving_texts import read  # noqa: E402
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc  # noqa: E402

NAMES = ["serving_default", "n_best", "tokens", "beam_tokens", "search", "alignment"]
DTYPES = {"sentences": tf.string, "length_penalty": tf.float32}


@pytest.fixture(scope="module")
def version(serving):
    return serving[0] / "1"


@pytest.fixture(scope="module")
def server(version):
    return Server(version, "serving")


@pytest.fixture(scope="module")
def port(server):
    with server.listening() as port:
        yield port


@pytest.fixture(scope="module")
def predict(port):
    with grpc.insecure_channel(f"localhost:{port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def predict(signature, **inputs):
            request = predict_pb2.PredictRequest()
            request.model_spec.name = "serving"
            request.model_spec.signature_name = signature
            for name, value in inputs.items():
                dtype = DTYPES.get(name, tf.int32)
                request.inputs[name].CopyFrom(tf.make_tensor_proto(value, dtype))
            outputs = stub.Predict(request, timeout=250).outputs
            return {name: tf.make_ndarray(value) for name, value in outputs.items()}

        yield predict


def texts_of(values):
    return [value.decode() for value in values]


def test_strings_over_grpc_are_translated_as_in_memory(predict, translator, sentences):
    answer = predict("serving_default", sentences=sentences)
    ours = translator.answer_batch(sentences)
    assert texts_of(answer["translation"]) == [output.text for output in ours]
    assert answer["truncated"].tolist() == [output.truncated for output in ours]
    assert answer["complete"].tolist() == [output.complete for output in ours]
    assert answer["score"].tolist() == pytest.approx([output.score for output in ours], abs=1e-4)


def test_n_best_over_grpc_equals_the_beam(predict, translator, sentences):
    answer = predict("n_best", sentences=sentences)
    assert answer["translation"].shape == answer["score"].shape == (len(sentences), 4)
    lists = translator.n_best(sentences, 4)  # it returns each text once
    assert max(map(len, lists)) == 4
    for texts, scores, ours in zip(answer["translation"], answer["score"], lists, strict=True):
        hypotheses = {}
        for text, score in zip(texts_of(texts), scores, strict=True):
            hypotheses.setdefault(text, score)
        assert list(hypotheses) == [output.text for output in ours]
        expected = [output.score for output in ours]
        assert list(hypotheses.values()) == pytest.approx(expected, abs=1e-4)


def test_ids_over_grpc_give_the_same_as_strings(predict, translator, sentences):
    source = translator.encode(tf.constant(sentences))[0].numpy()
    best, several = predict("tokens", source=source), predict("beam_tokens", source=source)
    assert best["tokens"].shape == (len(sentences), 20)
    assert several["tokens"].shape == (len(sentences), 4, 20)
    spoken = [bool(sentence.strip()) for sentence in sentences]
    for ids, name in ((best["tokens"], "serving_default"), (several["tokens"], "n_best")):
        answer = predict(name, sentences=sentences)["translation"]
        texts = (
            translator.source_tokenizer.decode(ids.reshape(-1, 20)).numpy().reshape(answer.shape)
        )
        assert texts[spoken].tolist() == answer[spoken].tolist()


def test_warmup_requests_are_the_official_messages(version, translator):
    logs = read_warmup(version)
    warmups = []
    for log in logs:
        request = log.predict_log.request
        assert log.WhichOneof("log_type") == "predict_log"
        again = predict_pb2.PredictRequest()
        again.model_spec.name = "serving"
        again.model_spec.signature_name = request.model_spec.signature_name
        for name, value in request.inputs.items():
            again.inputs[name].CopyFrom(tf.make_tensor_proto(tf.make_ndarray(value)))
        assert request == again  # they contain nothing else
        (value,) = (
            tf.make_ndarray(request.inputs[name])
            for name in ("sentences", "source")
            if name in request.inputs
        )
        ids = value if value.ndim == 2 else translator.encode(tf.constant(value))[0]
        warmups.append((request.model_spec.signature_name, *ids.shape))
    expected = [(name, 1, length) for name in NAMES for length in (16, 20)]
    assert [(name, size, 16 if n <= 16 else 20) for name, size, n in warmups] == expected


def test_a_sentence_of_any_length(translator, sentences):
    tokenizer = translator.source_tokenizer
    for length in (2, 3, 5, 16, 64, 300):
        text = sentence_of_length(tokenizer, sentences, length)
        count = len(tokenizer.encode([text])[0])
        assert max(1, length - 3) <= count <= length
    assert sentence_of_length(tokenizer, ["in 3"], 1) == ""


def test_a_server_that_cannot_read_an_input_gives_the_reason(predict):
    for source, message in (
        ([[5, 6, 7]], "`source` must end each row in the id 3"),
        ([[5, 6, 7, 3], [5, 6, 7, 8]], "`source` must end each row in the id 3"),
        ([[]], "`source` must end each row in the id 3"),
        ([[5] * 20 + [3]], "`source` must have at most 20 ids in a row"),
        ([[5, 130, 3]], "`source` must hold ids from 0 to 129"),
        ([[-1, 3]], "`source` must hold ids from 0 to 129"),
    ):
        for signature in ("tokens", "beam_tokens"):
            with pytest.raises(grpc.RpcError) as caught:
                predict(signature, source=np.array(source, "int32"))
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert message in caught.value.details()


def test_ids_after_the_end_of_a_source_do_not_matter(predict):
    """TensorFlow Serving pads the rows of a batch with the first id of a request."""
    alone = [np.array([[13, 21, 8, 3]], "int32"), np.array([[30, 9, 17, 44, 12, 3]], "int32")]
    batch = np.array([[13, 21, 8, 3, 13, 13], [30, 9, 17, 44, 12, 3]], "int32")
    for signature in ("tokens", "beam_tokens"):
        together = predict(signature, source=batch)
        for row, source in enumerate(alone):
            single = predict(signature, source=source)
            np.testing.assert_array_equal(together["tokens"][row], single["tokens"][0])
            np.testing.assert_allclose(together["score"][row], single["score"][0], atol=1e-4)
    wide = np.pad(batch, [(0, 0), (0, 40)])  # more columns than the maximum source length
    np.testing.assert_array_equal(
        predict("tokens", source=wide)["tokens"], predict("tokens", source=batch)["tokens"]
    )


HOSTILE = {
    "none": [],
    "empty": [b""],
    "1 MB": [b"x" * 1_000_000, b"in 17 weeks"],
    "not UTF-8": [b"in 17 weeks", b"\xff\xfe weeks", b"\x80", b"\xed\xa0\x80"],
    "control": [b"in 17\x00 weeks", b"\x01\x02", b"\n", "\u2028".encode(), "\ufeff".encode()],
    "1,000": [b"in 3 weeks", b"", b"after 12 hours and 30 minutes"] * 333 + [b"in 4 days"],
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("signature", ["serving_default", "n_best", "alignment"])
def test_hostile_sentences_each_get_an_answer(predict, translator, signature, name):
    batch = HOSTILE[name]
    answer = predict(signature, sentences=np.array(batch, object))
    assert {len(value) for value in answer.values()} == {len(batch)}
    for strings in (value for value in answer.values() if value.dtype == object):
        for text in strings.ravel():
            text.decode()
    if batch:
        alone = predict(signature, sentences=np.array(batch[-1:], object))
        assert alone["translation"].tolist() == answer["translation"][-1:].tolist()


def test_an_empty_batch_gets_an_empty_answer(predict):
    for shape in ((0, 5), (0, 0)):
        assert predict("tokens", source=np.zeros(shape, "int32"))["tokens"].shape == (0, 20)
        assert predict("beam_tokens", source=np.zeros(shape, "int32"))["score"].shape == (0, 4)


def test_another_model_or_signature_is_not_found(predict):
    with pytest.raises(grpc.RpcError) as caught:
        predict("nonsense", sentences=["in 17 weeks"])
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.fixture(scope="module")
def readme(version):
    return (version / "README.md").read_text("utf-8")


def test_the_readme_describes_every_signature(readme, server):
    rows = re.findall(r"^\| `(\w+)` \| (`.*) \| (.*) \|$", readme, re.MULTILINE)
    assert [row[0] for row in rows] == NAMES
    for name, inputs, outputs in rows:
        assert set(re.findall(r"`(\w+)`", inputs)) == set(server.signatures[name].inputs)
        assert set(re.findall(r"`(\w+)`", outputs)) == set(server.signatures[name].outputs)
    assert "`translation` string [B, M=4]" in rows[1][2]
    assert "`tokens` int32 [B, M=4, L]" in rows[3][2]
    assert rows[3][1] == "`source` int32 [B, S]"
    assert "`sentences` string [B], `beam_size` int32 [B], `length_penalty` float32" in rows[4][1]
    assert "`tokens` int32 [B, T], `source_pieces` string [B, S], " in rows[5][2]
    assert "`target_pieces` string [B, T], `alignment` float32 [B, T, S]" in rows[5][2]
    assert "`alignment`: greedy search; attention of decoder layer 1 of 1, the mean" in readme
    assert "`serving_default`: greedy search" in readme and "`n_best`: beam search, 4" in readme


@pytest.mark.slow
def test_the_readmes_grpc_client_works(readme, port, translator, sentences, capsys):
    code, _ = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert code.count("localhost:8500") == 1
    exec(compile(code.replace("localhost:8500", f"localhost:{port}"), "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    best = translator.n_best(sentences[:1], 4)[0][0]
    assert lines[0].endswith(translator(sentences[:1])[0])
    assert lines[1].endswith(best.text) and lines[1] != lines[2]
    (aligned,) = translator.align(sentences[:1])
    from_pieces = [aligned.source[best] for best in aligned.weights.argmax(axis=1)]
    pairs = zip(aligned.target, from_pieces, strict=True)
    assert lines[-len(from_pieces) :] == [f"{piece} from {seen}" for piece, seen in pairs]


LOADER = """
import json, os, sys
sys.modules["keras_transformer"] = None  # to import it is an error
os.chdir(sys.argv[1])
exec(compile(sys.argv[2], "README.md", "exec"))
"""


@pytest.mark.long
@pytest.mark.slow
def test_the_readmes_python_works_without_this_package(
    readme, version, python, translator, sentences
):
    _, code = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert "import tensorflow_text" in code
    assert python(LOADER, version, code) == translator(sentences[:1])[0] + "\n"


@pytest.mark.long
@pytest.mark.slow
def test_without_that_import_python_fails_as_the_readme_states(readme, version, python):
    _, code = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    code = re.sub("(?m)^import tensorflow_text.*$", "", code)
    (message,) = re.findall('loading fails with "(.*?)"', readme)
    with pytest.raises(AssertionError, match=message):
        python(LOADER, version, code)


@pytest.mark.slow
def test_the_readmes_rest_requests_work(readme, server, translator, sentences):
    bodies = [json.loads(body) for body in re.findall(r"-d \\\n  '(.*?)'\n", readme, re.DOTALL)]
    assert [body.get("signature_name", "serving_default") for body in bodies] == NAMES
    assert readme.count("http://localhost:8501/v1/models/serving:predict") == 6
    ids = translator.source_tokenizer.encode(sentences[:1]).to_list()
    assert [body["inputs"].get("source", ids) for body in bodies] == [ids] * 6
    answers = [server.rest(body)["outputs"] for body in bodies]
    expected = translator(sentences[:1])[0]
    assert answers[0]["translation"][0].decode() == expected
    assert translator.source_tokenizer.decode(answers[2]["tokens"])[0].numpy().decode() == expected
    tokens = np.array(answers[3]["tokens"][0])
    texts = translator.source_tokenizer.decode(tokens).numpy().tolist()
    assert texts == answers[1]["translation"][0]
    hypotheses = translator.n_best(sentences[:1], 4, Beam(4, 1.0, extra_length=None))[0]
    assert answers[4]["translation"][0][0].decode() == hypotheses[0].text
    assert answers[4]["score"][0][0] == pytest.approx(hypotheses[0].score, abs=1e-4)
    assert answers[5]["translation"] == answers[0]["translation"]
    assert np.sum(answers[5]["alignment"][0], axis=1) == pytest.approx(1)


@pytest.mark.slow
def test_without_an_alignment_the_readme_does_not_mention_it(translator):
    text = page_of("x", make_endpoints(translator), "in 3 weeks").text("x")
    assert "align" not in text and "pieces" not in text and "T:" not in text
    assert text.count("curl") == 5


def test_the_readmes_commands_name_existing_files(readme, version):
    assert "-e MODEL_NAME=serving" in readme and ":/models/serving" in readme
    (file,) = re.findall(r'batching_parameters_file=.*/([^"/]+)"\n', readme)
    assert (version / file).exists()
    assert "xla" not in readme and "$" not in re.sub(
        r'\$\((dirname|basename) "\$PWD"\)', "", readme
    )


def test_model_names_need_no_quoting(tmp_path):
    assert model_name(tmp_path / "en-de_v1.2") == "en-de_v1.2"
    assert model_name(tmp_path / "my model's $HOME") == "my-model-s-HOME"
    assert model_name(tmp_path / "日本") == "model"


@pytest.mark.slow
def test_the_program_of_the_page_warms_up_every_signature(version, tmp_path, monkeypatch):
    (tmp_path / "serving").mkdir()
    (tmp_path / "serving" / "translator").symlink_to(version.parent)
    monkeypatch.chdir(tmp_path)
    names = run([x for x in blocks("docs/serving.md", "python") if x.needs == "warmup"])
    requests = [log.predict_log.request for log in read_warmup(version)]
    assert names["request"] == requests[-1]
    assert {x.model_spec.signature_name for x in requests} == set(names["signatures"]) == set(NAMES)


def test_batching_parameters_can_be_parsed_by_the_server(version):
    text = (version / "batching_parameters.txt").read_text()
    plain = read("batching_parameters.txt", text)
    assert plain.max_batch_size.value == 32 and not plain.allowed_batch_sizes
    assert plain.pad_variable_length_inputs and plain.batch_timeout_micros.value == 2000
    compiled = read("batching_parameters.txt", batching_parameters(Buckets((1, 4), (16,))))
    assert list(compiled.allowed_batch_sizes) == [1, 4] and compiled.max_batch_size.value == 4


@pytest.mark.slow
def test_every_endpoint_gives_one_answer_for_each_input(translator):
    """TensorFlow Serving splits the outputs of a batch along their first axis."""
    for endpoint in make_endpoints(translator, alignment=(0, 0)):
        assert all(spec.shape[0] is None for spec in endpoint.inputs)
        specs = endpoint.function.get_concrete_function().structured_outputs
        assert all(spec.shape[0] is None for spec in specs.values())
