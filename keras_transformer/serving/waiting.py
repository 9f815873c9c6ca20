"""Waiting for a result, until the client leaves or its time is over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from keras_transformer.serving.refusal import EXPIRED, Refusal


async def result_in_time(
    result: Awaitable, leaving: Callable[[], Any], seconds: float | None
) -> Any:
    """Returns a result, or cancels it.

    Args:
        result: What is awaited.
        leaving: Coroutine function that returns when the client has left.
        seconds: Time until the result.

    Raises:
        Refusal: If the time is over.
        ConnectionResetError: If the client has left.
    """
    future = asyncio.ensure_future(result)
    gone = asyncio.ensure_future(leaving())
    try:
        waits = {future, gone}
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        if gone.done():
            raise ConnectionResetError("the client has left")
        raise Refusal(504, EXPIRED.format(seconds))
    finally:
        gone.cancel()
        future.cancel()
