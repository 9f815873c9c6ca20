"""The base class of OpenAI's requests: errors, the name of the model, and known parameters."""

from collections.abc import Container
from typing import Any

from keras_transformer.serving.bodies import content_type, is_one_of, json_object, value_of
from keras_transformer.serving.protocol import Protocol
from keras_transformer.serving.refusal import Refusal

TYPES = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error"}
# Parameters that change nothing in an answer: they identify users or choose prices and storage.
IGNORED = {
    *("user", "safety_identifier", "metadata", "store", "service_tier"),
    *("prompt_cache_key", "prompt_cache_retention"),
}
# Parameters that are accepted with the values that change nothing. All accept null.
NEUTRAL: dict[str, tuple] = {
    "n": (1,),
    "best_of": (1,),
    "suffix": ("",),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "reasoning_effort": ("none",),
    "verbosity": (),
    "web_search_options": (),
}


class OpenAI(Protocol):
    """Base class: the form of errors, and the model in `/v1/models`."""

    def error(self, refusal):  # noqa: D102
        kind = TYPES.get(refusal.status, "invalid_request_error")
        fields = {"message": refusal.message, "type": kind, "param": None, "code": None}
        return {"error": fields}

    def models(self):  # noqa: D102
        return {"object": "list", "data": [self.model()]}

    def model(self):  # noqa: D102
        service = self.service
        return {
            "id": service.name,
            "object": "model",
            "created": service.created,
            "owned_by": "keras_transformer",
        }

    async def fields(self, call) -> dict[str, Any]:
        """Returns the body of a request, after checking the name of the model."""
        body, kind = await call.body(), content_type(call.request)
        if kind != "application/json":
            raise Refusal(415, f"the body must be application/json. Received: {kind or 'no type'}.")
        body = json_object(body)
        self.service.check_name(value_of(body, "model", str, ...))
        return body

    def check_names(self, body: dict[str, Any], used: Container[str]) -> None:
        """Refuses parameters that would have an effect, or that OpenAI's API does not have.

        Args:
            body: Result of `fields`.
            used: Names of the parameters that the request uses, besides `model`.

        Raises:
            Refusal: If there is another one.
        """
        for name, value in body.items():
            if name in used or name in IGNORED or name == "model":
                continue
            if name not in NEUTRAL:
                raise Refusal(400, f"Unrecognized request argument supplied: {name:.100}")
            if value is not None and not is_one_of(value, NEUTRAL[name]):
                if name in ("n", "best_of"):
                    raise Refusal(400, f"`{name}` must be 1: a prompt has one completion.")
                raise Refusal(400, f"`{name}` is not supported.")
