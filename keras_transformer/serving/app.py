"""The application of the server: routes of all protocols, health, metrics and the access log."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from keras_transformer.serving.metrics import CONTENT_TYPE
from keras_transformer.serving.protocol import Call, Protocol
from keras_transformer.serving.protocols import PROTOCOLS
from keras_transformer.serving.refusal import FAILED, Refusal
from keras_transformer.serving.service import Service

UNKNOWN, GONE = "other", 499  # a label of metrics; a status that only the log has


def make_app(
    service: Service,
    log: Callable[[str], object] | None = None,
    protocols: Iterable[type[Protocol]] = PROTOCOLS,
) -> Any:
    """Returns the ASGI application that serves a model.

    Args:
        service: The `Service`.
        log: Function that is called with a line in JSON for each request. `None`: no log.
        protocols: Classes of protocols, of which those that have the task of the model are served.
            Requests of the others are refused, with the paths to use.
    """
    kinds = [*protocols]
    served = [kind(service) for kind in kinds if kind.fits(service)]
    others = [kind(service) for kind in kinds if not kind.fits(service)]
    routes = [
        Route(path, _endpoint(protocol, path, handler), methods=[method])
        for protocol in [Health(service), *served, Models(service, served)]
        for method, path, handler in protocol.routes()
    ] + [
        Route(path, _endpoint(protocol, path, _refusing(path, served)), methods=[method])
        for protocol in others
        for method, path, _ in protocol.routes()
    ]
    middleware = [Middleware(Observed, service=service, log=log)]
    if service.options.cors is not None:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=[service.options.cors],
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
            )
        )
    handlers = {HTTPException: _refuse}
    return Starlette(
        routes=routes, middleware=middleware, exception_handlers=handlers,
        lifespan=lambda app: _lifespan(service),
    )  # fmt: skip


@contextlib.asynccontextmanager
async def _lifespan(service):
    """Runs the queue and the streams of the model while the server runs."""
    runs = [service.queue.run()] + ([] if service.streams is None else [service.streams.run()])
    running = [asyncio.create_task(run) for run in runs]
    service.is_ready = True
    try:
        yield
    finally:
        service.is_ready = False
        for task in running:
            task.cancel()
        service.queue.close()
        if service.streams is not None:
            service.streams.close()


async def _refuse(request, error):
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _refusing(path, served):
    """Returns the handler of a request of a protocol that does not have the task of the model.

    Args:
        path: Path of the request.
        served: The protocols that have the task; the handler names the first path of each.
    """
    firsts = [
        first
        for protocol in served
        for first in [path for method, path, _ in protocol.routes() if method == "POST"][:1]
    ]

    async def handler(call):
        paths = ", ".join(firsts).replace("{name}", call.service.name)
        task = call.service.task
        raise Refusal(404, f"{path} is not for the model: its task is {task}. Use one of: {paths}.")

    return handler


def _endpoint(protocol, path, handler):
    """Returns the function that answers a request by a handler, or refuses it in one line."""

    async def endpoint(request: Request) -> Response:
        call = Call(protocol.service, request)
        request.scope["keras_transformer"] = path, call
        try:
            if not protocol.key_in_body:
                call.check_key()
            return await handler(call)
        except Refusal as refusal:
            return protocol.refused(refusal)
        except ConnectionResetError:
            return Response(status_code=GONE)
        except Exception as error:
            protocol.service.report(error)
            return protocol.refused(Refusal(500, FAILED))
        finally:
            call.close()

    return endpoint


class Health(Protocol):
    """Answers whether the server lives and is ready, and its metrics. Health needs no key."""

    key_in_body = True

    def routes(self):  # noqa: D102
        return [
            ("GET", "/health", self.ready),
            ("GET", "/health/live", self.live),
            ("GET", "/health/ready", self.ready),
            ("GET", "/metrics", self.metrics),
        ]

    def error(self, refusal):  # noqa: D102
        return {"error": refusal.message}

    async def live(self, call) -> Response:
        """Answers with status 200 unless the model does not return; see `Service.check_live`."""
        self.service.check_live()
        return JSONResponse({"status": "ok"})

    async def ready(self, call) -> Response:
        """Answers with status 200 while requests are accepted."""
        if self.service.is_ready and not self.service.queue.is_stopping:
            return JSONResponse({"status": "ok"})
        raise Refusal(503, "the server is not ready.")

    async def metrics(self, call) -> Response:
        """Returns the metrics."""
        call.check_key()
        return PlainTextResponse(self.service.metrics.text(), media_type=CONTENT_TYPE)


class Models(Protocol):
    """`/v1/models`, which several protocols share: the response has the fields of all of them."""

    def __init__(self, service, protocols):
        super().__init__(service)
        self._protocols = protocols

    def routes(self):  # noqa: D102
        return [("GET", "/v1/models", self.list), ("GET", "/v1/models/{name}", self.describe)]

    def error(self, refusal):  # noqa: D102
        return self._protocols[0].error(refusal) if self._protocols else {"error": refusal.message}

    async def list(self, call) -> Response:
        """Returns the list of the one model."""
        return JSONResponse(_joined(protocol.models() for protocol in self._protocols))

    async def describe(self, call) -> Response:
        """Returns what the protocols tell about the model."""
        self.service.check_name(call.request.path_params["name"])
        return JSONResponse(_joined(protocol.model() for protocol in self._protocols))


def _joined(dictionaries):
    return {name: value for dictionary in dictionaries for name, value in dictionary.items()}


class Observed:
    """Middleware that counts requests, measures their time and writes the access log."""

    def __init__(self, app: Any, service: Service, log: Callable[[str], object] | None):
        self._app, self._service, self._log = app, service, log

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status, size = time.perf_counter(), GONE, 0

        async def sending(message):
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - begin
            route, call = scope.get("keras_transformer", (UNKNOWN, None))
            self._service.metrics.requests.labels(route, str(status)).inc()
            self._service.metrics.seconds.labels(route).observe(seconds)
            if self._log is not None:
                self._log(_line(scope, status, seconds, size, call))


def _line(scope, status, seconds, size, call):
    """Returns the line of the access log for a request."""
    now = time.time()
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    line = {
        "time": f"{moment}.{int(now % 1 * 1000):03}Z",
        "client": (scope.get("client") or [None])[0],
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "milliseconds": round(1000 * seconds, 1),
        "bytes": size,
    }
    if call is not None and call.count:
        line["inputs"] = call.count
    return json.dumps(line)
