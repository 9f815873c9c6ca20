"""Texts that are generated token by token, in batches, by turns with those of other requests."""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from keras_transformer.decoding import Greedy, Sample
from keras_transformer.serving.jobs import JobQueue
from keras_transformer.serving.metrics import Metrics
from keras_transformer.serving.refusal import BUSY, STOPPING, Refusal
from keras_transformer.tasks.streams.turns import END

AHEAD = 16  # parts of a text that may wait for its client; then it takes no turns


class Streams:
    """The texts of all clients that are generated at a time.

    A turn in the one thread of the model computes the next token of all texts, in batches as far as
    the model has them. Turns alternate with the batches of other requests. A text whose client
    takes no parts waits, and the others do not.

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
        self._texts: list[Stream] = []
        self._wanted = asyncio.Event()
        # A template is rendered, and a prompt tokenised, beside the model and the connections.
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
        stream = Stream(text, self._wanted.set)
        self._texts.append(stream)
        self._wanted.set()
        try:
            yield stream
        finally:
            self._texts.remove(stream)
            with contextlib.suppress(RuntimeError):  # the server has ended
                # In the thread of the model, after the token that is perhaps being generated.
                ended = self._queue.in_thread(self._streamer.end, text)
                ended.add_done_callback(self._release)

    async def run(self) -> None:
        """Generates the texts until it is cancelled."""
        while True:
            await self._wanted.wait()
            streams = [stream for stream in self._texts if stream.is_wanted]
            if not streams:
                self._wanted.clear()
                continue
            self._metrics.stream_batch_size.observe(len(streams))
            texts = [stream.text for stream in streams]
            try:
                turns = await self._queue.in_thread(self._streamer.advance, texts)
            except Exception as error:
                turns = [error] * len(streams)
            for stream, turn in zip(streams, turns, strict=True):
                if isinstance(turn, Exception):
                    turn = self._queue.refusal(turn)
                elif turn is not None and turn is not END:
                    self._metrics.tokens.inc()
                stream.put(turn)

    def _release(self, closed):
        self._metrics.streams.dec()
        self._free.release()
        if not closed.cancelled() and closed.exception() is not None:
            self._queue.refusal(closed.exception())

    def warm_up(self) -> None:
        """Generates tokens, so that the first request need not wait for graphs or processes.

        Raises:
            Exception: That of the model, if it fails.
        """
        prompt = self._streamer.prompt("1")
        for search in (Greedy(2), Sample(max_length=2)):
            text = self._streamer.begin(prompt, search)
            try:
                while (turn := self._streamer.advance([text])[0]) is not END:
                    if isinstance(turn, Exception):
                        raise turn
            finally:
                self._streamer.end(text)
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
        text: The text of the `Streamer`.
        taken: Function that is called when a part has been taken.

    Attributes:
        tokens: Number of tokens of the parts so far, with the end token.
    """

    def __init__(self, text: Any, taken: Callable[[], object]):
        self.text, self.tokens = text, 0
        self._taken, self._is_over = taken, False
        self._parts: asyncio.Queue = asyncio.Queue()

    @property
    def is_wanted(self) -> bool:
        """`True` if the text should take a turn."""
        return not self._is_over and self._parts.qsize() < AHEAD

    @property
    def complete(self) -> bool:
        """`True` if the text has ended before its maximum length."""
        return self.text.complete

    def put(self, turn: Any) -> None:
        """Adds what a turn has given the text; see `Streamer.advance`."""
        if turn is not None:
            self._is_over = turn is END or isinstance(turn, Refusal)
            self._parts.put_nowait((turn, self.text.tokens))

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> str:
        """Returns the next part.

        Raises:
            Refusal: If the model fails.
        """
        part, tokens = await self._parts.get()
        self._taken()
        if part is END:
            raise StopAsyncIteration
        if isinstance(part, Refusal):
            raise part
        self.tokens = tokens
        return part
