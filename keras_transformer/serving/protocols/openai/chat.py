"""OpenAI's chat completions: answers in a conversation."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import JSONResponse, Response

from keras_transformer.serving.bodies import value_of
from keras_transformer.serving.protocols.openai.generation import (
    USED,
    LanguageModelRequests,
    StreamedText,
    usage_event,
    with_usage,
)
from keras_transformer.serving.protocols.openai.stops import stops_of
from keras_transformer.serving.protocols.openai.usage import usage_of
from keras_transformer.serving.refusal import Refusal

LIMITS = ("max_completion_tokens", "max_tokens")
ROLES = {role: role for role in ("system", "user", "assistant")} | {"developer": "system"}


class ChatCompletions(LanguageModelRequests):
    """`/v1/chat/completions`, also as a stream."""

    def routes(self):  # noqa: D102
        return [("POST", "/v1/chat/completions", self.chat)]

    async def chat(self, call) -> Response:
        """Answers the last message of a conversation."""
        body, streams = await self.fields(call), self.service.streams
        self.check_names(body, (*USED, *LIMITS, "messages"))
        if streams is None or not streams.has_template:
            raise Refusal(
                400, f"{self.service.name} has no chat template: use /v1/completions instead."
            )
        messages = messages_of(body)
        self.service.inputs_of([message["content"] for message in messages])  # checks their size
        usage, search = with_usage(body), self.search_of(body, _limit(body))
        stops, prompt = stops_of(body), await streams.conversation(messages)
        call.count = 1
        text = StreamedText(streams, prompt, search, stops)
        if usage is not None:
            return await self.events(call, self._events(text, usage))
        content = await call.in_time(text.whole())
        message = {"role": "assistant", "content": content, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": text.reason}
        answer = self.answer("chat.completion", "chatcmpl")
        return JSONResponse(
            {**answer, "choices": [choice], **usage_of([text.read], [text.written])}
        )

    async def _events(
        self, text: StreamedText, usage: bool
    ) -> AsyncGenerator[dict[str, Any], None]:
        answer = self.answer("chat.completion.chunk", "chatcmpl")
        answer |= {"usage": None} if usage else {}

        def event(delta, reason=None):
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
            return {**answer, "choices": [choice]}

        role: dict[str, str] = {"role": "assistant"}
        async with contextlib.aclosing(text.parts()) as parts:
            async for part in parts:
                yield event({**role, "content": part})
                role = {}
        yield event(role and {**role, "content": ""}, text.reason)
        if usage:
            yield usage_event(answer, [text])


def messages_of(body: dict[str, Any]) -> list[dict[str, str]]:
    """Returns the messages of a request as `ChatTemplate` has them.

    Raises:
        Refusal: If one is no text of a known role.
    """
    messages = value_of(body, "messages", list, ...)
    if not messages:
        raise Refusal(400, "`messages` must not be empty.")
    return [_message(number, message) for number, message in enumerate(messages)]


def _message(number, message):
    name = f"messages[{number}]"
    if not isinstance(message, dict):
        raise Refusal(400, f"`{name}` must be an object.")
    role = ROLES.get(value_of(message, "role", str, ...))
    if role is None:
        known = ", ".join(ROLES)
        raise Refusal(400, f"`{name}.role` must be one of {known}: there are no tools.")
    for other in {*message} - {"role", "content", "name"}:
        if message[other]:
            raise Refusal(400, f"`{name}.{other:.100}` is not supported.")
    content = value_of(message, "content", (str, list), ...)
    if isinstance(content, list):
        content = "".join(_text(name, part) for part in content)
    return {"role": role, "content": content}


def _text(name, part):
    """Returns the text of a part of a message."""
    if not isinstance(part, dict) or part.get("type") != "text":
        raise Refusal(400, f"`{name}.content` must be a string, or parts of the type text.")
    return value_of(part, "text", str, ...)


def _limit(body):
    """Returns the maximum number of tokens of an answer, or `None`."""
    given = [name for name in LIMITS if body.get(name) is not None]
    if len(given) > 1:
        raise Refusal(400, "`max_tokens` and `max_completion_tokens` exclude each other.")
    return value_of(body, given[0], int) if given else None
