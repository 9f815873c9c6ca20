"""Protocols of clients: what they send, what they get, and their own form of errors."""

import base64
import functools
import json
import sys
from urllib.parse import unquote_to_bytes

import numpy as np
import pipelines
import pytest
import task_samples
from servers import NAMED, Shouting, Whole, multipart, serving

from keras_transformer.pipelines import Documents, Run
from keras_transformer.serving.languages import with_languages_of_data
from keras_transformer.serving.options import ServerOptions
from keras_transformer.serving.protocols.tensors import write_strings

TEXT, OTHER = "a cat runs", "the big dog"


@pytest.fixture(scope="module")
def translating():
    with serving(Shouting(), **NAMED) as served:
        yield served


@pytest.fixture(scope="module")
def embedder():
    return pipelines.embedder()


@pytest.fixture(scope="module")
def embedding(embedder):
    with serving(embedder) as served:
        yield served


@pytest.fixture(scope="module")
def generator():
    return pipelines.generator()


@pytest.fixture(scope="module")
def completing(generator):
    with serving(generator) as served:
        yield served


def test_languages_are_listed(translating):
    pair = {"code": "en", "name": "English", "targets": ["xx"]}
    assert translating.ask("GET", "/languages") == (200, [pair])
    status, settings = translating.ask("GET", "/frontend/settings")
    assert status == 200 and settings["charLimit"] == 50_000 and not settings["keyRequired"]
    form = {"content_type": "application/x-www-form-urlencoded"}
    answer = translating.ask("POST", "/translate", "q=a+%C3%A4&source=auto&target=xx", **form)
    assert answer == (200, {"translatedText": "A Ä"})


URLENCODED = "application/x-www-form-urlencoded"
PAIR = b"source=en&target=xx&"
PARTS = b'--x\r\ncontent-disposition: form-data; name="%s"\r\n\r\n%s\r\n'


def parts(text):
    """Returns the body of a form of several parts, with the bytes of a text."""
    fields = {b"source": b"en", b"target": b"xx", b"q": text}
    return b"".join(PARTS % field for field in fields.items()) + b"--x--\r\n"


@pytest.mark.parametrize(
    "body",
    [
        PAIR + "q=ä ≠".encode(),  # curl -d leaves the bytes as they are
        PAIR + b"q=%C3%A4+%E2%89%A0",
        b"&&q=\xc3%A4%20%E2%89%A0&" + PAIR,
        parts("ä ≠".encode()),
    ],
)
def test_the_text_of_a_form_arrives_unchanged(body, translating):
    kind = URLENCODED if b"form-data" not in body else "multipart/form-data; boundary=x"
    answer = translating.ask("POST", "/translate", body, content_type=kind)
    assert answer == (200, {"translatedText": "Ä ≠"})


@pytest.mark.parametrize("text", [b"%ff", b"in weeks %ff", b"\xff", b"%c3", b"%ed%a0%80"])
def test_a_form_that_is_not_in_utf_8_is_refused_like_json(text, translating):
    error = (400, {"error": "the body must be a form in UTF-8."})
    body = PAIR + b"q=" + text
    assert translating.ask("POST", "/translate", body, content_type=URLENCODED) == error
    body, kind = parts(unquote_to_bytes(text)), "multipart/form-data; boundary=x"
    assert translating.ask("POST", "/translate", body, content_type=kind) == error


@pytest.mark.parametrize("pairs, status", [(1000, 200), (1001, 400)])
def test_a_form_has_a_limit_of_fields(pairs, status, translating):
    body = PAIR + b"q=a" + b"&a=b" * (pairs - 3)
    assert translating.ask("POST", "/translate", body, content_type=URLENCODED)[0] == status


@pytest.mark.parametrize("body", ['{"q": "a", "source": "en", "target": "xx"}', " \n{", '["a"]'])
def test_json_that_is_sent_as_a_form_is_told_its_header(body, translating):
    status, answer = translating.ask("POST", "/translate", body, content_type=URLENCODED)
    assert status == 400
    assert answer["error"] == "JSON needs the header `Content-Type: application/json`."


@pytest.mark.parametrize(
    "path, more, status, words",
    [
        ("/detect", {}, 501, "does not detect languages."),
        ("/translate", {"format": "pdf"}, 400, "the format pdf is not supported: "),
        ("/translate", {"alternatives": 2}, 400, "`alternatives` must be 0"),
        ("/translate", {"source": "fr"}, 400, "fr to xx is not supported"),
    ],
)
def test_what_libretranslate_has_and_the_model_has_not(path, more, status, words, translating):
    body = {"q": "a", "source": "en", "target": "xx", **more}
    answer = translating.ask("POST", path, body)
    assert answer[0] == status and words in answer[1]["error"]


PAGE = '<h1>a &amp; b</h1>\n<p title="c">Mr. <b>x</b> runs. The dog.</p><pre>as is</pre><br>'


@pytest.mark.parametrize("pages", [PAGE, [PAGE, "<p>a</p>", ""]])
def test_the_tags_of_html_stay(translating, pages):
    body = {"q": pages, "source": "en", "target": "xx", "format": "html"}
    status, answer = translating.ask("POST", "/translate", body)
    page = PAGE.replace("a &amp; b", "A &amp; B").replace("Mr. <b>x</b> runs", "MR. <b>X</b> RUNS")
    page = page.replace("The dog", "THE DOG")
    expected = page if isinstance(pages, str) else [page, "<p>A</p>", ""]
    assert (status, answer) == (200, {"translatedText": expected})


def test_pages_of_a_run_are_those_of_documents():
    translator, pages = pipelines.translator(), ["<p>a <b>cat</b> runs</p>", "<i>the dog</i>. a"]
    with serving(translator, **NAMED) as served:
        body = {"q": pages, "source": "en", "target": "xx", "format": "html"}
        answer = served.ask("POST", "/translate", body)
    assert answer == (200, {"translatedText": Documents(translator, "html")(pages)})


def test_html_without_its_packages_names_the_command_that_installs_them(translating, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    body = {"q": "a", "source": "en", "target": "xx", "format": "html"}
    status, answer = translating.ask("POST", "/translate", body)
    words = "the format html is not available: sentences need the package sentencex: "
    assert status == 501 and answer["error"].startswith(words)
    assert "pip install" in answer["error"] and "documents" in answer["error"]


def test_a_model_without_names_of_languages_says_which_options_name_them():
    with serving(Shouting()) as served:
        body = {"q": "a", "source": "en", "target": "xx"}
        status, answer = served.ask("POST", "/translate", body)
    assert status == 400 and "--source-language and --target-language, such" in answer["error"]


def test_a_run_of_one_pair_of_languages_names_them_in_its_data(tmp_path):
    settings = '[data]\nsource_language = "en"\ntarget_language = "pt-BR"\n'
    (tmp_path / "config.toml").write_text(settings)
    options = ServerOptions(target_language="pt")
    for model, names in ((Shouting(), ("en", "pt")), (Whole(), (None, "pt"))):
        named = with_languages_of_data(options, model, Run(tmp_path))
        assert (named.source_language, named.target_language) == names


def test_vectors_are_those_of_the_model(embedder, embedding):
    expected = np.stack([result.values for result in embedder.answer([TEXT, OTHER])])
    body = {"model": "model", "input": [TEXT, OTHER]}
    status, answer = embedding.ask("POST", "/v1/embeddings", body)
    assert status == 200 and [one["index"] for one in answer["data"]] == [0, 1]
    np.testing.assert_allclose([one["embedding"] for one in answer["data"]], expected, atol=1e-6)
    body = {"model": "model", "input": OTHER, "encoding_format": "base64", "dimensions": 3}
    _, answer = embedding.ask("POST", "/v1/embeddings", body)
    vector = np.frombuffer(base64.b64decode(answer["data"][0]["embedding"]), "<f4")
    shorter = embedder.with_settings(dimensions=3).answer(OTHER).values
    np.testing.assert_allclose(vector, shorter, atol=1e-6)


@pytest.mark.parametrize(
    "body, status, words",
    [
        ({"model": "other", "input": "a"}, 404, "there is no model 'other'"),
        ({"input": "a"}, 400, "`model` is missing."),
        ({"model": "model", "input": [[1, 2]]}, 400, "must be a string. Received: list."),
        ({"model": "model", "input": "a", "dimensions": 10**6}, 400, "`dimensions` must be"),
        ({"model": "model", "input": "a", "encoding_format": "x"}, 400, "float or base64"),
    ],
)
def test_errors_have_the_form_of_openai(body, status, words, embedding):
    got, answer = embedding.ask("POST", "/v1/embeddings", body)
    assert got == status and words in answer["error"]["message"]
    assert answer["error"]["type"] == "invalid_request_error"
    got, answer = embedding.ask("POST", "/v1/embeddings", "{}", content_type="text/plain")
    assert got == 415 and "application/json" in answer["error"]["message"]


@pytest.mark.parametrize(
    "path",
    ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/audio/transcriptions"],
)
def test_requests_of_another_task_name_the_paths_for_the_model(path, translating):
    status, answer = translating.ask("POST", path, {"model": "model"})
    assert status == 404 and answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["message"] == (
        f"{path} is not for the model: its task is translation. Use one of: /translate, "
        "/v1/models/model:predict, /v2/models/model/infer."
    )
    assert translating.ask("GET", path)[0] == 405
    with serving(Shouting(), key="sesame") as served:
        assert served.ask("POST", path, {"model": "model"})[0] == 401


def test_a_translation_by_another_model_is_refused_in_the_form_of_libretranslate(embedding):
    body = {"q": "a", "source": "en", "target": "xx"}
    status, answer = embedding.ask("POST", "/translate", body)
    assert (
        status == 404 and "its task is embedding. Use one of: /v1/embeddings, " in answer["error"]
    )
    assert embedding.ask("GET", "/languages")[0] == 404


def test_a_completion_is_that_of_the_model_without_its_prompt(generator, completing):
    from keras_transformer import Greedy

    (whole,) = generator.answer([TEXT], search=Greedy(max_length=4))
    body = {"model": "model", "prompt": TEXT, "max_tokens": 4}
    status, answer = completing.ask("POST", "/v1/completions", body)
    (choice,) = answer["choices"]
    assert status == 200 and TEXT + choice["text"] == whole.text
    assert choice["finish_reason"] == ("stop" if whole.complete else "length")
    _, echoed = completing.ask("POST", "/v1/completions", {**body, "echo": True})
    assert echoed["choices"][0]["text"] == whole.text


def test_samples_depend_on_the_seed_and_not_on_the_batch(completing):
    body = {"model": "model", "max_tokens": 5, "temperature": 2, "seed": 3}
    ask = functools.partial(completing.ask, "POST", "/v1/completions")
    _, alone = ask({**body, "prompt": OTHER})
    _, both = ask({**body, "prompt": [OTHER, TEXT]})
    assert both["choices"][0] == alone["choices"][0]
    assert [one["index"] for one in both["choices"]] == [0, 1]


@pytest.mark.parametrize(
    "more, words",
    [
        ({"n": 2}, "`n` must be 1"),
        ({"n": True}, "`n` must be 1"),
        ({"temperature": 10**400}, "too large"),
        ({"seed": 10**30}, "`seed` must be"),
        ({"min_length": 1}, "Unrecognized request argument supplied: min_length"),
        ({"stream_options": {}}, "`stream_options` needs `stream`."),
        ({"prompt": []}, "`prompt` must not be an empty list."),
        ({"prompt": "a cat runs the big dog a cat runs the big dog"}, "longer than the model's"),
        ({"logprobs": 1}, "`logprobs` is not supported."),
        ({"max_tokens": 0}, "`max_length` must be"),
        ({"temperature": -1}, "`temperature` must be"),
        ({"stop": [1]}, "`stop` must be a string or a list of up to 4 strings."),
    ],
)
def test_what_completions_do_not_have(more, words, completing):
    body = {"model": "model", "prompt": TEXT, **more}
    status, answer = completing.ask("POST", "/v1/completions", body)
    assert status == 400 and words in answer["error"]["message"]


@pytest.mark.slow
def test_a_recording_is_transcribed_and_never_a_path_opened():
    recognizer, sound = pipelines.speech_recognizer(), task_samples.RECORDINGS[0]
    with serving(recognizer) as served:
        ask = functools.partial(served.ask, "POST", "/v1/audio/transcriptions")
        body, kind = multipart(model="model", file=sound)
        assert ask(body, content_type=kind) == (200, {"text": recognizer([sound])[0]})
        body, kind = multipart(model="model", file="/etc/hostname")
        status, answer = ask(body, content_type=kind)
        assert status == 400 and "`file` must be of type bytes." in answer["error"]["message"]
        body, kind = multipart(model="model", file=b"no sound")
        assert ask(body, content_type=kind)[0] == 400
        body = {"instances": ["/etc/hostname"]}
        status, answer = served.ask("POST", "/v1/models/model:predict", body)
        assert status == 400 and "must be the bytes of a file" in answer["error"]
        body = {"instances": [{"b64": base64.b64encode(sound).decode()}]}
        _, answer = served.ask("POST", "/v1/models/model:predict", body)
        assert answer["predictions"][0]["text"] == recognizer([sound])[0]


def test_predictions_have_the_fields_of_a_result(translating):
    body = {"instances": ["a", {"b64": base64.b64encode("ä".encode()).decode()}]}
    status, answer = translating.ask("POST", "/v1/models/model:predict", json.dumps(body))
    fields = {"score": -0.5, "truncated": False, "complete": True, "token_scores": None}
    assert status == 200
    assert answer == {"predictions": [{"text": "A", **fields}, {"text": "Ä", **fields}]}


def test_a_model_is_described_for_clients_of_several_protocols(embedding):
    _, models = embedding.ask("GET", "/v1/models")
    assert models["models"] == ["model"] and models["data"][0]["id"] == "model"
    _, model = embedding.ask("GET", "/v1/models/model")
    assert model["ready"] and model["object"] == "model"
    assert model["model_version_status"][0]["state"] == "AVAILABLE"
    assert embedding.ask("GET", "/v1/models/other")[0] == 404


@pytest.mark.parametrize(
    "body, status, words",
    [
        ({"instances": "a"}, 400, "inputs must be a list. Received: str."),
        ({"instances": [{"b64": "?"}]}, 400, "a string in Base64."),
        ({"instances": [{"b64": "/w=="}]}, 400, "must be in UTF-8."),
        ({"instances": [None]}, 400, "must be a string. Received: NoneType."),
        ({}, 400, "`instances` is missing"),
        ({"inputs": ["a"]}, 400, "`inputs` is not supported: send `instances`, one for each row."),
        ({"instances": ["a"], "signature_name": "x"}, 400, "serving_default"),
        ({"instances": ["a"], "beam_size": 4}, 400, "a request has no field `beam_size`, only "),
        ({"instances": ["a"], "b\n" * 999: None}, 400, "a request has no field `b"),
        ({"instances": ["a"], "parameters": {"beam_size": 4}}, 400, "no parameter `beam_size`"),
        ({"instances": ["a"], "parameters": [4]}, 400, "`parameters` must be of type dict."),
    ],
)
def test_bad_instances_are_refused(body, status, words, translating):
    got, answer = translating.ask("POST", "/v1/models/model:predict", body)
    assert got == status and words in answer["error"]


@pytest.mark.parametrize("more", [{"parameters": {}, "id": "7"}, {"parameters": None}])
def test_instances_come_with_what_clients_routinely_send(more, translating):
    body = {"instances": ["a"], "signature_name": "serving_default", **more}
    assert translating.ask("POST", "/v1/models/model:predict", body)[0] == 200


def tensor(**more):
    return {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [2], **more}]}


def extended(**more):
    return {**tensor(data=["a", "b"]), **more}


def test_inference_has_tensors(embedder, embedding):
    expected = embedder.answer([TEXT, OTHER])
    body = {**tensor(data=[TEXT, OTHER]), "id": "7", "outputs": [{"name": "vector"}]}
    status, answer = embedding.ask("POST", "/v2/models/model/versions/1/infer", body)
    assert status == 200 and answer["id"] == "7"
    (output,) = answer["outputs"]
    vectors = np.reshape(output["data"], output["shape"])
    np.testing.assert_allclose(vectors, [one.values for one in expected], atol=1e-6)
    _, metadata = embedding.ask("GET", "/v2/models/model")
    assert [one["name"] for one in metadata["outputs"]] == ["text", "score", "result", "vector"]
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/model/ready"):
        assert embedding.ask("GET", path)[0] == 200


@pytest.mark.parametrize(
    "body, words",
    [
        (tensor(data=["a"]), "`text` has 1 values, but the shape [2]."),
        (tensor(data=["a", "b"], datatype="FP32"), "with the datatype BYTES."),
        (tensor(data=["a", "b"], shape=[1, -2]), "`shape` must be a list of sizes."),
        (tensor(data=["a"] * 4, shape=[2, 2]), "must be [B] or [B, 1]. Received: [2, 2]."),
        (tensor(), "`data` must be a list."),
        (tensor(parameters={"binary_data_size": 3}), "is 3, but 0 bytes follow."),
        ({"inputs": []}, "`inputs` must be a list of one tensor, `text`."),
        ({**tensor(data=["a", "b"]), "outputs": [{"name": "x"}]}, "there is no output 'x'"),
        (extended(beam_size=4), "a request has no field `beam_size`, only id, inputs, outputs, "),
        (extended(parameters={"beam_size": 4}), "a request has no parameter `beam_size`."),
        (extended(parameters={"sequence_id": 7}), "the parameter `sequence_id` is not supported."),
        (extended(parameters={"priority": True}), "the parameter `priority` is not supported."),
        (extended(parameters={"binary_data_output": 1}), "must be of type bool."),
        (extended(model_name="other"), "there is no model 'other'"),
        (extended(model_version="2"), "the only version is 1."),
        (tensor(data=["a", "b"], beam_size=4), "an input has no field `beam_size`, only "),
        (tensor(data=["a", "b"], parameters={"beam_size": 4}), "has no parameter `beam_size`."),
        (extended(outputs=[{"name": "text", "size": 4}]), "an output has no field `size`, only "),
        (
            extended(outputs=[{"name": "text", "parameters": {"classification": 2}}]),
            "the parameter `classification` is not supported.",
        ),
        (extended(outputs=[{"name": "text", "parameters": 4}]), "must be of type dict."),
    ],
)
def test_bad_tensors_are_refused(body, words, embedding):
    status, answer = embedding.ask("POST", "/v2/models/model/infer", body)
    assert status in (400, 404) and words in answer["error"]


@pytest.mark.parametrize(
    "body",
    [
        # KServe's `InferRequest.to_rest`, Triton's client, and MLServer's with its nulls.
        {"id": "7", "model_name": "model", "parameters": {"binary_data_output": False}},
        {"parameters": {"priority": 0, "sequence_id": 0, "sequence_start": False}},
        {"outputs": [{"name": "text", "parameters": {"binary_data": False}}]},
        {"id": None, "parameters": {"content_type": "str", "headers": None}, "outputs": None},
        {"outputs": [{"name": "text", "parameters": None}], "model_version": "1"},
    ],
)
def test_inference_comes_with_what_clients_routinely_send(body, translating):
    inputs = tensor(data=["a", "b"], parameters={"content_type": "str"})
    status, answer = translating.ask("POST", "/v2/models/model/infer", {**inputs, **body})
    assert status == 200 and answer["outputs"][0]["data"] == ["A", "B"]


@pytest.mark.parametrize("content", [b"\xff\xff\xff\xff", b"\1\0", b"\2\0\0\0a"])
def test_binary_tensors_end_where_their_bytes_end(content, translating):
    head = json.dumps(tensor(parameters={"binary_data_size": len(content)})).encode()
    length = {"inference_header_content_length": str(len(head))}
    path = "/v2/models/model/infer"
    status, answer = translating.ask("POST", path, head + content, **length)
    assert status == 400 and "ends after its bytes." in answer["error"]
    content = write_strings(["a", "ä"])
    head = json.dumps(tensor(parameters={"binary_data_size": len(content)})).encode()
    length = {"inference_header_content_length": str(len(head))}
    _, answer = translating.ask("POST", path, head + content, **length)
    assert answer["outputs"][0]["data"] == ["A", "Ä"]
