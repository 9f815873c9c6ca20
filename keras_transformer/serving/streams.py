"""Texts that are generated token by token, by turns with each other and with batches."""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from keras_transformer.decoding import Greedy, Sample
from keras_transformer.serving.jobs import JobQueue
from keras_transformer.serving.metrics import Metrics
from keras_transformer.serving.refusal import BUSY, STOPPING, Refusal

END = object()  # `StopIteration` does not cross threads


class Streams:
    """The texts of all clients that are generated at a time.

    Each token is a turn in the one thread of the model, so that several texts and the batches of
    other requests advance together.

    Args:
        streamer: The `Streamer`.
        most: Maximum number of texts at a time; others wait.
        max_queue: Maximum number of texts that wait.
        queue: The `JobQueue`.
        metrics: The `Metrics`.
    """

    def __init__(self, streamer: Any, most: int, max_queue: int, queue: JobQueue, metrics: Metrics):
        self._streamer, self._queue, self._metrics = streamer, queue, metrics
        self._free, self._most = asyncio.Semaphore(most), max_queue
        self._waiting = 0
        # A template is rendered, and a prompt tokenized, beside the model and the connections.
        self._prompts = concurrent.futures.ThreadPoolExecutor(1, "prompts")

    @property
    def has_template(self) -> bool:
        """`True` if there are conversations."""
        return self._streamer.template is not None

    def tokens_of(self, prompt: Any) -> int:
        """Returns the number of tokens that the model reads of a prompt."""
        return self._streamer.tokens_of(prompt)

    async def prompt(self, text: str) -> Any:
        """Returns the `Prompt` of a text; see `Streamer.prompt`.

        Raises:
            Refusal: If it is too long.
        """
        return await self._prepared(self._streamer.prompt, text)

    async def conversation(self, messages: list) -> Any:
        """Returns the `Prompt` of an answer; see `Streamer.conversation`.

        Raises:
            Refusal: If the template refuses the messages, or they are too long.
        """
        return await self._prepared(self._streamer.conversation, messages)

    async def _prepared(self, function, value):
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._prompts, function, value)
        except (TypeError, ValueError) as error:
            raise Refusal(400, str(error)) from None

    @contextlib.asynccontextmanager
    async def text(
        self, prompt: Any, search: Any, number: int = 0
    ) -> AsyncGenerator["Stream", None]:
        """A context with the `Stream` after a prompt, whose model is free again at its end.

        Args:
            prompt, search, number: See `Streamer.begin`.

        Raises:
            Refusal: If too many texts wait, the server stops, or the search does not fit.
        """
        if self._queue.is_stopping:
            raise Refusal(503, STOPPING, retry_after=1)
        if self._free.locked() and self._waiting >= self._most:
            raise Refusal(429, BUSY, retry_after=1)
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            text = self._streamer.begin(prompt, search, number)
        except Exception as error:
            self._free.release()
            raise self._queue.refusal(error) from None
        self._metrics.streams.inc()
        try:
            yield Stream(text, self._queue, self._metrics)
        finally:
            with contextlib.suppress(RuntimeError):  # the server has ended
                # In the thread of the model, after the token that is perhaps being generated.
                self._queue.in_thread(text.close).add_done_callback(self._release)

    def _release(self, closed):
        self._metrics.streams.dec()
        self._free.release()
        if not closed.cancelled() and closed.exception() is not None:
            self._queue.refusal(closed.exception())

    def warm_up(self) -> None:
        """Generates tokens, so that the first request need not wait for graphs or processes."""
        prompt = self._streamer.prompt("1")
        for search in (Greedy(2), Sample(max_length=2)):
            with contextlib.closing(self._streamer.begin(prompt, search)) as text:
                all(part is not None for part in text)
        if self.has_template:
            with contextlib.suppress(ValueError):  # it may want other messages
                self._streamer.conversation([{"role": "user", "content": "1"}])

    def close(self) -> None:
        """Ends the threads and processes that prepare prompts."""
        self._prompts.shutdown(wait=False, cancel_futures=True)
        if self.has_template:
            self._streamer.template.close()


class Stream:
    """The parts of a text, which arrive while it is generated; a part may be empty.

    Args:
        text: The `Continuation`.
        queue: The `JobQueue`.
        metrics: The `Metrics`.
    """

    def __init__(self, text: Any, queue: JobQueue, metrics: Metrics):
        self._text, self._queue, self._metrics = text, queue, metrics

    @property
    def tokens(self) -> int:
        """Number of tokens so far, with the end token."""
        return self._text.tokens

    @property
    def complete(self) -> bool:
        """`True` if the text has ended before its maximum length."""
        return self._text.complete

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> str:
        """Returns the next part.

        Raises:
            Refusal: If the model fails.
        """
        try:
            part = await self._queue.in_thread(next, self._text, END)
        except Exception as error:
            raise self._queue.refusal(error) from None
        if part is END:
            raise StopAsyncIteration
        self._metrics.tokens.inc()
        return part
