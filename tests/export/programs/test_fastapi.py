"""The program in `examples/fastapi`: a SavedModel behind FastAPI, with starlette's test client."""

import importlib.util
import pathlib

import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("fastapi", reason="`pip install fastapi httpx` to test examples/fastapi")
pytest.importorskip("httpx")

PROGRAM = pathlib.Path(__file__).parents[3] / "examples" / "fastapi" / "app.py"


@pytest.fixture
def client(serving, monkeypatch):
    from fastapi.testclient import TestClient

    monkeypatch.setenv("MODEL", str(serving[0] / "1"))
    spec = importlib.util.spec_from_file_location("fastapi_example", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with TestClient(module.app) as client:
        yield client


def test_answers_are_those_of_the_model_and_bad_requests_are_refused(client, translator):
    texts = ["in 17 weeks", "", "Grüße aus Köln"]
    answers = client.post("/translate", json={"texts": texts}).json()
    assert [answer["text"] for answer in answers] == translator(texts)
    assert client.get("/health").json() == {"status": "ok"}
    half = b'{"texts": ["\\ud800"]}'
    for body in (b"{", b'{"texts": []}', b'{"texts": [1]}', half):
        headers = {"content-type": "application/json"}
        assert client.post("/translate", content=body, headers=headers).status_code == 422
    for texts in (["a"] * 33, ["a" * 1001]):
        assert client.post("/translate", json={"texts": texts}).status_code == 422
