"""Searches, parts of texts and streams that completions and chats share."""

import time
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import Response

from keras_transformer.decoding import Greedy
from keras_transformer.serving.bodies import value_of
from keras_transformer.serving.protocols.openai.base import OpenAI
from keras_transformer.serving.protocols.openai.events import Events
from keras_transformer.serving.protocols.openai.stops import Stops
from keras_transformer.serving.protocols.openai.usage import usage_of
from keras_transformer.serving.refusal import Refusal

NUMBER = (int, float)
# Settings with which tokens are drawn. OpenAI's API has the first two, vLLM and llama.cpp all.
SAMPLING = {"temperature": NUMBER, "top_p": NUMBER, "top_k": int, "min_p": NUMBER}
PENALTY = "repetition_penalty"  # as in vLLM
USED = (*SAMPLING, PENALTY, "seed", "stop", "stream", "stream_options")


class LanguageModelRequests(OpenAI):
    """Base class of requests to a language model."""

    @classmethod
    def fits(cls, service) -> bool:  # noqa: D102
        return service.task == "language_modelling"

    def search_of(self, body: dict[str, Any], most: int | None) -> Any:
        """Returns the search that a request describes, greedy unless it asks for samples.

        Args:
            body: The request.
            most: Maximum number of tokens.

        Raises:
            Refusal: If a value is out of range.
        """
        given = _numbers(body, SAMPLING)
        if given.get("top_k") == -1:  # all, as in vLLM
            given["top_k"] = 0
        shared: dict[str, Any] = {"max_length": most, **_numbers(body, {PENALTY: NUMBER})}
        seed = value_of(body, "seed", int)
        try:
            if given.get("temperature") == 0 or not given and seed is None:
                return Greedy(**shared)
            seed = uuid.uuid4().int % 2**31 if seed is None else seed
            return self.service.model.sample_with(**given, seed=seed, **shared)
        except (ValueError, TypeError, OverflowError) as error:
            raise Refusal(400, str(error)) from None

    def answer(self, kind: str, prefix: str) -> dict[str, Any]:
        """Returns the fields that a response, or each event of a stream, begins with."""
        return {
            "id": f"{prefix}-{uuid.uuid4().hex}",
            "object": kind,
            "created": int(time.time()),
            "model": self.service.name,
        }

    async def events(self, call: Any, events: AsyncGenerator) -> Response:
        """Returns the response of a stream, whose first event must come in time.

        Raises:
            Refusal: If there is no first event: the response then has the status of an error.
        """
        return Events(await call.in_time(anext(events)), events, self.error)


def _numbers(body, kinds):
    """Returns the numbers that a request has, by name, as `float` unless they are to be `int`.

    Raises:
        Refusal: If a value is of another type, or too large.
    """
    found = {name: value_of(body, name, kind) for name, kind in kinds.items()}
    numbers = {name: value for name, value in found.items() if value is not None}
    for name, value in numbers.items():
        try:
            numbers[name] = value if kinds[name] is int else float(value)
        except OverflowError:
            raise Refusal(400, f"`{name}` is too large.") from None
    return numbers


def with_usage(body: dict[str, Any]) -> bool | None:
    """Returns whether the last event of a stream has the usage; `None` if there is no stream.

    Raises:
        Refusal: If `stream` or `stream_options` is something else.
    """
    options = value_of(body, "stream_options", dict)
    if not value_of(body, "stream", bool, False):
        if options is not None:
            raise Refusal(400, "`stream_options` needs `stream`.")
        return None
    others = {*(options or {})} - {"include_usage", "include_obfuscation"}
    if others:
        raise Refusal(400, f"`stream_options` has no {min(others):.100}.")
    return value_of(options or {}, "include_usage", bool, False)


class StreamedText:
    """A text while it is generated, until its end, its maximum length or a stop.

    Args:
        streams: The `Streams`.
        prompt: The `Prompt`.
        search: The search.
        stops: Strings that end the text.
        number: Index of the prompt in its request.

    Attributes:
        read, written: Number of tokens of the prompt, and of the text so far.
        reason: Why the text has ended, `"stop"` or `"length"`.
    """

    def __init__(self, streams: Any, prompt: Any, search: Any, stops: tuple, number: int = 0):
        self._streams, self._arguments = streams, (prompt, search, number)
        self._stops = Stops(stops)
        self.read, self.written, self.reason = streams.tokens_of(prompt), 0, "stop"

    async def parts(self) -> AsyncGenerator[str, None]:
        """Yields the parts of the text, none of them empty.

        The model is free again when the iteration has ended, or is closed.

        Raises:
            Refusal: See `Streams.text` and `Stream`.
        """
        async with self._streams.text(*self._arguments) as stream:
            async for part in stream:
                self.written = stream.tokens
                if part := self._stops.add(part):
                    yield part
                if self._stops.reached:
                    return
            self.written = stream.tokens
            self.reason = "stop" if stream.complete else "length"
        if rest := self._stops.end():
            yield rest

    async def whole(self) -> str:
        """Returns the whole text."""
        return "".join([part async for part in self.parts()])


def usage_event(answer: dict[str, Any], texts: list[StreamedText]) -> dict[str, Any]:
    """Returns the event with the usage of a stream, which has no choices."""
    usage = usage_of([text.read for text in texts], [text.written for text in texts])
    return {**answer, "choices": [], **usage}
