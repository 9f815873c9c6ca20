"""Streams of server-sent events, whose last one may be an error."""

import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import StreamingResponse

from keras_transformer.serving.refusal import Refusal

DONE = "data: [DONE]\n\n"


class Events(StreamingResponse):
    """A response whose events are sent as soon as they are known.

    Args:
        first: The first event, an object of JSON, which is known before the response begins.
        others: The other events. It is closed when they have ended or the client has left.
        error: Function from a `Refusal` in the middle of the stream to the last event.
    """

    def __init__(self, first: dict[str, Any], others: AsyncGenerator, error: Any):
        self._others, self._error = others, error
        super().__init__(
            self._written(first),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Sends the events."""
        async with contextlib.aclosing(self._others):
            await super().__call__(scope, receive, send)

    async def _written(self, first):
        yield _event(first)
        try:
            async for event in self._others:
                yield _event(event)
        except Refusal as refusal:
            yield _event(self._error(refusal))
            return
        yield DONE


def _event(value):
    return f"data: {json.dumps(value)}\n\n"
