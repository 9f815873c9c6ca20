"""Version 2 of KServe's protocol, the Open Inference Protocol, which Triton speaks as well."""

import json
import math
from typing import Any

import numpy as np
from starlette.responses import JSONResponse, Response

import keras_transformer
from keras_transformer.serving.bodies import json_object, value_of
from keras_transformer.serving.protocol import Protocol
from keras_transformer.serving.protocols.kserve_fields import check_fields, parameters_of
from keras_transformer.serving.protocols.tensors import read_strings, write_strings
from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.results import as_json
from keras_transformer.serving.work import Work

VECTORS = ("embedding", "image_embedding")  # tasks whose answers are vectors
LENGTH = "Inference-Header-Content-Length"  # of the JSON in front of binary tensors
MODEL = "/v2/models/{name}"
VERSION = f"{MODEL}/versions/{{version}}"
# KServe's client repeats the name and the version, which are in the path.
REQUEST = ("id", "inputs", "outputs", "parameters", "model_name", "model_version")
INPUT, OUTPUT = ("name", "shape", "datatype", "data", "parameters"), ("name", "parameters")
# Parameters of the clients of Triton and MLServer, with the values that change nothing.
NEUTRAL: dict[str, tuple] = {
    **{"sequence_id": (0, ""), "sequence_start": (False,), "sequence_end": (False,)},
    **{"priority": (0,), "timeout": (0,), "content_type": ("str",), "headers": ({},)},
}
NEUTRAL_OF_INPUT: dict[str, tuple] = {"content_type": ("str",)}
NEUTRAL_OF_OUTPUT: dict[str, tuple] = {"content_type": ("str",), "classification": (0,)}


class KServeV2(Protocol):
    """`/v2`: the input `text` is `[B]`; the outputs are `text`, `score` and `result`.

    `result` is an object in JSON for each input. `embedding` also has `vector`, `[B, D]`.
    """

    def routes(self):  # noqa: D102
        return [
            ("GET", "/v2", self.server),
            ("GET", "/v2/health/live", self.live),
            ("GET", "/v2/health/ready", self.ready),
            *[
                route
                for path in (MODEL, VERSION)
                for route in (
                    ("GET", path, self.metadata),
                    ("GET", f"{path}/ready", self.ready),
                    ("POST", f"{path}/infer", self.infer),
                )
            ],
        ]

    def error(self, refusal):  # noqa: D102
        return {"error": refusal.message}

    async def server(self, call) -> Response:
        """Returns what the server is."""
        version = keras_transformer.__version__
        extensions = ["binary_tensor_data"]
        return JSONResponse(
            {"name": "keras_transformer", "version": version, "extensions": extensions}
        )

    async def live(self, call) -> Response:
        """Answers with status 200 unless the model does not return; see `Service.check_live`."""
        self.service.check_live()
        return JSONResponse({"live": True})

    async def ready(self, call) -> Response:
        """Answers with status 200 while requests are accepted."""
        self._check(call)
        if self.service.queue.is_stopping:
            raise Refusal(503, "the server is not ready.")
        return JSONResponse({"name": self.service.name, "ready": True})

    async def metadata(self, call) -> Response:
        """Returns the tensors of the model."""
        self._check(call)
        outputs = [("text", "BYTES", [-1]), ("score", "FP32", [-1]), ("result", "BYTES", [-1])]
        if self.service.task in VECTORS:
            outputs.append(("vector", "FP32", [-1, -1]))
        return JSONResponse(
            {
                "name": self.service.name,
                "versions": ["1"],
                "platform": "keras_transformer",
                "inputs": [{"name": "text", "datatype": "BYTES", "shape": [-1]}],
                "outputs": [
                    {"name": name, "datatype": kind, "shape": shape}
                    for name, kind, shape in outputs
                ],
            }
        )

    async def infer(self, call) -> Response:
        """Answers the inputs of a request."""
        self._check(call)
        body, binary = await self._parts(call)
        self._check_fields(body)
        tensors = body.get("inputs")
        if not isinstance(tensors, list) or len(tensors) != 1 or not isinstance(tensors[0], dict):
            raise Refusal(400, "`inputs` must be a list of one tensor, `text`.")
        inputs = self.service.inputs_of(_strings(tensors[0], binary))
        asked, in_binary = _asked(body)
        results = await call.answer(Work(), inputs)
        outputs = _outputs(results, self.service.task)
        for name in asked or ():
            if name not in outputs:
                raise Refusal(400, f"there is no output {name!r}, only {', '.join(outputs)}.")
        chosen = {name: outputs[name] for name in (asked or outputs)}
        answer = {"model_name": self.service.name, "model_version": "1"}
        if body.get("id") is not None:
            answer["id"] = body["id"]
        return _response(answer, chosen, in_binary)

    def _check(self, call):
        parameters = call.request.path_params
        if "name" in parameters:
            self.service.check_name(parameters["name"])
        if parameters.get("version", "1") != "1":
            raise Refusal(404, "the only version is 1.")

    def _check_fields(self, body):
        check_fields("a request", body, REQUEST)
        value_of(body, "id", str)
        self.service.check_name(value_of(body, "model_name", str, self.service.name))
        if value_of(body, "model_version", str, "1") not in ("", "1"):
            raise Refusal(404, "the only version is 1.")

    async def _parts(self, call):
        """Returns the JSON of a body, and the bytes after it."""
        body = await call.body()
        length = call.request.headers.get(LENGTH)
        if length is None:
            return json_object(body), b""
        if not (length.isascii() and length.isdigit()) or int(length[:20]) > len(body):
            raise Refusal(400, f"{LENGTH} must be a number of bytes of the body.")
        return json_object(body[: int(length)]), body[int(length) :]


def _strings(tensor, binary):
    """Returns the strings of a tensor, of JSON or of the bytes after it."""
    check_fields("an input", tensor, INPUT)
    parameters = parameters_of("an input", tensor, {"binary_data_size": int}, NEUTRAL_OF_INPUT)
    shape, size = tensor.get("shape"), parameters.get("binary_data_size")
    if tensor.get("name") != "text" or tensor.get("datatype") != "BYTES":
        raise Refusal(400, "the input must be `text` with the datatype BYTES.")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise Refusal(400, "`shape` must be a list of sizes.")
    if math.prod(shape) != max(shape, default=0):
        raise Refusal(400, f"the shape of `text` must be [B] or [B, 1]. Received: {shape}.")
    values = tensor.get("data") if size is None else read_strings(binary, size)
    if not isinstance(values, list):
        raise Refusal(400, "`data` must be a list.")
    if values and all(isinstance(value, list) for value in values):
        values = [value for row in values for value in row]
    if len(values) != math.prod(shape):
        raise Refusal(400, f"`text` has {len(values)} values, but the shape {shape}.")
    return values


def _asked(body):
    """Returns the names of the outputs that a request wants, and whether each is binary."""
    parameters = parameters_of("a request", body, {"binary_data_output": bool}, NEUTRAL)
    default, binary = parameters.get("binary_data_output", False), {}
    for output in value_of(body, "outputs", list, []):
        if not isinstance(output, dict) or not isinstance(output.get("name"), str):
            raise Refusal(400, "an output must be an object with a `name`.")
        check_fields("an output", output, OUTPUT)
        own = parameters_of("an output", output, {"binary_data": bool}, NEUTRAL_OF_OUTPUT)
        binary[output["name"]] = own.get("binary_data", default)
    return [*binary], (lambda name: binary.get(name, default))


def _outputs(results, task):
    """Returns the datatype and the values of each output."""
    outputs = {
        "text": ("BYTES", [result.text for result in results]),
        "score": ("FP32", np.array([result.score for result in results], "<f4")),
        "result": ("BYTES", [json.dumps(as_json(result)) for result in results]),
    }
    if task in VECTORS:
        vectors = [result.values for result in results]
        outputs["vector"] = ("FP32", np.array(vectors, "<f4").reshape(len(results), -1))
    return outputs


def _response(answer: dict[str, Any], outputs: dict[str, Any], in_binary: Any) -> Response:
    """Returns a response with outputs in JSON, followed by those that are binary."""
    listed, binary = [], b""
    for name, (kind, values) in outputs.items():
        shape = list(np.shape(values))
        tensor: dict[str, Any] = {"name": name, "datatype": kind, "shape": shape}
        if in_binary(name):
            content = write_strings(values) if kind == "BYTES" else values.tobytes()
            tensor["parameters"] = {"binary_data_size": len(content)}
            binary += content
        else:
            tensor["data"] = values if kind == "BYTES" else values.ravel().tolist()
        listed.append(tensor)
    answer = {**answer, "outputs": listed}
    if not binary:
        return JSONResponse(answer)
    header = json.dumps(answer).encode()
    headers = {LENGTH: str(len(header))}
    return Response(header + binary, 200, headers, "application/octet-stream")
