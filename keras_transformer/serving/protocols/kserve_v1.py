"""Version 1 of KServe's protocol, a part of the REST protocol of TensorFlow Serving."""

from typing import Any

from starlette.responses import JSONResponse, Response

from keras_transformer.serving.bodies import json_object
from keras_transformer.serving.protocol import Protocol
from keras_transformer.serving.protocols.kserve_fields import check_fields, parameters_of
from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.results import as_json
from keras_transformer.serving.service import from_base64
from keras_transformer.serving.work import Work

FIELDS = ("instances", "signature_name", "parameters", "id")


class KServeV1(Protocol):
    """`/v1/models/NAME:predict`: an object with the fields of the result for each instance."""

    def routes(self):  # noqa: D102
        return [("POST", "/v1/models/{name}:predict", self.predict)]

    def error(self, refusal):  # noqa: D102
        return {"error": refusal.message}

    def models(self):  # noqa: D102
        return {"models": [self.service.name]}

    def model(self):  # noqa: D102
        return {
            "name": self.service.name,
            "ready": self.service.is_ready,
            "model_version_status": [
                {
                    "version": "1",
                    "state": "AVAILABLE",
                    "status": {"error_code": "OK", "error_message": ""},
                }
            ],
        }

    async def predict(self, call) -> Response:
        """Answers the instances of a request."""
        self.service.check_name(call.request.path_params["name"])
        body = json_object(await call.body())
        if "inputs" in body:
            raise Refusal(400, "`inputs` is not supported: send `instances`, one for each row.")
        check_fields("a request", body, FIELDS)
        parameters_of("a request", body)
        if body.get("signature_name") not in (None, "", "serving_default"):
            raise Refusal(400, "`signature_name` must be serving_default, the only one.")
        if "instances" not in body:
            raise Refusal(400, "`instances` is missing: the list of the inputs.")
        instances = body["instances"]
        if isinstance(instances, list):
            instances = [_value(instance) for instance in instances]
        results = await call.answer(Work(), self.service.inputs_of(instances))
        return JSONResponse({"predictions": [as_json(result) for result in results]})


def _value(instance: Any) -> Any:
    """Returns the string or the bytes of an instance."""
    if isinstance(instance, dict) and instance.keys() == {"b64"}:
        return from_base64(instance["b64"])
    return instance
