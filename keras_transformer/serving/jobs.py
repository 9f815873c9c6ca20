"""The queue of inputs, and the one thread in which the model answers them in batches."""

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

from keras_transformer.serving.metrics import Metrics
from keras_transformer.serving.options import ServerOptions
from keras_transformer.serving.refusal import BUSY, FAILED, STOPPING, Refusal
from keras_transformer.serving.waiting import result_in_time
from keras_transformer.serving.work import Work

VARIANTS = 64  # models with other languages or another search that are kept


@dataclasses.dataclass(eq=False)
class Job:
    """The inputs of one request.

    Args:
        work: What is done with each input.
        inputs: List of inputs.
        future: Its result is the list of results, in order.
    """

    work: Work
    inputs: list
    future: asyncio.Future
    results: list = dataclasses.field(init=False)
    missing: int = dataclasses.field(init=False)

    def __post_init__(self):
        self.results, self.missing = [None] * len(self.inputs), len(self.inputs)

    def put(self, number: int, result: Any) -> None:
        """Stores the result of an input; an exception ends the job."""
        if self.future.done():
            return
        if isinstance(result, Exception):
            self.future.set_exception(self._named(number, result))
            return
        self.results[number] = result
        self.missing -= 1
        if not self.missing:
            self.future.set_result(self.results)

    def _named(self, number, error):
        if len(self.inputs) == 1 or not isinstance(error, Refusal) or error.status != 400:
            return error
        return Refusal(400, f"input {number + 1}: {error.message}")


class JobQueue:
    """Inputs of requests in the order of their arrival, which one thread answers in batches.

    A batch has up to `batch_size` inputs of any requests whose `Work` is equal. If one of its
    inputs is bad, the others are answered without it.

    Args:
        model: The `Answering`.
        options: The `ServerOptions`.
        metrics: The `Metrics`.
        report: Function that is called with an unexpected exception of the model.
    """

    def __init__(
        self,
        model: Any,
        options: ServerOptions,
        metrics: Metrics,
        report: Callable[[BaseException], object],
    ):
        self._options, self._metrics, self._report = options, metrics, report
        self._variant = functools.lru_cache(VARIANTS)(lambda work: work.model(model))
        self._waiting: collections.deque = collections.deque()  # pairs of a job and a number
        self._arrived, self._hurry = asyncio.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "model")
        self._called: float | None = None  # when the thread began its current call
        self.is_stopping = False
        metrics.waiting.set_function(lambda: len(self._waiting))
        metrics.model_busy_seconds.set_function(lambda: self.busy_seconds)

    @property
    def busy_seconds(self) -> float:
        """Seconds since the current call of the model began; 0 if there is none."""
        called = self._called
        return 0.0 if called is None else time.monotonic() - called

    async def run(self) -> None:
        """Answers inputs until it is cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            await self._wait_for_others()
            batch = self._next()
            if not batch:
                self._arrived.clear()
                continue
            self._metrics.batch_size.observe(len(batch))
            with self._metrics.model_seconds.time():
                results = await self.in_thread(self._answer, batch)
            for (job, number), result in zip(batch, results, strict=True):
                job.put(number, result)

    async def _wait_for_others(self):
        """Waits until a batch is full, an input has waited enough, or the server stops."""
        self._hurry.clear()
        if len(self._waiting) < self._options.batch_size and not self.is_stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.batch_wait / 1000):
                    await self._hurry.wait()

    def stop(self) -> None:
        """Refuses further inputs, and lets those in the queue wait no more for others."""
        self.is_stopping = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._hurry.set)

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def answer(self, work: Work, inputs: list, leaving: Callable[[], Any]) -> list:
        """Returns the result of each input.

        Args:
            work: The `Work` to do with each.
            inputs: List of inputs.
            leaving: Coroutine function that returns when the client has left.

        Raises:
            Refusal: If the queue is full, the time is over, or the model refuses an input.
            ConnectionResetError: If the client has left.
        """
        if self.is_stopping:
            raise Refusal(503, STOPPING, retry_after=1)
        self._drop_finished(len(inputs))
        if len(self._waiting) + len(inputs) > self._options.queue_limit:
            raise Refusal(429, BUSY, retry_after=1)
        if not inputs:
            return []
        job = Job(work, inputs, asyncio.get_running_loop().create_future())
        self._waiting.extend((job, number) for number in range(len(inputs)))
        self._arrived.set()
        if len(self._waiting) >= self._options.batch_size:
            self._hurry.set()
        # At the end, also an early one, its inputs leave the queue.
        return await result_in_time(job.future, leaving, self._options.timeout)

    def in_thread(self, function: Callable, *arguments: Any) -> asyncio.Future:
        """Returns the future of a function that is called in the thread of the model.

        Functions and batches are called in the order in which they come.
        """
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._thread, self._timed, function, *arguments)

    def _timed(self, function, *arguments):
        self._called = time.monotonic()
        try:
            return function(*arguments)
        finally:
            self._called = None

    def _drop_finished(self, more):
        """Drops inputs whose client has left or whose time is over, if `more` do not fit."""
        if len(self._waiting) + more > self._options.queue_limit:
            waiting = [pair for pair in self._waiting if not pair[0].future.done()]
            self._waiting = collections.deque(waiting)

    def _next(self):
        """Returns the first inputs in the queue whose work is equal; others keep their places."""
        batch, others = [], []
        while self._waiting and len(batch) < self._options.batch_size:
            pair = self._waiting.popleft()
            if pair[0].future.done():
                continue
            is_next = not batch or pair[0].work == batch[0][0].work
            (batch if is_next else others).append(pair)
        self._waiting.extendleft(reversed(others))
        return batch

    def _answer(self, batch):
        """Returns a result or an exception for each input of a batch, in the model's thread."""
        work, inputs = batch[0][0].work, [job.inputs[number] for job, number in batch]
        numbers = [number for _, number in batch]
        try:
            return work.answer(self._variant(work), inputs, numbers, self._options.batch_size)
        except Exception as error:
            if len(batch) == 1:
                return [self.refusal(error)]
        middle = len(batch) // 2
        return [*self._answer(batch[:middle]), *self._answer(batch[middle:])]

    def refusal(self, error: BaseException) -> Refusal:
        """Returns the `Refusal` for an exception of the model, and reports an unexpected one."""
        if isinstance(error, Refusal):
            return error
        if isinstance(error, ValueError | TypeError) or _is_invalid_argument(error):
            return Refusal(400, getattr(error, "message", None) or str(error))
        self._report(error)
        return Refusal(500, FAILED)


def _is_invalid_argument(error):
    return type(error).__name__ == "InvalidArgumentError"  # of TensorFlow
