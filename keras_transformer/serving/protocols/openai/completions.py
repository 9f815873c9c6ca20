"""OpenAI's completions: prompts that are continued."""

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
from keras_transformer.serving.protocols.openai.stops import Stops, stops_of
from keras_transformer.serving.protocols.openai.usage import token_counts, usage_of
from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.work import Work
from keras_transformer.tasks.streams.prompts import after

MAX_TOKENS = 16  # OpenAI's default
TOO_LONG = "the prompt is longer than the model's limit."


class Completions(LanguageModelRequests):
    """`/v1/completions`: a batch for whole texts, and token by token for a stream."""

    def routes(self):  # noqa: D102
        return [("POST", "/v1/completions", self.complete)]

    async def complete(self, call) -> Response:
        """Continues a prompt, or each of a list."""
        body = await self.fields(call)
        self.check_names(body, (*USED, "prompt", "max_tokens", "echo"))
        prompts = value_of(body, "prompt", (str, list), ...)
        prompts = self.service.inputs_of([prompts] if isinstance(prompts, str) else prompts)
        if not prompts:
            raise Refusal(400, "`prompt` must not be an empty list.")
        search = self.search_of(body, value_of(body, "max_tokens", int, MAX_TOKENS))
        echo, stops = value_of(body, "echo", bool, False), stops_of(body)
        usage = with_usage(body)
        if usage is not None and self.service.streams is not None:
            texts = await self._texts(prompts, search, stops)
            call.count = len(texts)
            echoed = prompts if echo else [""] * len(prompts)
            return await self.events(call, self._streamed(echoed, texts, usage))
        results = await call.answer(Work(search=search), prompts)
        if any(result.truncated for result in results):
            raise Refusal(400, TOO_LONG)
        choices = [
            _choice(index, prompt, result, echo, stops)
            for index, (prompt, result) in enumerate(zip(prompts, results, strict=True))
        ]
        counts = await self._counts(prompts, results)
        answer = self.answer("text_completion", "cmpl")
        if usage is None:
            return JSONResponse({**answer, "choices": choices, **usage_of(*counts)})
        events = [{**answer, "choices": [choice]} for choice in choices]
        if usage and counts[0] is not None:
            events.append({**answer, "choices": [], **usage_of(*counts)})
        return await self.events(call, _in_one_piece(events))

    async def _texts(self, prompts, search, stops):
        streams = self.service.streams
        return [
            StreamedText(streams, await streams.prompt(prompt), search, stops, number)
            for number, prompt in enumerate(prompts)
        ]

    async def _streamed(
        self, echoed: list[str], texts: list[StreamedText], usage: bool
    ) -> AsyncGenerator[dict[str, Any], None]:
        answer = self.answer("text_completion", "cmpl")
        answer |= {"usage": None} if usage else {}

        def event(index, text, reason=None):
            choice = {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
            return {**answer, "choices": [choice]}

        for index, (echo, text) in enumerate(zip(echoed, texts, strict=True)):
            if echo:
                yield event(index, echo)
            async with contextlib.aclosing(text.parts()) as parts:
                async for part in parts:
                    yield event(index, part)
            yield event(index, "", text.reason)
        if usage:
            yield usage_event(answer, texts)

    async def _counts(self, prompts, results):
        """Returns the numbers of tokens of prompts and completions, as the tokenizer counts them.

        The tokens of a search may divide the same text in another way.
        """
        model = self.service.model
        read = await token_counts(model, prompts)
        if read is None:
            return None, None
        both: Any = await token_counts(model, [result.text for result in results])
        # `encode` counts the end of a text, which a prompt does not have.
        ends = [bool(result.complete) for result in results]
        written = [
            max(0, whole - part) + end for whole, part, end in zip(both, read, ends, strict=True)
        ]
        return read, written


async def _in_one_piece(events) -> AsyncGenerator[dict[str, Any], None]:
    """Yields the events of a model that returns no tokens before its search has ended."""
    for event in events:
        yield event


def _choice(index, prompt, result, echo, stops):
    """Returns the choice of a response for a prompt and its result, which begins with it."""
    stopping = Stops(stops)
    text = stopping.add(after(prompt, result.text)) + stopping.end()
    reason = "length" if result.complete is False and not stopping.reached else "stop"
    text = prompt + text if echo else text
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
