"""The protocol of OpenAI's API: embeddings, completions and transcriptions."""

import base64
import json
import time
import uuid
from typing import Any

import numpy as np
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from keras_transformer.decoding import Greedy
from keras_transformer.serving.bodies import content_type, form, json_object, value_of
from keras_transformer.serving.protocol import Protocol
from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.work import Work
from keras_transformer.tasks.speech_recognition.subtitles import FORMATS

NUMBER = (int, float)
MAX_TOKENS = 16  # OpenAI's default
TYPES = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error"}


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
        # Without `usage`: tokens are not counted.
        return JSONResponse({"object": "list", "data": data, "model": self.service.name})


def _written(vector, shape):
    if shape == "base64":
        return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
    return np.asarray(vector, "float64").tolist()


class Completions(OpenAI):
    """`/v1/completions`, also as a stream; `/v1/chat/completions` is refused."""

    @classmethod
    def fits(cls, service) -> bool:  # noqa: D102
        return service.task == "language_modelling"

    def routes(self):  # noqa: D102
        return [
            ("POST", "/v1/completions", self.complete),
            ("POST", "/v1/chat/completions", self.chat),
        ]

    async def chat(self, call) -> Response:
        """Refuses a chat."""
        await self.fields(call)
        raise Refusal(
            400, f"{self.service.name} has no chat template here: use /v1/completions instead."
        )

    async def complete(self, call) -> Response:
        """Continues a prompt, or each of a list."""
        body = await self.fields(call)
        prompts = value_of(body, "prompt", (str, list), ...)
        prompts = [prompts] if isinstance(prompts, str) else prompts
        for name in ("n", "best_of"):
            if value_of(body, name, int, 1) != 1:
                raise Refusal(400, f"`{name}` must be 1: a prompt has one completion.")
        for name in ("suffix", "logprobs", "logit_bias", "presence_penalty", "frequency_penalty"):
            if body.get(name):
                raise Refusal(400, f"`{name}` is not supported.")
        echo, stop = value_of(body, "echo", bool, False), _stops(body)
        stream = value_of(body, "stream", bool, False)
        work = Work(search=self._search(body))
        inputs = self.service.inputs_of(prompts)
        results = await call.answer(work, inputs)
        choices = [
            _choice(index, prompt, result, echo, stop)
            for index, (prompt, result) in enumerate(zip(prompts, results, strict=True))
        ]
        answer = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": self.service.name,
        }
        if stream:
            return _events([{**answer, "choices": [choice]} for choice in choices])
        return JSONResponse({**answer, "choices": choices})

    def _search(self, body):
        """Returns the search that a request describes."""
        names = ("temperature", "top_p")
        given = {name: value_of(body, name, NUMBER) for name in names}
        given = {name: float(value) for name, value in given.items() if value is not None}
        seed = value_of(body, "seed", int)
        length = value_of(body, "max_tokens", int, MAX_TOKENS)
        model = self.service.model
        try:
            if given.get("temperature") == 0:
                return Greedy(max_length=length)
            if not given and seed is None:
                return Greedy(max_length=length)
            seed = uuid.uuid4().int % 2**31 if seed is None else seed
            return model.sample_with(**given, seed=seed, max_length=length)
        except (ValueError, TypeError) as error:
            raise Refusal(400, str(error)) from None


def _stops(body):
    stops = value_of(body, "stop", (str, list), [])
    stops = [stops] if isinstance(stops, str) else stops
    if not all(isinstance(stop, str) and stop for stop in stops):
        raise Refusal(400, "`stop` must be a string or a list of strings.")
    return stops


def _choice(index, prompt, result, echo, stops):
    """Returns the choice of a response for a prompt and its result, which begins with it."""
    # A tokenizer may normalise white space, so that the prompt comes back in another length.
    begin = len(prompt) if result.text.startswith(prompt) else _begin(prompt, result.text)
    text, ended = result.text[begin:], result.complete
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    if places:
        text, ended = text[: min(places)], True
    reason = "length" if ended is False else "stop"
    text = prompt + text if echo else text
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}


def _begin(prompt, text):
    """Returns where the continuation begins: after as many characters that are not white space."""
    left = sum(not character.isspace() for character in prompt)
    for place, character in enumerate(text):
        if not left:
            return place
        left -= not character.isspace()
    return len(text)


def _events(parts):
    """Returns a stream of server-sent events."""

    async def events():
        for part in parts:
            yield f"data: {json.dumps(part)}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


class Transcriptions(OpenAI):
    """`/v1/audio/transcriptions`."""

    @classmethod
    def fits(cls, service) -> bool:  # noqa: D102
        return service.task == "speech_recognition"

    def routes(self):  # noqa: D102
        return [("POST", "/v1/audio/transcriptions", self.transcribe)]

    async def transcribe(self, call) -> Response:
        """Returns the text of a recording."""
        body = await call.body()
        if content_type(call.request) != "multipart/form-data":
            raise Refusal(415, "the body must be multipart/form-data.")
        fields = await form(call.request, body)
        self.service.check_name(value_of(fields, "model", str, ...))
        for name in ("prompt", "stream", "include", "chunking_strategy"):
            if fields.get(name) not in (None, "", "false", "auto"):
                raise Refusal(400, f"`{name}` is not supported.")
        if value_of(fields, "temperature", str, "0") not in ("0", "0.0"):
            raise Refusal(400, "`temperature` must be 0: nothing is sampled.")
        shape = value_of(fields, "response_format", str, "json")
        timed = shape in (*FORMATS, "verbose_json")
        if shape not in ("json", "text") and not timed:
            raise Refusal(400, f"`response_format` {shape} is not supported.")
        language = value_of(fields, "language", str)
        settings = (("timestamps", True),) if timed else ()
        inputs = self.service.inputs_of([value_of(fields, "file", bytes, ...)])
        (result,) = await call.answer(Work((language, None), settings=settings), inputs)
        if shape == "text":
            return PlainTextResponse(f"{result.text}\n")
        if shape in FORMATS:
            return PlainTextResponse(FORMATS[shape](result.segments))
        if shape == "json":
            return JSONResponse({"text": result.text})
        segments = [
            {"id": number, "start": segment.start, "end": segment.end, "text": segment.text}
            for number, segment in enumerate(result.segments)
        ]
        duration = segments[-1]["end"] if segments else 0.0
        return JSONResponse(
            {
                "task": "transcribe",
                "language": result.language or "",
                "duration": duration,
                "text": result.text,
                "segments": segments,
            }
        )
