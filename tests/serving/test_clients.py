"""Real clients of each protocol, in the Python that `KERAS_TRANSFORMER_CLIENTS` names.

It has `libretranslatepy`, `openai` and `tritonclient[http,grpc]`.
"""

import json
import os
import subprocess

import pipelines
import pytest
from servers import NAMED, Endless, Shouting, serving

from keras_transformer.decoding import Sample
from keras_transformer.tasks.streams.prompts import after
from keras_transformer.text.chat_template import ChatTemplate

PYTHON = os.environ.get("KERAS_TRANSFORMER_CLIENTS")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="KERAS_TRANSFORMER_CLIENTS names no Python"),
]
LIBRETRANSLATE = """
from libretranslatepy import LibreTranslateAPI
api = LibreTranslateAPI(base + "/")
print(json.dumps([api.translate("a ä", "en", "xx"), api.languages()]))
"""
TRITON = """
import numpy as np
import tritonclient.http as triton
client = triton.InferenceServerClient(base.removeprefix("http://"))
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("model")
assert client.get_model_metadata("model")["inputs"][0]["name"] == "text"
text = triton.InferInput("text", [2], "BYTES")
text.set_data_from_numpy(np.array(["a ä", "b"], dtype=object))
binary = client.infer("model", [text])
plain = client.infer("model", [text], outputs=[triton.InferRequestedOutput("text", False)])
texts = [[one.decode() for one in binary.as_numpy("text")], plain.as_numpy("text").tolist()]
texts[1] = [one.decode() if isinstance(one, bytes) else one for one in texts[1]]
print(json.dumps([*texts, binary.as_numpy("score").tolist()]))
"""
OPENAI = """
import openai
client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
assert [one.id for one in client.models.list()] == [client.models.retrieve("model").id]
"""
EMBEDDINGS = (
    OPENAI
    + """
data = client.embeddings.create(model="model", input=["a cat runs", "the big dog"]).data
print(json.dumps([one.embedding for one in data]))
"""
)
COMPLETIONS = (
    OPENAI
    + """
how = {"model": "model", "prompt": "a cat runs", "max_tokens": 4}
whole = client.completions.create(**how).choices[0].text
parts = [one.choices[0].text for one in client.completions.create(**how, stream=True)]
how = {"model": "model", "messages": [{"role": "user", "content": "a"}], "max_tokens": 4}
answer = client.chat.completions.create(**how)
usage = {"include_usage": True}
*events, last = client.chat.completions.create(**how, stream=True, stream_options=usage)
deltas = [event.choices[0].delta.content or "" for event in events]
assert events[-1].choices[0].finish_reason == answer.choices[0].finish_reason
assert last.usage == answer.usage and answer.usage.total_tokens > 1
try:
    client.chat.completions.create(**how, extra_body={"best": 1})
except openai.BadRequestError as error:
    refused = error.body["message"]
extra = {"top_k": 2, "min_p": 0.1, "repetition_penalty": 2.0}
how = {"model": "model", "prompt": "a cat runs", "max_tokens": 4, "seed": 5, "extra_body": extra}
other = client.completions.create(**how).choices[0].text
more = [one.choices[0].text for one in client.completions.create(**how, stream=True)]
assert "".join(more) == other
texts = [whole, "".join(parts), answer.choices[0].message.content]
print(json.dumps([*texts, deltas, refused, other]))
"""
)
FAILING = (
    OPENAI
    + """
parts = []
try:
    for event in client.completions.create(model="model", prompt="fail", stream=True):
        parts.append(event.choices[0].text)
except openai.APIError as error:
    parts.append(error.message)
print(json.dumps(parts))
"""
)


def output(program, served):
    """Returns what a program of a client prints, parsed as JSON."""
    begin = f"import json\nbase = 'http://127.0.0.1:{served.port}'\n"
    done = subprocess.run([PYTHON, "-c", begin + program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_clients_of_a_translator():
    with serving(Shouting(), **NAMED) as served:
        text, languages = output(LIBRETRANSLATE, served)
        assert text == "A Ä" and languages[0]["targets"] == ["xx"]
        assert output(TRITON, served) == [["A Ä", "B"], ["A Ä", "B"], [-0.5, -0.5]]


def test_the_client_of_openai_gets_vectors_and_completions():
    embedder, generator = pipelines.embedder(), pipelines.generator().with_search(None)
    with serving(embedder) as served:
        vectors = output(EMBEDDINGS, served)
    for vector, text in zip(vectors, ["a cat runs", "the big dog"], strict=True):
        assert vector == pytest.approx(embedder.answer(text).values.tolist(), abs=1e-6)
    generator.chat_template = ChatTemplate("{{ messages[0].content }} ")
    with serving(generator) as served:
        whole, streamed, answer, deltas, refused, other = output(COMPLETIONS, served)
    search = Sample(top_k=2, min_p=0.1, repetition_penalty=2.0, seed=5, max_length=4)
    (expected,) = generator.answer(["a cat runs"], search=search)
    assert other == after("a cat runs", expected.text) != whole
    assert whole == streamed and answer == "".join(deltas) and len(deltas) > 2
    assert "supplied: best" in refused
    with serving(Endless()) as served:
        assert output(FAILING, served) == [
            "x",
            "the model failed; the log of the server has the reason.",
        ]
