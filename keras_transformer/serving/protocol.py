"""The interface of protocols, and one call of a client."""

import abc
import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keras_transformer.serving.refusal import Refusal
from keras_transformer.serving.service import Service
from keras_transformer.serving.waiting import result_in_time
from keras_transformer.serving.work import Work


class Call:
    """A request of a client while it is answered.

    Args:
        service: The `Service`.
        request: The request.

    Attributes:
        count: Number of its inputs, for the log.
    """

    def __init__(self, service: Service, request: Request):
        self.service, self.request, self.count = service, request, 0
        self._size = 0

    async def body(self) -> bytes:
        """Returns the body; see `Bodies.read`."""
        body = await self.service.bodies.read(self.request)
        self._size = len(body)
        return body

    def close(self) -> None:
        """Ends the call."""
        self.service.bodies.release(self._size)

    def check_key(self, key: str | None = None) -> None:
        """Raises a `Refusal` unless the request has the key of the server, if there is one.

        Args:
            key: The key in the body. `None`: that of the header `Authorization` or `X-API-Key`.
        """
        if self.service.key is None:
            return
        headers = self.request.headers
        if key is None:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            key = key if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if not hmac.compare_digest(key.strip().encode(), self.service.key.encode()):
            raise Refusal(401, "the API key is missing or wrong.")

    async def answer(self, work: Work, inputs: list) -> list:
        """Returns the result of each input; see `JobQueue.answer`."""
        self.count = len(inputs)
        self.service.metrics.inputs.inc(len(inputs))
        return await self.service.queue.answer(work, inputs, self._gone)

    async def in_time(self, result: Awaitable) -> Any:
        """Returns a result that is complete, or begins, in the time of a request.

        Raises:
            Refusal: If the time is over; the result is then cancelled.
            ConnectionResetError: If the client has left; likewise.
        """
        return await result_in_time(result, self._gone, self.service.options.timeout)

    async def _gone(self):
        """Returns when the client has left."""
        while (await self.request.receive())["type"] != "http.disconnect":
            await asyncio.sleep(0)


Handler = Callable[[Call], Awaitable[Response]]


class Protocol(abc.ABC):
    """A protocol in which clients send requests.

    Another one is a file with a subclass, and its entry in `PROTOCOLS`.

    Args:
        service: The `Service`.

    Attributes:
        key_in_body: Whether the handlers check the API key, because it may be in the body.
    """

    key_in_body = False

    def __init__(self, service: Service):
        self.service = service

    @classmethod
    def fits(cls, service: Service) -> bool:
        """Returns whether the protocol has the task of the model."""
        return True

    @abc.abstractmethod
    def routes(self) -> list[tuple[str, str, Handler]]:
        """Returns the method, the path and the handler of each kind of request."""

    @abc.abstractmethod
    def error(self, refusal: Refusal) -> dict[str, Any]:
        """Returns the body of the response to a request that is refused."""

    def models(self) -> dict[str, Any]:
        """Returns what the protocol adds to the response of `GET /v1/models`."""
        return {}

    def model(self) -> dict[str, Any]:
        """Returns what the protocol adds to the response of `GET /v1/models/NAME`."""
        return {}

    def refused(self, refusal: Refusal) -> Response:
        """Returns the response to a request that is refused."""
        headers = {}
        if refusal.retry_after is not None:
            headers["Retry-After"] = str(refusal.retry_after)
        if refusal.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(self.error(refusal), refusal.status, headers)
