"""The files on docs/other_servers.md: their names, types and options are those of our exports."""

import asyncio
import json
import os
import runpy
import subprocess
import sys
import threading
import types

import pipelines
import pytest
import tensorflow as tf
import yaml
from documents import blocks

from keras_transformer.serving.options import ServerOptions

PAGE = "docs/other_servers.md"
PYTHON = os.environ.get("KERAS_TRANSFORMER_CLIENTS")
TYPES = {"STRING": tf.string, "FP32": tf.float32, "BOOL": tf.bool, "INT32": tf.int32}
PARSE = """
import json, sys
from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig
texts = json.load(sys.stdin)
read = lambda text: json_format.MessageToDict(text_format.Parse(text, ModelConfig()))
print(json.dumps([read(text) for text in texts]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="KERAS_TRANSFORMER_CLIENTS names no Python")
def test_the_files_for_triton_have_the_signatures_of_exports():
    texts = json.dumps([block.code for block in blocks(PAGE, "proto")])
    done = subprocess.run([PYTHON, "-c", PARSE], input=texts, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    of_text, of_ids = pipelines.translator().signatures()
    for config, signature in zip(json.loads(done.stdout), (of_ids, of_text), strict=True):
        function = tf.function(signature.function)
        outputs = function.get_concrete_function(**signature.inputs).structured_outputs
        # An export has no axis of the M outputs if there is one output of each input.
        ranks = {name: one.shape.rank - (name != "truncated") for name, one in outputs.items()}
        assert {one["name"]: described(one) for one in config["output"]} == {
            name: (one.dtype, ranks[name]) for name, one in outputs.items()
        }
        assert {one["name"]: described(one) for one in config["input"]} == {
            name: (one.dtype, one.shape.rank) for name, one in signature.inputs.items()
        }


def described(tensor):
    """Returns the type of a tensor and its rank, with the axis of the batch."""
    shape = tensor["reshape"].get("shape", []) if "reshape" in tensor else tensor["dims"]
    return TYPES[tensor["dataType"].removeprefix("TYPE_")], 1 + len(shape)


def test_the_container_for_kserve_has_options_of_serve():
    container, saved_model = (yaml.safe_load(block.code) for block in blocks(PAGE, "yaml"))
    assert container["kind"] == saved_model["kind"] == "InferenceService"
    (one,) = container["spec"]["predictor"]["containers"]
    model, *options = one["args"]
    values = dict(zip(options[::2], options[1::2], strict=True))
    known = {f"--{name.replace('_', '-')}" for name in ServerOptions.__dataclass_fields__}
    assert values.keys() <= known and model == "/mnt/models"
    ports = {one[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")}
    assert ports == {one["ports"][0]["containerPort"]} == {int(values["--port"])}
    ServerOptions(host=values["--host"], name=values["--name"])


def test_the_program_for_kserve_computes_beside_its_event_loop(monkeypatch):
    """With stand-ins for the modules of KServe, which the tests do without."""
    module = types.SimpleNamespace
    kserve = module(Model=object, InferResponse=None, errors=None, utils=None)
    monkeypatch.setitem(sys.modules, "kserve", kserve)
    monkeypatch.setitem(sys.modules, "kserve.errors", module(InvalidInput=ValueError))
    monkeypatch.setitem(sys.modules, "kserve.utils", module())
    monkeypatch.setitem(sys.modules, "kserve.utils.numpy_codec", module(from_np_dtype=str))
    program = runpy.run_path("examples/kserve/main.py")["Translator"]
    translator, threads = program.__new__(program), []

    def translate(sentences):
        threads.append(threading.current_thread())
        size = tf.fill([len(sentences)], 1.0)
        text = tf.fill([len(sentences)], "b")
        return {"translation": text, "score": size, "truncated": size, "complete": size}

    translator._translate = translate
    answer = asyncio.run(translator.predict({"instances": ["a", "c"]}))
    assert [one["translation"] for one in answer["predictions"]] == ["b", "b"]
    assert threads and threading.main_thread() not in threads
