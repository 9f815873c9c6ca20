"""OpenAI's embeddings."""

import base64

import numpy as np
from starlette.responses import JSONResponse, Response

from keras_transformer.serving.bodies import value_of
from keras_transformer.serving.protocols.openai.base import OpenAI
from keras_transformer.serving.protocols.openai.usage import token_counts, usage_of
from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.work import Work


class Embeddings(OpenAI):
    """`/v1/embeddings`."""

    @classmethod
    def fits(cls, service) -> bool:  # noqa: D102
        return service.task == "embedding"

    def routes(self):  # noqa: D102
        return [("POST", "/v1/embeddings", self.embed)]

    async def embed(self, call) -> Response:
        """Returns a vector for each text."""
        body = await self.fields(call)
        self.check_names(body, ("input", "encoding_format", "dimensions"))
        texts = value_of(body, "input", (str, list), ...)
        shape = value_of(body, "encoding_format", str, "float")
        if shape not in ("float", "base64"):
            raise Refusal(400, f"`encoding_format` must be float or base64. Received: {shape}.")
        dimensions = value_of(body, "dimensions", int)
        settings = () if dimensions is None else (("dimensions", dimensions),)
        inputs = self.service.inputs_of([texts] if isinstance(texts, str) else texts)
        results = await call.answer(Work(settings=settings), inputs)
        data = [
            {"object": "embedding", "index": index, "embedding": _written(result.values, shape)}
            for index, result in enumerate(results)
        ]
        answer = {"object": "list", "data": data, "model": self.service.name}
        counts = await token_counts(self.service.model, inputs)
        return JSONResponse({**answer, **usage_of(counts)})


def _written(vector, shape):
    if shape == "base64":
        return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
    return np.asarray(vector, "float64").tolist()
